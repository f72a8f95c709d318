"""What every step writes: each statement's SQL is made once, and many of them reach PostgreSQL as one.

A statement costs its way there and back, whatever it does, and a step makes a dozen small changes. What is
written ``together`` therefore waits, and goes as one statement: when the block ends, when somebody reads or
changes one of its tables again. The parts of one statement see nothing of each
other, so no table is changed by two of them; constraints and triggers are checked as ever.

Rows and defaults are as Django has them. Signals are not sent: nothing here listens to any. Does not live
here: what is read (``compiled``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, connections, models, transaction
from django.db.models.expressions import DatabaseDefault

from agents_runtime.compiled import ask

Row = TypeVar("Row", bound=models.Model)
Found = Sequence[tuple[Any, ...]]
Then = Callable[[Found], object]
NOW = "STATEMENT_TIMESTAMP()"
MOST_ROWS = 20
"""Rows that one part inserts: each number makes another statement, which every session prepares."""
AS_THEY_ARE = frozenset({str, int, bool, type(None), UUID})
"""What the columns of these tables take as it is; numbers and texts of a class of their own they do not."""


@dataclass(frozen=True, eq=False)
class Write:
    """A statement that changes these tables; one that inserts rows says how a row is written.

    ``before``: what it needs in front of it in a ``WITH``.
    """

    sql: str
    tables: frozenset[str]
    row: str = ""
    after: str = ""
    before: str = ""

    def text(self, count: int) -> str:
        """Return the statement for so many rows."""
        return f"{self.sql}{', '.join([self.row] * count)}{self.after}"


class _Gathered:
    """The writes that wait on one connection. Django calls it before each of that connection's statements."""

    def __init__(self) -> None:
        self._parts: dict[Write, list[Sequence[object]]] = {}
        self._tables: set[str] = set()
        self._returning: tuple[Write, Then] | None = None
        self._may_be_refused = False
        self._failure: BaseException | None = None

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if str(sql).startswith("ROLLBACK"):
            self.forget()
        elif self._failure is not None:  # as with PostgreSQL itself: after it comes a rollback only
            raise self._failure
        elif self._parts and not self._may_wait_for(str(sql)):
            self.flush()
        return execute(sql, params, many, context)

    def add(
        self, write: Write, values: Sequence[object], then: Then | None = None, *, may_refuse: bool = True
    ) -> None:
        """Let a write wait, after those it cannot go with."""
        others = self._parts.get(write, ())
        is_one_more = bool(others) and bool(write.row) and len(others) < MOST_ROWS
        if not is_one_more and not self._tables.isdisjoint(write.tables):
            self.flush()
        if then is not None:
            if self._returning is not None:
                self.flush()
            self._returning, self._may_be_refused = (write, then), may_refuse
        self._parts.setdefault(write, []).append(values)
        self._tables |= write.tables

    def forget(self) -> None:
        """Let go of what waits, and of what failed: the transaction does not come about."""
        self._parts, self._tables, self._returning, self._failure = {}, set(), None, None

    def finish(self, *, commits: bool) -> None:
        """Write what waits, and commit with it; raise what failed before, whoever took that for theirs.

        PostgreSQL would answer a commit without an error, and roll back. Where somebody may refuse what was
        returned, Django commits after that.
        """
        if self._failure is not None:
            raise self._failure
        self.flush(commits=commits and not (self._returning and self._may_be_refused))

    def flush(self, *, commits: bool = False) -> None:
        """Write what waits. Who is told what it returned writes nothing: nobody would see that it waits."""
        parts, returning = self._parts, self._returning
        self._parts, self._tables, self._returning = {}, set(), None
        try:
            if parts:
                _write(parts, returning, commits=commits)
            assert not self._parts
        except BaseException as failure:
            self._failure = failure
            raise

    def _may_wait_for(self, sql: str) -> bool:
        """Say whether a statement only reads, and other tables."""
        return sql.startswith("SELECT") and not any(table in sql for table in self._tables)


class _Waiting(threading.local):
    """What waits in this thread: its connection is its own."""

    gathered: _Gathered | None = None


_waiting = _Waiting()


@contextmanager
def together() -> Iterator[None]:
    """Make a transaction, and write what is written in it by as few statements as can be.

    What the database fills in of a row is read when it is first asked for.
    """
    link = connections[DEFAULT_DB_ALIAS]
    is_outermost = not link.in_atomic_block
    with transaction.atomic():
        if _waiting.gathered is not None:
            yield
            return
        wrappers = link.execute_wrappers
        gathered = _waiting.gathered = _Gathered()
        wrappers.append(gathered)
        try:
            yield
            gathered.finish(commits=is_outermost and link.commit_on_exit)
        finally:
            wrappers.remove(gathered)
            _waiting.gathered = None


def write(what: Write, *values: object, then: Then | None = None, may_refuse: bool = True) -> None:
    """Make a change, at once or together with others; ``then`` gets the rows that it returns.

    ``may_refuse``: it may raise, so that the transaction does not come about. Only after one that does not,
    the change may go together with the commit.
    """
    if _waiting.gathered is None:
        _write({what: [values]}, (what, then) if then else None)
    else:
        _waiting.gathered.add(what, values, then, may_refuse=may_refuse)


def write_at_once(what: Write, *values: object) -> Found:
    """Make a change, together with what waits, and return the rows that it returns."""
    found = list[tuple[Any, ...]]()
    write(what, *values, then=found.extend)
    if _waiting.gathered is not None:
        _waiting.gathered.flush()
    return found


def write_rows(what: Write, rows: Sequence[Sequence[object]]) -> None:
    """Insert rows, in this order."""
    if _waiting.gathered is None:
        for start in range(0, len(rows), MOST_ROWS):
            _write({what: list(rows[start : start + MOST_ROWS])})
        return
    for row in rows:
        _waiting.gathered.add(what, row)


def insert(row: Row, *, waits: bool = False) -> Row:
    """Insert a new row and return it. A key that the database counts is set on it at once, whatever waits.

    ``waits``: it is enough if that is there once the transaction has ended.
    """
    given = _given(row)
    names = tuple(given)
    filled_in = _filled_in(type(row), names)
    if _waiting.gathered is None or _meta(row).pk.attname in filled_in:
        what = _insertion(type(row), names, filled_in)
        write(what, *given.values(), then=partial(_set, row, filled_in), may_refuse=False)
        if _waiting.gathered is not None and not waits:
            _waiting.gathered.flush()
    else:
        write(_insertion(type(row), names), *given.values())
        read_when_asked(row, *filled_in)
    state = row._state  # noqa: SLF001  what Django's own insert sets
    state.adding, state.db = False, DEFAULT_DB_ALIAS
    return row


def insert_new(rows: Sequence[models.Model]) -> None:
    """Insert those rows of one table that no unique constraint knows yet."""
    given = [_given(row) for row in rows]
    (names,) = {tuple(one) for one in given}
    write_rows(_insertion_of_new(type(rows[0]), names), [tuple(one.values()) for one in given])


def insert_if_new(row: models.Model) -> Any:
    """Insert a row and return its key, or None if a unique constraint knows it already."""
    given = _given(row)
    what = _insertion_of_new(type(row), tuple(given), returns=(_meta(row).pk.attname,))
    return next((key for (key,) in write_at_once(what, *given.values())), None)


def update(row: models.Model, *names: str, now: Sequence[str] = ()) -> None:
    """Write these columns of a stored row; those in ``now`` get the database's time, which is set on it."""
    fields = _fields(type(row), names)
    values = [_written(field, getattr(row, field.attname)) for field in fields]
    if now and _waiting.gathered is None:
        _set(row, now, write_at_once(_change(type(row), names, tuple(now), returns=True), *values, row.pk))
    else:
        write(_change(type(row), names, tuple(now)), *values, row.pk)
        read_when_asked(row, *now)


def read_when_asked(row: models.Model, *names: str) -> None:
    """Have Django read these columns, which the database filled in, when somebody asks for one of them."""
    for name in names:
        vars(row).pop(name, None)


def _write(
    parts: dict[Write, list[Sequence[object]]],
    returning: tuple[Write, Then] | None = None,
    *,
    commits: bool = False,
) -> None:
    """Run the statement that these writes make; the one that returns rows comes last in it."""
    if returning is not None:
        last, then = returning
        parts[last] = parts.pop(last)
    sql = _merged(tuple((what, len(rows)) for what, rows in parts.items()))
    found = ask(sql, [value for rows in parts.values() for row in rows for value in row], commits=commits)
    if returning is not None:
        then(found)


@lru_cache(maxsize=512)
def _merged(parts: tuple[tuple[Write, int], ...]) -> str:
    """Return one statement for these writes and their numbers of rows."""
    *others, (last, count) = parts
    expressions = list[str]()
    for place, (other, rows) in enumerate(others):
        expressions += [other.before, f"part{place} AS ({other.text(rows)})"]
    needed = ", ".join(filter(None, [*expressions, last.before]))
    return f"WITH {needed} {last.text(count)}" if needed else last.text(count)


def _set(row: models.Model, names: Sequence[str], found: Found) -> None:
    for values in found:
        for name, value in zip(names, values, strict=True):
            setattr(row, name, value)


def _meta(model: models.Model | type[models.Model]) -> Any:
    return model._meta  # noqa: SLF001  Django documents it as public


def _given(row: models.Model) -> dict[str, Any]:
    """Return what is written of a new row, by attribute: all but what the database fills in."""
    values, given = vars(row), {}
    for field, name, is_counted in _columns(type(row)):
        value = values[name]
        if type(value) in AS_THEY_ARE:
            if not (is_counted and value is None):
                given[name] = value
        elif not isinstance(value, DatabaseDefault):
            given[name] = field.get_db_prep_save(value, connection)
    return given


def _written(field: Any, value: Any) -> Any:
    """Return a value as Django writes it; most are written as they are."""
    return value if type(value) in AS_THEY_ARE else field.get_db_prep_save(value, connection)


@cache
def _columns(model: type[models.Model]) -> Sequence[tuple[Any, str, bool]]:
    """Return each column's field, its attribute, and whether the database counts it; none makes its value."""
    fields = _meta(model).concrete_fields
    assert not any(vars(field).get("auto_now") or vars(field).get("auto_now_add") for field in fields)
    return [(field, field.attname, field.auto_created) for field in fields]


@cache
def _fields(model: type[models.Model], names: tuple[str, ...]) -> Sequence[Any]:
    return [_meta(model).get_field(name) for name in names]


@cache
def _filled_in(model: type[models.Model], given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the attributes that the database fills in: every column that was not given."""
    return tuple(field.attname for field in _meta(model).concrete_fields if field.attname not in given)


@cache
def _insertion(model: type[models.Model], given: tuple[str, ...], returns: tuple[str, ...] = ()) -> Write:
    """Return what inserts one row: each has a time of its own, by which people see them in their order."""
    into, row = _into(model, given)
    return Write(
        sql=f"{into}{row}", after=_returning(model, returns), tables=frozenset({_meta(model).db_table})
    )


@cache
def _insertion_of_new(
    model: type[models.Model], given: tuple[str, ...], returns: tuple[str, ...] = ()
) -> Write:
    into, row = _into(model, given)
    return Write(
        sql=into,
        row=row,
        after=f" ON CONFLICT DO NOTHING{_returning(model, returns)}",
        tables=frozenset({_meta(model).db_table}),
    )


def _into(model: type[models.Model], given: tuple[str, ...]) -> tuple[str, str]:
    columns = ", ".join(_column(model, name) for name in given)
    places = ", ".join(["%s"] * len(given))
    return f"INSERT INTO {_quoted(_meta(model).db_table)} ({columns}) VALUES ", f"({places})"  # noqa: S608  no value


@cache
def _change(
    model: type[models.Model], names: tuple[str, ...], now: tuple[str, ...], *, returns: bool = False
) -> Write:
    changes = [f"{_column(model, name)} = %s" for name in names]
    changes += [f"{_column(model, name)} = {NOW}" for name in now]
    key, table = _quoted(_meta(model).pk.column), _quoted(_meta(model).db_table)
    return Write(
        sql=f"UPDATE {table} SET {', '.join(changes)} WHERE {key} = %s",  # noqa: S608  no value
        after=_returning(model, now if returns else ()),
        tables=frozenset({_meta(model).db_table}),
    )


def _returning(model: type[models.Model], names: Sequence[str]) -> str:
    return f" RETURNING {', '.join(_column(model, name) for name in names)}" if names else ""


@cache
def _column(model: type[models.Model], name: str) -> str:
    return _quoted(_meta(model).get_field(name).column)


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
