"""The database connection of the thread that waits for a step, lent to the step's gate meanwhile.

Tools run in threads of their own, a new one for each call. To open a connection there, and to give it back,
takes longer than what the gate asks; and whoever waits for the step has one that rests. One thread at a time
has it, and none any more once the step is over, even if that runs on behind the back of who waited for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections

Result = TypeVar("Result")


class Loan:
    """Lets other threads do database work over the connection of the thread that lends its own."""

    def __init__(self) -> None:
        self._lent: Any = None
        self._lock = threading.Lock()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Lend the connection of this thread within; work that has begun over it ends first.

        One that is inside a transaction is not lent: what the gate writes must be there at once.
        """
        own: Any = connections[DEFAULT_DB_ALIAS]
        if own.in_atomic_block:
            yield
            return
        own.inc_thread_sharing()
        self._lent = own
        try:
            yield
        finally:
            self._lent = None  # before it waits: a signal may end the waiting
            with self._lock:
                own.dec_thread_sharing()

    def use(self, work: Callable[[], Result]) -> Result:
        """Do some work and return what it returns, never in a transaction that the thread is in itself."""
        with self._lock:
            lent = self._lent
            if lent is not None:
                with _in_place_of_its_own(lent):
                    return work()
        another: Any = connections.create_connection(DEFAULT_DB_ALIAS)
        try:
            with _in_place_of_its_own(another):
                return work()
        finally:
            another.close()


def give_back() -> None:
    """Give the pool what an agent's code left open in this thread: with the thread, its place would be lost.

    What is inside a transaction stays.
    """
    for own in connections.all(initialized_only=True):
        if not own.in_atomic_block:
            own.close()


@contextmanager
def _in_place_of_its_own(lent: Any) -> Iterator[None]:
    own = next(iter(connections.all(initialized_only=True)), None)
    connections[DEFAULT_DB_ALIAS] = lent
    try:
        yield
    except Exception:
        lent.close_if_unusable_or_obsolete()  # the next one is to have one that works
        raise
    finally:
        if own is None:
            del connections[DEFAULT_DB_ALIAS]
        else:
            connections[DEFAULT_DB_ALIAS] = own
