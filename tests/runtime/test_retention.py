"""Threads of runs that are over shrink and end; what was decided and done never does."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.utils.timezone import now
from pytest_django.fixtures import Settings

from agents_runtime import checkpointer, retention, runs, thread_lock, threads
from agents_runtime.errors import WrongState
from agents_runtime.models import Pause, Run, RunStep, ToolExecution
from reviewer.models import AuditEvent, ReviewTask
from tests.agents import effects
from tests.processes import Process, Worker
from tests.runtime.crashing import wait_until
from tests.runtime.driving import (
    APPROVE,
    advance,
    answer,
    call,
    fresh,
    give,
    last_words,
    pending,
    script,
    start,
)

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
MONTH = timedelta(days=30)


def finished(agent: str = "t-per-call") -> Run:
    """Return a finished run with one approved payment."""
    run = start(agent, script([PAY]))
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    return run


def age(run: Run, days: float) -> Run:
    """Let a run have ended so many days ago."""
    Run.objects.filter(pk=run.pk).update(finished_at=now() - timedelta(days=days))
    return fresh(run)


def rows(run: Run) -> int:
    """Return how many checkpoints of the run's thread are stored."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM langgraph.checkpoints WHERE thread_id = %s", [run.thread_id])
        return int(cursor.fetchone()[0])


def evidence(run: Run) -> list[int]:
    """Return how many rows of each kind of evidence there are."""
    of_run: list[Any] = [Pause, ToolExecution, RunStep, ReviewTask]
    return [AuditEvent.objects.filter(run_id=run.pk).count()] + [
        model.objects.filter(run=run).count() for model in of_run
    ]


def test_a_finished_thread_keeps_only_its_latest_checkpoint_and_still_takes_new_input() -> None:
    run = age(finished(), days=1)
    before, kept = rows(run), evidence(run)
    assert before > 3
    threads.tidy(run.pk, keep=None)
    assert rows(run) == 1
    assert evidence(run) == kept
    assert fresh(run).pruned_at is not None
    runs.add_input(run.pk, script([call("look", what="y")]))
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid 1 to a | saw y"
    assert run.pruned_at is None  # there is something to prune again
    assert effects.count("pay") == 1


def test_a_deep_agents_thread_which_cannot_be_pruned_is_kept_whole_until_it_is_deleted() -> None:
    run = age(finished("t-deep"), days=1)
    before = rows(run)
    threads.tidy(run.pk, keep=None)
    assert rows(run) == before > 1
    assert not retention.due(keep=None).exists()  # nobody asks again and again
    threads.tidy(age(run, days=31).pk, keep=MONTH)
    assert rows(run) == 0
    assert fresh(run).thread_deleted_at is not None


def test_a_thread_is_deleted_when_its_time_is_over_and_leaves_a_tombstone() -> None:
    run = age(finished(), days=31)
    kept = evidence(run)
    output = run.output
    threads.tidy(run.pk, keep=MONTH)
    run = fresh(run)
    assert rows(run) == 0
    assert run.thread_deleted_at is not None
    assert run.thread_deleted_by == "retention after 30 days"
    assert (run.status, run.output) == ("finished", output)
    assert evidence(run) == [kept[0] + 1, *kept[1:]]
    (told,) = AuditEvent.objects.filter(run_id=run.pk, type="run.thread_deleted")
    assert "retention after 30 days" in told.payload
    threads.tidy(run.pk, keep=MONTH)
    assert AuditEvent.objects.filter(type="run.thread_deleted").count() == 1


def test_a_deleted_thread_takes_no_input_and_starts_nothing_anew() -> None:
    run = age(finished(), days=31)
    threads.tidy(run.pk, keep=MONTH)
    with pytest.raises(WrongState, match=r"deleted on .* by retention after 30 days"):
        runs.add_input(run.pk, script([PAY]))
    before = effects.all_effects()
    assert advance(run).status == "finished"  # as by a message that was on its way
    assert effects.all_effects() == before
    assert rows(run) == 0
    with pytest.raises(IntegrityError, match="run_without_thread_is_over"), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(status="running")


@pytest.mark.parametrize("state", ["waiting", "failed", "fresh"])
def test_a_thread_that_may_still_be_needed_is_left_alone(state: str) -> None:
    run = start("t-per-call", script([PAY]))
    if state == "failed":
        effects.flag("fail_pay").touch()
        answer(pending(run), APPROVE)
    if state == "fresh":
        answer(pending(run), APPROVE)
    before = rows(run)
    assert not retention.due(keep=MONTH).exists()
    threads.tidy(run.pk, keep=MONTH)
    assert rows(run) == before
    with pytest.raises(WrongState):
        threads.delete(start("t-per-call", script([PAY])).pk, by="Ada")


def test_a_thread_that_a_worker_holds_is_left_alone() -> None:
    run = age(finished(), days=31)
    with thread_lock.hold(run.pk) as epoch:
        assert epoch is not None
    Run.objects.filter(pk=run.pk).update(settled_epoch=epoch)
    before = rows(run)
    with thread_lock.hold(run.pk):
        in_another_session(run)
    assert rows(run) == before


def test_input_given_while_a_thread_is_pruned_has_its_turn_pruned_in_its_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = age(finished(), days=1)
    prune = checkpointer.prune_thread

    def prune_and_be_given_input(thread_id: str) -> bool:
        is_pruned = prune(thread_id)
        runs.add_input(run.pk, script([call("look", what="y")]))
        return is_pruned

    with monkeypatch.context() as patched:
        patched.setattr(checkpointer, "prune_thread", prune_and_be_given_input)
        threads.tidy(run.pk, keep=None)
    assert fresh(run).status == "running"
    assert fresh(run).pruned_at is None  # else the next turn would be kept whole for ever
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid 1 to a | saw y"
    assert rows(age(run, days=1)) > 1
    threads.tidy(run.pk, keep=None)
    assert rows(run) == 1
    assert fresh(run).pruned_at is not None


def test_input_given_just_before_a_thread_is_deleted_keeps_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = age(finished(), days=31)
    before, is_to_delete = rows(run), retention.is_to_delete

    def be_given_input(due: Run, *, keep: timedelta | None) -> bool:
        found = is_to_delete(due, keep=keep)
        runs.add_input(run.pk, script([call("look", what="y")]))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(retention, "is_to_delete", be_given_input)
        with pytest.raises(WrongState, match="may still go on"):
            threads.tidy(run.pk, keep=MONTH)
    assert rows(run) == before
    assert fresh(run).thread_deleted_at is None
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid 1 to a | saw y"


def in_another_session(run: Run) -> None:
    """Tidy as another worker would, which finds the lock taken."""
    held = thread_lock._own.connection
    thread_lock._own.connection = None
    try:
        threads.tidy(run.pk, keep=MONTH)
    finally:
        thread_lock.close()
        thread_lock._own.connection = held


def test_the_command_prunes_and_deletes_what_is_due(settings: Settings) -> None:
    settings.COUNTERSIGN_CHECKPOINT_DAYS = 30
    young, old = age(finished(), days=1), age(finished(), days=31)
    assert "2 thread(s) are due" in told_by("--dry-run")
    assert rows(old) > 0
    assert "2 thread(s) looked after" in told_by()
    assert (rows(young), rows(old)) == (1, 0)
    assert "0 thread(s)" in told_by("--dry-run")


def test_the_command_deletes_one_thread_on_somebodys_word() -> None:
    run = finished()
    with pytest.raises(CommandError, match="in whose name"):
        told_by("--run", str(run.pk))
    told_by("--run", str(run.pk), "--by", "Ada Quist")
    assert fresh(run).thread_deleted_by == "Ada Quist"
    with pytest.raises(CommandError, match="by Ada Quist"):
        told_by("--run", str(run.pk), "--by", "Ada Quist")


def told_by(*arguments: str) -> str:
    """Return what the command says."""
    out = io.StringIO()
    call_command("tidy_threads", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.worker
def test_the_scheduler_has_workers_tidy(worker: Worker, scheduler: Process) -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    wait_until(lambda: fresh(run).status == "waiting", seconds=60)
    give(pending(run), APPROVE)
    wait_until(lambda: fresh(run).status == "finished", seconds=60)
    assert rows(age(run, days=1)) > 1
    scheduler.restart()  # it asks in its first round, then once a minute
    wait_until(lambda: rows(run) == 1, seconds=90)
