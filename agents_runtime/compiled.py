"""The statements that every step makes: their SQL is made once in a process, and run again with other values.

Django builds SQL anew each time, and for one row by its key that takes several times as long as PostgreSQL
takes to answer. What a query means is still said in Django's own words; rows, locks and defaults are as
Django has them. Signals are not sent: nothing here listens to any.

PostgreSQL plans each of them once in a session, too. What is the same in every run of a query stands in its
text, not among its values: a plan for any values can use an index on open tasks only if it sees that they
are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Self, TypeVar, cast
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.signals import connection_created
from django.db.models.expressions import DatabaseDefault
from django.db.models.query import get_related_populators
from django.dispatch import receiver
from psycopg.sql import Literal

from agents_runtime.direct import PLAN_ONCE

Row = TypeVar("Row", bound=models.Model)
SOME_ID = UUID("5c0c9d0b-7a0e-4c43-9f5e-3a1d1f0f6b7e")
SOME_NUMBER, ANOTHER_NUMBER = 1_973_421_867, 1_604_255_913
NOW = "STATEMENT_TIMESTAMP()"
MOST_PREPARED = 400
"""Statements that a session keeps: more than there are, for what it forgets is planned anew."""
PLACE = re.compile("%[s%]")
_populators: Any = get_related_populators  # the stubs are those of a later Django


@dataclass(frozen=True)
class _Shape:
    """A query's SQL, which value belongs to each of its places, and what its rows become."""

    sql: str
    places: Sequence[int]
    columns: slice
    names: Sequence[str]
    annotations: Sequence[tuple[str, int]]
    populators: Sequence[Any]


class _Prepared(psycopg.Cursor[Any]):
    """Lets PostgreSQL, too, make a statement's plan once in a session, and send what it finds in binary form.

    A transaction pooler that knows no prepared statements cannot have that: ``COUNTERSIGN_PREPARE=0``. For
    times in text form Django has a parser of its own, in Python; those in binary form are read by psycopg's.
    """

    def execute(self, query: Any, params: Any = None, **_: Any) -> Self:
        return super().execute(query, params, prepare=settings.COUNTERSIGN_PREPARE, binary=True)


class Compiled(Generic[Row]):
    """A query whose rows depend on a few values.

    ``make`` gets the values and returns the queryset; ``examples`` are any values of these kinds that the
    query holds nowhere else.
    """

    def __init__(self, make: Callable[..., models.QuerySet[Row]], *examples: object) -> None:
        self._make = make
        self._examples = examples
        self._shape: _Shape | None = None
        self._model: type[Row] | None = None

    def rows(self, *values: object) -> list[Row]:
        """Return the rows for these values. A query that locks is to be asked inside a transaction."""
        shape = self._shape or self._compile()
        with _cursor() as cursor:
            cursor.execute(shape.sql, [values[which] for which in shape.places])
            return [self._row(shape, found) for found in cursor.fetchall()]

    def first(self, *values: object) -> Row | None:
        """Return the first row for these values, if any."""
        return next(iter(self.rows(*values)), None)

    def _row(self, shape: _Shape, found: tuple[Any, ...]) -> Row:
        row = cast(type[Row], self._model).from_db(DEFAULT_DB_ALIAS, shape.names, found[shape.columns])
        for name, place in shape.annotations:
            setattr(row, name, found[place])
        for populator in shape.populators:
            populator.populate(found, row)
        return row

    def _compile(self) -> _Shape:
        """Make the SQL; two threads that do so at once make the same."""
        queryset = self._make(*self._examples)
        compiler = queryset.query.get_compiler(connection=connection)
        made, parameters = compiler.as_sql()
        sql, values = _with_constants(made, parameters, self._examples)
        fields = compiler.klass_info["select_fields"]
        columns = slice(fields[0], fields[-1] + 1)
        self._model = queryset.model
        self._shape = _Shape(
            sql=sql,
            places=[self._examples.index(value) for value in values],
            columns=columns,
            names=[column.target.attname for column, _, _ in compiler.select[columns]],
            annotations=list(compiler.annotation_col_map.items()),
            populators=_populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS),
        )
        return self._shape


def _with_constants(
    sql: str, parameters: Sequence[object], examples: Sequence[object]
) -> tuple[str, Sequence[object]]:
    """Write those parameters that are no examples into the statement; return it and the others."""
    connection.ensure_connection()
    left, kept = iter(parameters), list[object]()

    def written(place: re.Match[str]) -> str:
        if place[0] == "%%":
            return place[0]
        parameter = next(left)
        if parameter in examples:
            kept.append(parameter)
            return place[0]
        return Literal(parameter).as_string(connection.connection).replace("%", "%%")

    return PLACE.sub(written, sql), kept


def insert(row: Row) -> Row:
    """Insert a new row; its key and what the database fills in are set on it. Return it."""
    given = _given(row)
    sql, returned = _insertion(type(row), tuple(given))
    with _cursor() as cursor:
        cursor.execute(sql, list(given.values()))
        found = cursor.fetchone() if returned else ()
    for name, value in zip(returned, found, strict=True):
        setattr(row, name, value)
    state = row._state  # noqa: SLF001  what Django's own insert sets
    state.adding, state.db = False, DEFAULT_DB_ALIAS
    return row


def insert_new(rows: Sequence[models.Model]) -> list[Any]:
    """Insert those rows of one table that no unique constraint knows yet; return the keys of these."""
    given = [_given(row) for row in rows]
    (names,) = {tuple(one) for one in given}
    sql = _insertion_of_new(type(rows[0]), names, len(rows))
    with _cursor() as cursor:
        cursor.execute(sql, [value for one in given for value in one.values()])
        return [row[0] for row in cursor.fetchall()]


def update(row: models.Model, *names: str, now: Sequence[str] = ()) -> None:
    """Write these columns of a stored row; those in ``now`` get the database's time, which is set on it."""
    fields = _fields(type(row), names)
    values = [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields]
    with _cursor() as cursor:
        cursor.execute(_change(type(row), names, tuple(now)), [*values, row.pk])
        found = (cursor.fetchone() or ()) if now else ()
    for name, value in zip(now, found, strict=False):
        setattr(row, name, value)


def ask(sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement that Django has no words for, and return what it returns."""
    with _cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def tell(sql: str, *values: object) -> None:
    """Run a statement that Django has no words for, and that returns nothing."""
    with _cursor() as cursor:
        cursor.execute(sql, values)


def _meta(model: models.Model | type[models.Model]) -> Any:
    return model._meta  # noqa: SLF001  Django documents it as public


def _given(row: models.Model) -> dict[str, Any]:
    """Return what is written of a new row, by attribute: all but what the database fills in."""
    values = {field: field.pre_save(row, add=True) for field in _meta(row).concrete_fields}
    return {
        field.attname: field.get_db_prep_save(value, connection)
        for field, value in values.items()
        if not isinstance(value, DatabaseDefault) and not (field.auto_created and value is None)
    }


@cache
def _fields(model: type[models.Model], names: tuple[str, ...]) -> Sequence[Any]:
    return [_meta(model).get_field(name) for name in names]


@cache
def _insertion(model: type[models.Model], given: tuple[str, ...]) -> tuple[str, Sequence[str]]:
    """Return the statement, and the names of what it returns: every column that was not given."""
    names = {field.attname: _quoted(field.column) for field in _meta(model).concrete_fields}
    returned = [name for name in names if name not in given]
    sql = _insertion_of(model, given, count=1)
    if returned:
        sql += f" RETURNING {', '.join(names[name] for name in returned)}"
    return sql, returned


@cache
def _insertion_of_new(model: type[models.Model], given: tuple[str, ...], count: int) -> str:
    key = _quoted(_meta(model).pk.column)
    return f"{_insertion_of(model, given, count=count)} ON CONFLICT DO NOTHING RETURNING {key}"


def _insertion_of(model: type[models.Model], given: tuple[str, ...], *, count: int) -> str:
    columns = ", ".join(_quoted(_meta(model).get_field(name).column) for name in given)
    row = f"({', '.join(['%s'] * len(given))})"
    values = ", ".join([row] * count)
    return f"INSERT INTO {_quoted(_meta(model).db_table)} ({columns}) VALUES {values}"  # noqa: S608


@cache
def _change(model: type[models.Model], names: tuple[str, ...], now: tuple[str, ...]) -> str:
    def column(name: str) -> str:
        return _quoted(cast(Any, _meta(model).get_field(name)).column)

    changes = [f"{column(name)} = %s" for name in names] + [f"{column(name)} = {NOW}" for name in now]
    key = _quoted(cast(Any, _meta(model).pk).column)
    returning = f" RETURNING {', '.join(column(name) for name in now)}" if now else ""
    table = _quoted(_meta(model).db_table)
    return f"UPDATE {table} SET {', '.join(changes)} WHERE {key} = %s{returning}"  # noqa: S608


@receiver(connection_created)
def _get_ready(connection: Any, **_: Any) -> None:
    """Prepare a new session for what it is to prepare; the pool hands the same one out again and again."""
    session = connection.connection
    if settings.COUNTERSIGN_PREPARE and session.prepared_max != MOST_PREPARED:
        session.prepared_max = MOST_PREPARED
        session.execute(f"SET {PLAN_ONCE}")


def _cursor() -> Any:
    """Return a cursor as ``connection.cursor()`` does: it watches transactions, and errors are Django's."""
    link: Any = connections[DEFAULT_DB_ALIAS]  # `connection` would look this up at every attribute
    link.ensure_connection()
    return link._prepare_cursor(_Prepared(link.connection))  # noqa: SLF001


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
