"""The fence round a thread's checkpoints: a worker whose epoch is over writes none.

What the library writes at once becomes one statement. It looks first whether the run is still in this epoch,
keeps the run's row until everything is stored, and stores nothing otherwise.
Does not live here: serialising, reading and connections (``checkpointer``).
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg import RawCursor

from agents_runtime.errors import StaleEpoch
from agents_runtime.records import TABLE
from agents_runtime.states import RunStatus

SHUT_OUT = "This worker no longer holds the run; it writes no checkpoint."
STANDING = (
    f"standing AS MATERIALIZED (SELECT id FROM public.{TABLE} "  # noqa: S608  our own table's name
    f"WHERE id = %s AND epoch = %s AND status <> '{RunStatus.CANCELLED.value}' FOR SHARE)"
)
INSERTION = re.compile(
    r"\s*INSERT INTO (?P<table>\w+) \((?P<columns>[\w, ]+)\)\s+VALUES \([%s, ]+\)\s+"
    r"(?P<conflict>ON CONFLICT \((?P<key>[\w, ]+)\)\s+DO (?:NOTHING|UPDATE SET[\w\s=.,]+?))\s*;?\s*"
)
TYPES = {"idx": "integer", "blob": "bytea", "checkpoint": "jsonb", "metadata": "jsonb"}
"""Of the library's columns; all others are text."""
MOST_ROWS = 1_000
MOST_ROWS_PREPARED = 8
Rows = Sequence[Sequence[Any]]


@dataclass
class Fence:
    """Whether a worker may still write for a run: its epoch stands, and nobody ended the step or the run.

    A write asks for that, and keeps the run's row until it is stored: whoever takes the run over raises the
    epoch after that, and reads it. Were the row only looked at, a write that is on its way then would come
    behind what the next worker has read.
    """

    run_id: UUID
    epoch: int
    broken: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise ``StaleEpoch`` if the step was ended."""
        if self.broken.is_set():
            raise StaleEpoch(SHUT_OUT)


@dataclass(frozen=True)
class _Insertion:
    """One of the library's statements, taken apart."""

    table: str
    columns: Sequence[str]
    conflict: str
    key: Sequence[int]

    @property
    def keeps_first(self) -> bool:
        """Say whether what is stored already stays."""
        return self.conflict.endswith("DO NOTHING")

    def distinct(self, rows: Rows) -> Rows:
        """Of several rows with one key, leave the one that comes last: a statement writes none twice."""
        if self.keeps_first:
            return rows
        return list({tuple(row[place] for place in self.key): row for row in rows}.values())


class FencedWrites:
    """Stands in for a cursor: takes what the library writes at once."""

    def __init__(self) -> None:
        self.insertions: list[tuple[str, Rows]] = []

    @property
    def lead_to_more(self) -> bool:
        """Say whether this is what a task wrote that ended well: a checkpoint is about to follow."""
        parts = [_taken_apart(query) for query, _ in self.insertions]
        return all(part.table == "checkpoint_writes" and part.keeps_first for part in parts)

    def execute(self, query: str, row: Sequence[Any]) -> None:
        """Take one row."""
        self.executemany(query, [row])

    def executemany(self, query: str, rows: Rows) -> None:
        """Take rows of one table."""
        if rows:
            self.insertions.append((query, _taken_apart(query).distinct(rows)))


def store(cursor: RawCursor[Any], fence: Fence, several: Sequence[FencedWrites]) -> None:
    """Store everything or nothing; raise ``StaleEpoch`` if the fence is down."""
    fence.check()
    insertions = [insertion for writes in several for insertion in writes.insertions]
    if sum(len(rows) for _, rows in insertions) <= MOST_ROWS:
        _store(cursor, fence, insertions)
        return
    with cursor.connection.transaction():
        for query, rows in insertions:
            for part in _parts(rows):
                _store(cursor, fence, [(query, part)])


def _store(cursor: RawCursor[Any], fence: Fence, insertions: Sequence[tuple[str, Rows]]) -> None:
    sql = _statement(tuple((query, len(rows)) for query, rows in insertions))
    values = [value for _, rows in insertions for row in rows for value in row]
    is_rare = sum(len(rows) for _, rows in insertions) > MOST_ROWS_PREPARED
    cursor.execute(sql, [fence.run_id, fence.epoch, *values], prepare=False if is_rare else None)
    if cursor.rowcount < 1:
        raise StaleEpoch(SHUT_OUT)


def _parts(rows: Rows) -> Iterator[Rows]:
    for begin in range(0, len(rows), MOST_ROWS):
        yield rows[begin : begin + MOST_ROWS]


@lru_cache(maxsize=64)
def _statement(writes: tuple[tuple[str, int], ...]) -> str:
    """Return one statement for so many rows of each insertion; it returns a row if the fence stood.

    Its values have numbers, as the server wants them: so nothing is made of it before each use.
    """
    insertions = [
        f"write_{number} AS ({_fenced(_taken_apart(query), count)})"
        for number, (query, count) in enumerate(writes)
    ]
    sql = f"WITH {', '.join([STANDING, *insertions])} SELECT id FROM standing"  # noqa: S608
    numbers = itertools.count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", sql)


def _fenced(insertion: _Insertion, count: int) -> str:
    columns = ", ".join(insertion.columns)
    first = ", ".join(f"%s::{TYPES.get(name, 'text')}" for name in insertion.columns)
    others = [", ".join(["%s"] * len(insertion.columns))] * (count - 1)
    rows = ", ".join(f"({row})" for row in [first, *others])
    return (
        f"INSERT INTO {insertion.table} ({columns}) "  # noqa: S608  the library's own names
        f"SELECT written.* FROM standing, (VALUES {rows}) AS written {insertion.conflict}"
    )


@lru_cache(maxsize=16)
def _taken_apart(query: str) -> _Insertion:
    found = INSERTION.fullmatch(query)
    if found is None:
        raise NotImplementedError(f"The library writes checkpoints in a way that has no fence: {query}")
    columns = found["columns"].split(", ")
    key = [columns.index(name) for name in found["key"].split(", ")]
    return _Insertion(found["table"], columns, found["conflict"], key)
