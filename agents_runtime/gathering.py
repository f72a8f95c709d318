"""Gathering: what a task wrote is stored in the same statement as the checkpoint that it leads to.

The library hands in what a task wrote, and a moment later the checkpoint made of it; each would be a commit.
Whoever hands in a task's writes waits that moment, and is back once they are stored, as before: by whoever
hands in more meanwhile, or else by itself. Nothing waits behind it: the graph goes on, and waits for the
checkpoint only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from psycopg import RawCursor

from agents_runtime.fence import Fence, FencedWrites, store

SECONDS_OF_PATIENCE = 0.005


@dataclass(eq=False)
class _Part:
    """What one thread hands in; ``is_alone``: it could not be stored in company, and so is tried alone."""

    writes: FencedWrites
    is_over: threading.Event = field(default_factory=threading.Event)
    is_alone: bool = False


class Gathering:
    """Stores behind a fence what several threads hand in; ``writing`` lets one at a time have a cursor."""

    def __init__(self, fence: Fence, writing: Callable[[], AbstractContextManager[RawCursor[Any]]]) -> None:
        self._fence = fence
        self._writing = writing
        self._lock = threading.Lock()
        self._waiting: list[_Part] = []

    def hand_in(self, writes: FencedWrites, *, may_wait: bool) -> None:
        """Return once it is stored, alone or with what others hand in; raise what keeps it from being stored.

        Only the first one waits: two are company for each other.
        """
        part = _Part(writes)
        with self._lock:
            is_first = not self._waiting
            self._waiting.append(part)
        if may_wait and is_first and part.is_over.wait(SECONDS_OF_PATIENCE) and not part.is_alone:
            return
        with self._writing() as cursor:
            self._store(cursor, part, self._company(part))

    def _company(self, part: _Part) -> Sequence[_Part]:
        """Take all others that wait now, unless this part is done with or to be stored alone."""
        with self._lock:
            if part.is_over.is_set():
                return []
            company = [other for other in self._waiting if other is not part]
            self._waiting = []
        return company

    def _store(self, cursor: RawCursor[Any], part: _Part, company: Sequence[_Part]) -> None:
        """Store a part with its company; one that cannot be stored keeps no other from it."""
        if part.is_over.is_set() and not part.is_alone:
            return
        try:
            store(cursor, self._fence, [one.writes for one in (*company, part)])
        except Exception:  # whatever it was: whose fault it is shows when each is tried alone
            _end(company, are_alone=True)
            if not company:
                raise
            store(cursor, self._fence, [part.writes])
        _end(company, are_alone=False)


def _end(parts: Sequence[_Part], *, are_alone: bool) -> None:
    for part in parts:
        if not part.is_over.is_set():
            part.is_alone = are_alone
            part.is_over.set()
