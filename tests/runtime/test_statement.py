"""Kept statements: whatever happened before in their session, they give what a cursor gives, or its error."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import psycopg
import pytest
from django.db import DataError, OperationalError, connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.adapt import PyFormat

from agents_runtime.compiled import ask
from agents_runtime.statement import MOST_KEPT, Statement, statement
from tests.servers import servers

MIXED = "SELECT %s::text, %s::bigint, %s::timestamptz, %s::uuid, %s::bytea, %s::boolean, '100 %%'"
TIMES = st.datetimes(timezones=st.just(dt.UTC))
VALUES = st.tuples(
    st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | TIMES,
    st.none() | st.uuids(),
    st.none() | st.binary(),
    st.none() | st.booleans(),
)


@pytest.fixture
def session(db: None) -> psycopg.Connection[Any]:
    connection.ensure_connection()
    found: psycopg.Connection[Any] = connection.connection
    return found


@settings(deadline=None, max_examples=50)
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_values_of_any_kind_come_back_as_they_went(rows: list[tuple[Any, ...]]) -> None:
    with psycopg.connect(servers().app_url, prepare_threshold=0) as link:
        for row in rows:
            kept = statement(link, MIXED)
            kept.execute(MIXED, row)
            assert kept.rows == [(*row, "100 %")]


def test_a_statement_is_kept_with_its_session(session: psycopg.Connection[Any]) -> None:
    assert statement(session, "SELECT 1") is statement(session, "SELECT 1")
    with psycopg.connect(servers().app_url) as other:
        assert statement(other, "SELECT 1") is not statement(session, "SELECT 1")


def test_what_it_gave_is_not_kept(session: psycopg.Connection[Any]) -> None:
    assert ask("SELECT repeat('x', %s)", [10])
    assert statement(session, "SELECT repeat('x', %s)").rows == []


def test_a_session_keeps_only_so_many_statements() -> None:
    with psycopg.connect(servers().app_url, prepare_threshold=0, autocommit=True) as link:
        for number in [*range(MOST_KEPT + 3), 0, 1]:
            kept = statement(link, f"SELECT {number}::bigint")
            kept.execute("", [])
            assert kept.take() == [(number,)]
        assert len(vars(link)["countersign_statements"]) == MOST_KEPT


def test_one_that_failed_works_with_other_values(session: psycopg.Connection[Any]) -> None:
    divided = "SELECT 12 / %s::int"
    for _ in range(3):
        with pytest.raises(DataError, match="division by zero"), transaction.atomic():
            ask(divided, [0])
        assert ask(divided, [4]) == [(3,)]


def test_what_psycopg_forgets_after_a_rollback_is_prepared_again(session: psycopg.Connection[Any]) -> None:
    """It lets the server forget every statement of the session when a savepoint or transaction ends so."""

    def count_in_vain(number: int) -> None:
        with transaction.atomic():
            assert ask("SELECT %s::int + 1", [number]) == [(number + 1,)]
            raise ZeroDivisionError

    for number in range(4):
        assert ask("SELECT %s::int", [number]) == [(number,)]
        with pytest.raises(ZeroDivisionError):
            count_in_vain(number)


def test_a_table_that_changed_its_form_is_read_in_the_new_one() -> None:
    with psycopg.connect(servers().owner_url, prepare_threshold=0, autocommit=True) as link:
        link.execute("CREATE TEMP TABLE thing (a int)")
        link.execute("INSERT INTO thing VALUES (1)")
        kept = statement(link, "SELECT a FROM thing WHERE a >= %s")
        kept.execute("", [0])
        assert kept.rows == [(1,)]
        link.execute("DROP TABLE thing")
        link.execute("CREATE TEMP TABLE thing (a uuid)")
        key = uuid.uuid4()
        link.execute("INSERT INTO thing VALUES (%s)", [key])
        again = statement(link, "SELECT a FROM thing")
        again.execute("", [])
        assert again.rows == [(key,)]


def test_a_session_that_ended_is_an_error_of_django_and_the_next_one_works(committed_db: None) -> None:
    assert ask("SELECT 1", []) == [(1,)]
    (pid,) = ask("SELECT pg_backend_pid()", [])[0]
    with psycopg.connect(servers().superuser_url, autocommit=True) as link:
        link.execute("SELECT pg_terminate_backend(%s)", [pid])
    with pytest.raises(OperationalError):
        ask("SELECT 1", [])
    connection.close()
    assert ask("SELECT 1", []) == [(1,)]


def test_without_a_transaction_each_commits_by_itself(committed_db: None) -> None:
    (first,) = ask("SELECT txid_current()", [])[0]
    (second,) = ask("SELECT txid_current()", [])[0]
    assert first != second
    with transaction.atomic():
        (first,) = ask("SELECT txid_current()", [])[0]
        (second,) = ask("SELECT txid_current()", [])[0]
    assert first == second


def test_psycopg_takes_and_gives_what_a_kept_statement_relies_on() -> None:
    """Contract: the parts of psycopg that run it, two of them its own, are there and mean the same."""
    with psycopg.connect(servers().app_url, prepare_threshold=0, autocommit=True) as link:
        kept = Statement(link, "SELECT %s::int, %s::text")
        assert kept.query == b"SELECT $1::int, $2::text"
        assert kept._formats == [PyFormat.AUTO] * 2
        kept.execute("", [1, "a"])
        assert kept.rows == [(1, "a")]
        assert (kept.query, kept.types) in link._prepared._names
        assert link._prepared.clear()
        kept.execute("", [2, "b"])
        assert kept.rows == [(2, "b")]
