"""Kept statements: whatever happened before in their session, they give what a cursor gives, or its error."""

from __future__ import annotations

import datetime as dt
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg._connection_base import BaseConnection
from psycopg.adapt import PyFormat
from psycopg.pq import TransactionStatus

from agents_runtime.compiled import ask, ask_all
from agents_runtime.statement import MOST_KEPT, run, statement
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
            assert run(link, MIXED, *row) == [(*row, "100 %")]


class Rang(Exception):
    """An alarm went off."""


def other_session() -> psycopg.Connection[Any]:
    return psycopg.connect(servers().superuser_url, autocommit=True)


@contextmanager
def table(form: str) -> Iterator[None]:
    """Make a table that this test's accounts may write, and remove it."""
    name = form.partition(" ")[0]
    with other_session() as link:
        link.execute(f"CREATE TABLE {form}")
        link.execute(f"GRANT ALL ON {name} TO PUBLIC")
    try:
        yield
    finally:
        connection.close()
        with other_session() as link:
            link.execute(f"DROP TABLE {name}")


def test_a_statement_is_kept_with_its_session(session: psycopg.Connection[Any]) -> None:
    assert statement(session, "SELECT 1") is statement(session, "SELECT 1")
    with psycopg.connect(servers().app_url) as other:
        assert statement(other, "SELECT 1") is not statement(session, "SELECT 1")


def test_what_it_gave_is_not_kept(session: psycopg.Connection[Any]) -> None:
    text = ask("SELECT repeat('x', %s)", [1_000_000])[0][0]
    holders = sys.getrefcount(text) - 1  # less the call's own
    assert holders == 1
    assert statement(session, "SELECT repeat('x', %s)")._transformer.pgresult is None


def test_a_session_keeps_only_so_many_statements() -> None:
    with psycopg.connect(servers().app_url, prepare_threshold=0, autocommit=True) as link:
        for number in [*range(MOST_KEPT + 3), 0, 1]:
            assert run(link, f"SELECT {number}::bigint") == [(number,)]
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
        assert run(link, "SELECT a FROM thing") == [(1,)]
        link.execute("DROP TABLE thing")
        link.execute("CREATE TEMP TABLE thing (a uuid)")
        key = uuid.uuid4()
        link.execute("INSERT INTO thing VALUES (%s)", [key])
        assert run(link, "SELECT a FROM thing") == [(key,)]


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


def test_several_go_together_and_each_sees_what_those_before_it_did(committed_db: None) -> None:
    with transaction.atomic():
        ask("CREATE TEMP TABLE thing (a int) ON COMMIT DROP", [])
        assert ask_all(
            [
                ("INSERT INTO thing VALUES (%s) RETURNING a", [1]),
                ("UPDATE thing SET a = a + %s", [1]),
                ("SELECT a, %s::text FROM thing", ["x"]),
            ]
        ) == [[(1,)], [], [(2, "x")]]


def test_the_first_one_goes_with_what_begins_its_transaction(
    committed_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = list[bytes]()
    send = BaseConnection._exec_command

    def noted(self: Any, command: bytes, *rest: Any) -> Any:
        commands.append(command)
        return send(self, command, *rest)

    monkeypatch.setattr(BaseConnection, "_exec_command", noted)
    with transaction.atomic():
        (first,) = ask("SELECT txid_current()", [])[0]
        assert connection.connection.pgconn.transaction_status == TransactionStatus.INTRANS
        (second,) = ask("SELECT txid_current()", [])[0]
    assert first == second
    assert commands == [b"COMMIT"]


def test_the_last_one_may_commit(committed_db: None) -> None:
    with other_session() as other:
        with transaction.atomic():
            (first,) = ask("SELECT txid_current()", [])[0]
            (second,) = ask("SELECT txid_current()", [], commits=True)[0]
            status = other.execute("SELECT txid_status(%s)", [first]).fetchone()
        assert (first, status) == (second, ("committed",))
        assert connection.connection.pgconn.transaction_status == TransactionStatus.IDLE


@pytest.mark.parametrize("place", [0, 1, 2])
def test_of_those_that_go_together_with_one_that_fails_none_takes_effect(
    committed_db: None, place: int
) -> None:
    asked: list[tuple[str, list[object]]] = [("INSERT INTO kept_thing VALUES (%s)", [n]) for n in (7, 8)]
    asked.insert(place, ("SELECT 12 / %s::int", [0]))
    with table("kept_thing (a int)"):
        for _ in range(3):  # not prepared, prepared, forgotten with the rollback
            with pytest.raises(DataError, match="division by zero"), transaction.atomic():
                ask_all(asked, commits=True)
            assert ask("SELECT count(*) FROM kept_thing", []) == [(0,)]
        with transaction.atomic():
            ask_all([one for one in asked if one[1] != [0]], commits=True)
        assert ask("SELECT count(*) FROM kept_thing", []) == [(2,)]


def test_a_constraint_that_waits_for_the_commit_is_an_error_of_the_one_that_commits(
    committed_db: None,
) -> None:
    with table("kept_thing (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)"):
        ask("INSERT INTO kept_thing VALUES (1)", [])
        with pytest.raises(IntegrityError, match="kept_thing_a_key"), transaction.atomic():
            ask("INSERT INTO kept_thing VALUES (%s)", [1], commits=True)
        assert ask("SELECT count(*) FROM kept_thing", []) == [(1,)]


def test_megabytes_go_and_come_together(committed_db: None) -> None:
    text = "x" * 20_000_000
    with transaction.atomic():
        found = ask_all([("SELECT %s::text", [text]), ("SELECT %s::text", [text])], commits=True)
    assert [len(rows[0][0]) for rows in found] == [len(text)] * 2


def test_one_that_is_interrupted_on_its_way_leaves_a_session_that_nobody_gets_again(
    committed_db: None,
) -> None:
    def ring(*_: object) -> None:
        raise Rang

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Rang), transaction.atomic():
            ask_all([("SELECT pg_sleep(%s)", [30]), ("SELECT %s::int", [1])], commits=True)
    finally:
        signal.signal(signal.SIGALRM, before)
    connection.close()
    for _ in range(5):
        assert ask("SELECT %s::int", [1]) == [(1,)]
        connection.close()


def test_a_session_that_ends_on_the_way_is_an_error_of_django_and_the_next_one_works(
    committed_db: None,
) -> None:
    with pytest.raises(OperationalError), transaction.atomic():
        ask_all(
            [("SELECT pg_terminate_backend(pg_backend_pid()), %s::int", [1]), ("SELECT 1", [])], commits=True
        )
    connection.close()
    assert ask("SELECT 1", []) == [(1,)]


def test_psycopg_takes_and_gives_what_a_kept_statement_relies_on() -> None:
    """Contract: the parts of psycopg that run it, two of them its own, are there and mean the same."""
    with psycopg.connect(servers().app_url, prepare_threshold=0, autocommit=True) as link:
        sql = "SELECT %s::int, %s::text"
        kept = statement(link, sql)
        assert kept.query == b"SELECT $1::int, $2::text"
        assert kept._formats == [PyFormat.AUTO] * 2
        assert run(link, sql, 1, "a") == [(1, "a")]
        assert (kept.query, kept.types) in link._prepared._names
        assert link._prepared.clear()
        assert run(link, sql, 2, "b") == [(2, "b")]
