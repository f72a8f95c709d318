"""The statements of one session that are run again and again: what is the same each time is made once.

A cursor of psycopg learns anew for every statement how its values are written and its rows are read. This is
the same exchange with the server, by psycopg's own parts, without that. PostgreSQL makes the statement's plan
once in a session, too, and sends what it finds in binary form: for times in text form Django has a parser of
its own, in Python.

To go to the server and back takes longer than most statements. So several may go together, the first of a
transaction goes with what begins it, and the last may go with what commits it.

A transaction pooler that knows no prepared statements cannot have that: ``COUNTERSIGN_PREPARE=0``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import Any

import psycopg
from psycopg import errors
from psycopg._preparing import Prepare
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import execute, fetch, fetch_many, send
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

Session = psycopg.Connection[Any]
Rows = list[tuple[Any, ...]]
Command = Callable[[], None]
PLACE = re.compile("%[s%]")
MOST_KEPT = 500
"""Statements of one session: those with many rows come in as many forms as there are numbers of rows."""
SUCCEEDED = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})
COMMIT = b"COMMIT"
SECONDS_TO_CANCEL = 5.0


@dataclass(frozen=True)
class _Ready:
    """A statement that can be sent, and how psycopg has noted it; ``key``: if it has done so just now."""

    sends: Command
    how: Prepare
    name: bytes
    key: Any


class Statement:
    """A statement with a place ``%s`` for each value. ``query`` and ``types``: what psycopg knows it by."""

    def __init__(self, session: Session, sql: str) -> None:
        self.query, places = _with_numbers(sql)
        self.types: tuple[int, ...] = ()
        self._session = session
        self._transformer = Transformer(session)
        self._formats = [PyFormat.AUTO] * places

    def ready(self, values: Sequence[object]) -> PQGen[_Ready]:
        """Have the server know the statement, and return what sends it with these values."""
        pgconn = self._session.pgconn
        prepared = _prepared_in(self._session)
        parameters = self._transformer.dump_sequence(values, self._formats)
        self.types, formats = self._transformer.types or (), self._transformer.formats
        how, name = prepared.get(self)
        if how is Prepare.SHOULD:
            pgconn.send_prepare(name, self.query, param_types=self.types)
            _check((yield from execute(pgconn)))
        in_binary: dict[str, Any] = {"param_formats": formats, "result_format": Format.BINARY}
        sends = (
            partial(pgconn.send_query_params, self.query, parameters, param_types=self.types, **in_binary)
            if how is Prepare.NO
            else partial(pgconn.send_query_prepared, name, parameters, **in_binary)
        )
        return _Ready(sends, how, name, key=prepared.maybe_add_to_cache(self, how, name))

    def read(self, result: PGresult) -> Rows:
        """Return the rows; those of one statement are of the same types each time, unless a table changed."""
        if result.status != ExecStatus.TUPLES_OK:
            return []
        transformer = self._transformer
        transformer.set_pgresult(result)
        rows = transformer.load_rows(0, result.ntuples, tuple)
        transformer.set_pgresult(None, set_loaders=False)
        return rows


class Flight:
    """Statements that go to the server together; each sees what those before it did.

    To Django it is a cursor. ``commits``: the transaction ends with it.
    """

    def __init__(
        self, session: Session, asked: Sequence[tuple[str, Sequence[object]]], *, commits: bool = False
    ) -> None:
        self.rows: list[Rows] = []
        self._session = session
        self._asked = [(statement(session, sql), values) for sql, values in asked]
        self._commits = commits

    @property
    def _query(self) -> Statement:
        """Where Django's list of statements looks for what was run."""
        return self._asked[0][0]

    def execute(self, *_: object) -> None:
        """Run them; they begin a transaction as any cursor of the session does."""
        with self._session.lock:
            try:
                self.rows = self._session.wait(self._run())
            except BaseException:
                _end_what_is_underway(self._session)
                raise

    def _run(self) -> PQGen[list[Rows]]:
        prepared = _prepared_in(self._session)
        ready = []
        for kept, values in self._asked:
            ready += [(yield from kept.ready(values))]
        results = yield from self._sent([one.sends for one in ready])
        for one, result in zip(ready, results, strict=True):
            if one.key is not None:
                prepared.validate(one.key, one.how, one.name, [result])
        rows = [kept.read(result) for (kept, _), result in zip(self._asked, results, strict=True)]
        yield from prepared.maintain_gen(self._session)
        return rows

    def _sent(self, commands: list[Command]) -> PQGen[Sequence[PGresult]]:
        """Send them, with what begins and ends their transaction; return what each of them gave."""
        session = self._session
        begins = not session.autocommit and session.pgconn.transaction_status == TransactionStatus.IDLE
        if len(commands) == 1 and not (begins or self._commits):
            commands[0]()
            return _check((yield from execute(session.pgconn)))
        before = [self._sending(session._get_tx_start_command())] if begins else []  # noqa: SLF001  as its own cursors do
        after = [self._sending(COMMIT)] if self._commits else []
        results = yield from _in_one_go(session.pgconn, [*before, *commands, *after])
        return results[len(before) : len(before) + len(commands)]

    def _sending(self, command: bytes) -> Command:
        return partial(self._session.pgconn.send_query_params, command, None)


def _prepared_in(session: Session) -> Any:
    """Return what knows which statements this session has prepared."""
    return session._prepared  # noqa: SLF001  its own cursors ask it, too


def _end_what_is_underway(session: Session) -> None:
    """End a session that was left with something on its way, which may be what commits.

    The server would go on, and commit what its caller takes for failed.
    """
    pgconn = session.pgconn
    is_active = pgconn.transaction_status == TransactionStatus.ACTIVE
    if pgconn.status != ConnStatus.OK or not (is_active or pgconn.pipeline_status):
        return
    if is_active:
        with contextlib.suppress(psycopg.Error):  # it ends all the same
            session.cancel_safe(timeout=SECONDS_TO_CANCEL)
    pgconn.finish()


def run(session: Session, sql: str, *values: object) -> Rows:
    """Run a statement, and return what it returns."""
    flight = Flight(session, [(sql, values)])
    flight.execute()
    return flight.rows[0]


def statement(session: Session, sql: str) -> Statement:
    """Return the session's own of this statement."""
    kept: dict[str, Statement] = vars(session).setdefault("countersign_statements", {})
    known = kept.get(sql)
    if known is None:
        if len(kept) >= MOST_KEPT:
            del kept[next(iter(kept))]
        known = kept[sql] = Statement(session, sql)
    return known


def _in_one_go(pgconn: PGconn, commands: Sequence[Command]) -> PQGen[Sequence[PGresult]]:
    """Send all of these commands, and return what each gave. The server skips those after one that fails.

    A pipeline of psycopg's turns in circles until the answer is there: it also waits for a socket that takes
    what is sent, which it always does.
    """
    pgconn.enter_pipeline_mode()
    for command in commands:
        command()
    pgconn.pipeline_sync()
    yield from send(pgconn)
    results = yield from _given(pgconn, len(commands))
    yield from fetch(pgconn)
    pgconn.exit_pipeline_mode()
    return _check(results)


def _given(pgconn: PGconn, count: int) -> PQGen[list[PGresult]]:
    results = []
    for _ in range(count):
        results += yield from fetch_many(pgconn)
    return results


def _check(results: Sequence[PGresult]) -> Sequence[PGresult]:
    """Return the results if all went well; raise what the server said if not."""
    for result in results:
        if result.status not in SUCCEEDED:
            raise errors.error_from_result(result)
    return results


@lru_cache(maxsize=1024)
def _with_numbers(sql: str) -> tuple[bytes, int]:
    """Return a statement as PostgreSQL takes it, with places ``$1``, ``$2`` and so on, and their number."""
    numbers = count(1)
    numbered = PLACE.sub(lambda place: "%" if place[0] == "%%" else f"${next(numbers)}", sql)
    return numbered.encode(), next(numbers) - 1
