"""One statement of one session, run again and again: what is the same each time is made once.

A cursor of psycopg learns anew for every statement how its values are written and its rows are read. This is
the same exchange with the server, by psycopg's own parts, without that. PostgreSQL makes the statement's plan
once in a session, too, and sends what it finds in binary form: for times in text form Django has a parser of
its own, in Python.

A transaction pooler that knows no prepared statements cannot have that: ``COUNTERSIGN_PREPARE=0``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg import errors
from psycopg._preparing import Prepare
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

Session = psycopg.Connection[Any]
Rows = list[tuple[Any, ...]]
PLACE = re.compile("%[s%]")
MOST_KEPT = 500
"""Statements of one session: those with many rows come in as many forms as there are numbers of rows."""
SUCCEEDED = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})


class Statement:
    """A statement with a place ``%s`` for each value; ``rows`` are those of its last run, until taken.

    To Django it is a cursor. ``query`` and ``types`` are what psycopg knows it by among those it prepared.
    """

    def __init__(self, session: Session, sql: str) -> None:
        self.query, places = _with_numbers(sql)
        self.types: tuple[int, ...] = ()
        self.rows: Rows = []
        self._session = session
        self._transformer = Transformer(session)
        self._formats = [PyFormat.AUTO] * places

    @property
    def _query(self) -> Statement:
        """Where Django's list of statements looks for what was run."""
        return self

    def take(self) -> Rows:
        """Return the rows and keep none: they may be megabytes, and the next run may be long in coming."""
        rows, self.rows = self.rows, []
        return rows

    def execute(self, _: str, values: Sequence[object]) -> None:
        """Run it with these values; it begins a transaction as any cursor of the session does."""
        with self._session.lock:
            self.rows = self._session.wait(self._run(values))

    def _run(self, values: Sequence[object]) -> PQGen[Rows]:
        session, transformer = self._session, self._transformer
        pgconn = session.pgconn
        prepared: Any = session._prepared  # noqa: SLF001  it knows what this session has prepared
        yield from session._start_query()  # noqa: SLF001  begins what a cursor would
        parameters = transformer.dump_sequence(values, self._formats)
        self.types, formats = transformer.types or (), transformer.formats
        how, name = prepared.get(self)
        if how is Prepare.SHOULD:
            pgconn.send_prepare(name, self.query, param_types=self.types)
            _last((yield from execute(pgconn)))
        if how is Prepare.NO:
            pgconn.send_query_params(
                self.query,
                parameters,
                param_types=self.types,
                param_formats=formats,
                result_format=Format.BINARY,
            )
        else:
            pgconn.send_query_prepared(name, parameters, param_formats=formats, result_format=Format.BINARY)
        key = prepared.maybe_add_to_cache(self, how, name)
        results = yield from execute(pgconn)
        if key is not None:
            prepared.validate(key, how, name, results)
        rows = self._read(_last(results))
        yield from prepared.maintain_gen(session)
        return rows

    def _read(self, result: PGresult) -> Rows:
        """Return the rows; those of one statement are of the same types each time, unless a table changed."""
        if result.status != ExecStatus.TUPLES_OK:
            return []
        transformer = self._transformer
        transformer.set_pgresult(result)
        rows = transformer.load_rows(0, result.ntuples, tuple)
        transformer.set_pgresult(None, set_loaders=False)
        return rows


def statement(session: Session, sql: str) -> Statement:
    """Return the session's own of this statement."""
    kept: dict[str, Statement] = vars(session).setdefault("countersign_statements", {})
    known = kept.get(sql)
    if known is None:
        if len(kept) >= MOST_KEPT:
            del kept[next(iter(kept))]
        known = kept[sql] = Statement(session, sql)
    return known


def _last(results: Sequence[PGresult]) -> PGresult:
    """Return what came last if all went well; raise what the server said if not."""
    for result in results:
        if result.status not in SUCCEEDED:
            raise errors.error_from_result(result)
    return results[-1]


@lru_cache(maxsize=1024)
def _with_numbers(sql: str) -> tuple[bytes, int]:
    """Return a statement as PostgreSQL takes it, with places ``$1``, ``$2`` and so on, and their number."""
    numbers = count(1)
    numbered = PLACE.sub(lambda place: "%" if place[0] == "%%" else f"${next(numbers)}", sql)
    return numbered.encode(), next(numbers) - 1
