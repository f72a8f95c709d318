"""The queries that every step makes: their SQL is made once in a process, and run again with other values.

Django builds SQL anew each time, and for one row by its key that takes several times as long as PostgreSQL
takes to answer. What a query means is still said in Django's own words; rows and locks are as Django has
them. Signals are not sent: nothing here listens to any. Does not live here: what is written (``writing``).

PostgreSQL plans each of them once in a session, too. What is the same in every run of a query stands in its
text, not among its values: a plan for any values can use an index on open tasks only if it sees that they
are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.signals import connection_created
from django.db.models.query import get_related_populators
from django.dispatch import receiver
from psycopg.sql import Literal

from agents_runtime.direct import PLAN_ONCE
from agents_runtime.statement import PLACE, Flight, Rows

Row = TypeVar("Row", bound=models.Model)
SOME_ID = UUID("5c0c9d0b-7a0e-4c43-9f5e-3a1d1f0f6b7e")
SOME_NUMBER, ANOTHER_NUMBER = 1_973_421_867, 1_604_255_913
MOST_PREPARED = 400
"""Statements that a session keeps: more than there are, for what it forgets is planned anew."""
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
        return self.made_of(ask(*self.asked(*values)))

    def first(self, *values: object) -> Row | None:
        """Return the first row for these values, if any."""
        return next(iter(self.rows(*values)), None)

    def asked(self, *values: object) -> tuple[str, Sequence[object]]:
        """Return the statement and the values of its places."""
        shape = self._shape or self._compile()
        return shape.sql, [values[which] for which in shape.places]

    def made_of(self, found: Rows) -> list[Row]:
        """Return the rows of the model that these rows of the statement stand for."""
        shape = self._shape or self._compile()
        return [self._row(shape, one) for one in found]

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


@receiver(connection_created)
def _get_ready(connection: Any, **_: Any) -> None:
    """Prepare a new session for what it is to prepare; the pool hands the same one out again and again."""
    session = connection.connection
    if settings.COUNTERSIGN_PREPARE and session.prepared_max != MOST_PREPARED:
        session.prepared_max = MOST_PREPARED
        session.execute(f"SET {PLAN_ONCE}")


def rows_of_all(*asked: tuple[Compiled[Any], Sequence[object]]) -> list[list[Any]]:
    """Return the rows of several queries for these values; they go to the server together, in this order."""
    found = ask_all([query.asked(*values) for query, values in asked])
    return [query.made_of(rows) for (query, _), rows in zip(asked, found, strict=True)]


def ask(sql: str, values: Sequence[object], *, commits: bool = False) -> Rows:
    """Run a statement over Django's connection, and return what it returns.

    As with a cursor of Django's, transactions and wrappers are looked after, and errors are Django's.
    ``commits``: it is the last one of the outermost transaction. It commits that, and Django then does not.
    """
    return ask_all([(sql, values)], commits=commits)[0]


def ask_all(asked: Sequence[tuple[str, Sequence[object]]], *, commits: bool = False) -> list[Rows]:
    """Run several statements, which go to the server together; each sees what those before it did."""
    link: Any = connections[DEFAULT_DB_ALIAS]  # `connection` would look this up at every attribute
    link.ensure_connection()
    flight = Flight(link.connection, asked, commits=commits)
    cursor = link._prepare_cursor(flight)  # noqa: SLF001  as cursor() does
    cursor.execute("; ".join([sql for sql, _ in asked]), [value for _, values in asked for value in values])
    return flight.rows
