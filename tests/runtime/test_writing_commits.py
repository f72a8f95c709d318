"""Writing together: the last write goes with the commit, and nothing is committed that is not to be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
from django.db import transaction
from psycopg._connection_base import BaseConnection

from agents_runtime.models import RunStep
from agents_runtime.writing import Write, insert, together, write
from reviewer.models import AuditEvent
from tests.runtime.test_writing import event, make_run, step
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
            write(what, "refused", run.pk, then=refuse, may_refuse=True)

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
