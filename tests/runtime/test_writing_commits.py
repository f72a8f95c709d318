"""Writing together: the last write goes with the commit, and nothing is committed that is not to be."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from psycopg._connection_base import BaseConnection

from agents_runtime import statement
from agents_runtime.models import RunStep
from agents_runtime.writing import Write, insert, together, update, write
from reviewer.models import AuditEvent
from tests.runtime.crashing import wait_until
from tests.runtime.test_writing import event, make_run, set_error, step
from tests.servers import servers


@pytest.fixture
def commands(committed_db: None, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What psycopg itself sends to begin and end transactions."""
    sent = list[bytes]()
    send = BaseConnection._exec_command

    def noted(self: Any, command: Any, *rest: Any) -> Any:
        sent.append(bytes(command))
        return send(self, command, *rest)

    monkeypatch.setattr(BaseConnection, "_exec_command", noted)
    return sent


def test_the_last_write_goes_with_the_commit(commands: list[bytes]) -> None:
    run, order = make_run(), list[str]()
    commands.clear()
    with together():
        transaction.on_commit(lambda: order.append("told"))
        event(run, "together")
        order.append("written")
    assert commands == []
    assert order == ["written", "told"]
    with psycopg.connect(servers().app_url) as another:
        assert another.execute("SELECT 1 FROM reviewer_auditevent WHERE run_id = %s", [run.pk]).fetchone()


def test_a_row_whose_key_may_wait_goes_with_the_commit_and_has_its_key_then(commands: list[bytes]) -> None:
    run = make_run()
    commands.clear()
    with together():
        made = insert(step(run, "one"), waits=True)
        meanwhile: object = made.pk
    assert commands == []
    assert meanwhile is None
    assert (made.pk, made.at) == RunStep.objects.values_list("pk", "at").get(run=run)


def refuse(_: object) -> None:
    raise ZeroDivisionError


def test_what_is_refused_for_what_it_returned_is_not_committed(committed_db: None) -> None:
    run = make_run()
    what = Write(
        "UPDATE agents_runtime_run SET error = %s WHERE id = %s RETURNING id",
        frozenset({"agents_runtime_run"}),
    )

    def change() -> None:
        with together():
            event(run, "refused")
            write(what, "refused", run.pk, then=refuse)

    with pytest.raises(ZeroDivisionError):
        change()
    run.refresh_from_db()
    assert run.error == ""
    assert not AuditEvent.objects.filter(run_id=run.pk).exists()


@pytest.mark.parametrize("outer", [transaction.atomic, together])
def test_nothing_is_committed_before_the_outermost_transaction_ends(
    committed_db: None, outer: Callable[[], AbstractContextManager[Any]]
) -> None:
    run = make_run()

    def change() -> None:
        with outer():
            with together():
                event(run, "within")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    assert not AuditEvent.objects.filter(run_id=run.pk).exists()


def test_what_is_to_be_rolled_back_is_not_committed(committed_db: None) -> None:
    run = make_run()

    def change() -> None:
        with together():
            event(run, "in vain")
            transaction.set_rollback(True)

    with pytest.raises(transaction.TransactionManagementError):
        change()
    assert not AuditEvent.objects.filter(run_id=run.pk).exists()


def test_who_commits_by_hand_commits_by_hand(committed_db: None) -> None:
    run = make_run()
    transaction.set_autocommit(False)
    try:
        with together():
            event(run, "by hand")
        transaction.rollback()
    finally:
        transaction.set_autocommit(True)
    assert not AuditEvent.objects.filter(run_id=run.pk).exists()


class Rang(Exception):
    """An alarm went off."""


def ring(*_: object) -> None:
    raise Rang


def test_what_is_interrupted_while_it_waits_is_not_committed_afterwards(committed_db: None) -> None:
    """The commit is on its way with it; the server would come to it once the row is free."""
    run = make_run()
    insert(step(run, "one"))

    def change() -> None:
        with together():
            update(RunStep.objects.get(run=run), "text")

    before = signal.signal(signal.SIGALRM, ring)
    with psycopg.connect(servers().app_url) as other:
        other.execute("UPDATE agents_runtime_runstep SET text = 'theirs' WHERE run_id = %s", [run.pk])
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(Rang):
                change()
        finally:
            signal.signal(signal.SIGALRM, before)
        connection.close()
        other.commit()
        wait_until(lambda: not is_at_work())
        found = other.execute("SELECT text FROM agents_runtime_runstep WHERE run_id = %s", [run.pk])
        assert found.fetchall() == [("theirs",)]


def is_at_work() -> bool:
    """Say whether another session of the application is in the middle of something."""
    with psycopg.connect(servers().superuser_url) as link:
        return bool(
            link.execute(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' "
                "AND usename = %s AND pid <> pg_backend_pid()",
                [connection.settings_dict["USER"]],
            ).fetchall()
        )


@pytest.mark.parametrize("step_of_psycopg", ["send", "fetch_many", "fetch"])
def test_a_session_that_was_left_on_its_way_is_not_given_to_anybody_else(
    committed_db: None, monkeypatch: pytest.MonkeyPatch, step_of_psycopg: str
) -> None:
    run = make_run()

    def change() -> None:
        with together():
            event(run, "left")

    with monkeypatch.context() as patched:
        patched.setattr(statement, step_of_psycopg, ring)
        with pytest.raises(Rang):
            change()
    for _ in range(5):
        connection.close()
        set_error(run, "found")
