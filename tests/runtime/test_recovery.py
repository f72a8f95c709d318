"""The sweep finds what nobody does; a broker that is down never stands in the way."""

from __future__ import annotations

from datetime import timedelta

import pytest
from celery import current_app
from celery.signals import worker_ready
from django.db import transaction
from django.utils.timezone import now

from agents_runtime import enqueue, recovery, runs, steps, tasks, thread_lock
from agents_runtime.models import Run
from tests.agents import effects
from tests.processes import Process, Worker
from tests.runtime.crashing import wait_for, wait_until
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    answer,
    attempts,
    call,
    fresh,
    give,
    pending,
    script,
    start,
)

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)


def let_time_pass(run: Run) -> None:
    """Make the last change and the last nudge of a run old."""
    Run.objects.filter(pk=run.pk).update(updated_at=now() - timedelta(minutes=1), nudged_at=None)


def test_a_lost_message_is_found_by_the_sweep() -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    assert recovery.sweep() == 0  # its own message is still on the way
    let_time_pass(run)
    assert recovery.sweep() == 1
    assert recovery.sweep() == 0  # it was nudged a moment ago


def test_a_run_that_is_held_is_not_swept() -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    let_time_pass(run)
    with thread_lock.hold(run.pk) as epoch:
        assert epoch is not None
        assert recovery.sweep() == 0
    assert recovery.sweep() == 1


class ReadyConsumer:
    """What Celery says is ready."""

    app = current_app


def left_by_a_dead_worker() -> Run:
    """Return a run that a worker has just taken, and of which it will do nothing any more."""
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    with thread_lock.hold(run.pk) as epoch:
        assert epoch is not None
    return run


def nudged(run: Run, seconds: float) -> None:
    """Let the last message for a run have been sent so long ago."""
    Run.objects.filter(pk=run.pk).update(nudged_at=now() - timedelta(seconds=seconds))


def test_a_run_whose_worker_is_dead_is_swept_at_once_and_again_soon() -> None:
    run = left_by_a_dead_worker()
    assert recovery.sweep() == 1  # it changed a moment ago, but nobody holds it
    assert recovery.sweep() == 0
    nudged(run, recovery.ORPHAN_AGAIN.total_seconds() + 0.5)
    assert recovery.sweep() == 1
    nudged(run, recovery.ORPHAN_AGAIN.total_seconds() + 0.5)
    steps.advance(run.pk)
    assert recovery.sweep() == 0


def test_a_worker_that_starts_waits_for_no_message_that_was_sent_to_the_one_before_it() -> None:
    lost = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    dead = left_by_a_dead_worker()
    assert recovery.sweep_after_start() == 1  # the other one is too young to be lost
    let_time_pass(lost)
    for run in (lost, dead):
        nudged(run, 0)
    assert recovery.sweep() == 0
    assert recovery.sweep_after_start() == 2
    with thread_lock.hold(dead.pk):
        assert recovery.sweep_after_start() == 1


def test_a_worker_that_is_ready_has_a_child_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **_: sent.append(name))
    monkeypatch.setattr(enqueue, "publish", lambda _, name, __: sent.append(name))
    worker_ready.send(sender=ReadyConsumer())
    assert sent == [tasks.sweep.name]
    run = left_by_a_dead_worker()
    nudged(run, 0)
    before = fresh(run).nudged_at
    tasks.sweep()
    assert fresh(run).nudged_at != before
    enqueue.flush()
    assert "agents_runtime.start_run" in sent


def test_a_worker_that_is_ready_while_the_broker_fails_only_logs_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise ConnectionError("the broker is down")

    monkeypatch.setattr(current_app, "send_task", refuse)
    worker_ready.send(sender=ReadyConsumer())
    assert "could not ask for a sweep" in caplog.text


@pytest.mark.parametrize("state", ["waiting", "finished", "failed", "cancelled", "in_doubt"])
def test_a_run_that_rests_is_not_swept(state: str) -> None:
    run = start("t-per-call", script([PAY]))
    if state == "finished":
        answer(pending(run), REJECT)
    if state == "failed":
        effects.flag("fail_pay").touch()
        answer(pending(run), APPROVE)
    if state == "cancelled":
        runs.cancel(run.pk)
    if state == "in_doubt":
        effects.flag("exit_pay").touch()
        answer(pending(run), APPROVE)
    assert fresh(run).status == state
    let_time_pass(run)
    assert recovery.sweep() == 0


def test_an_answered_pause_is_swept() -> None:
    run = start("t-per-call", script([PAY]))
    give(pending(run), APPROVE)
    let_time_pass(run)
    assert recovery.sweep() == 1


def test_a_broker_that_is_down_is_only_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise ConnectionError("the broker is down")

    monkeypatch.setattr(enqueue, "publish", refuse)
    with transaction.atomic():
        run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    enqueue.flush()
    assert "the sweep will find the work" in caplog.text
    assert fresh(run).status == "queued"


@pytest.mark.worker
def test_a_worker_brings_a_run_from_start_to_end(worker: Worker) -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    wait_until(lambda: fresh(run).status == "waiting")
    give(pending(run), APPROVE)
    wait_until(lambda: fresh(run).status == "finished")
    assert effects.count("pay") == 1


@pytest.mark.worker
def test_a_worker_runs_async_agents(worker: Worker) -> None:
    run = runs.start("t-async", input=script([call("apay", to="a", amount=1)]), requested_by="tests")
    wait_until(lambda: fresh(run).status == "waiting")
    give(pending(run), APPROVE)
    wait_until(lambda: fresh(run).status == "finished")
    assert effects.count("apay") == 1


@pytest.mark.worker
def test_a_run_whose_worker_was_killed_is_picked_up_within_ten_seconds(
    worker: Worker, scheduler: Process
) -> None:
    effects.flag("wait_look").touch()
    run = runs.start("t-per-call", input=script([call("look", what="x"), PAY]), requested_by="tests")
    wait_for("look_began")
    worker.kill()
    effects.flag("wait_look").unlink()
    worker.start()
    wait_until(lambda: fresh(run).status == "waiting", seconds=10)
    assert fresh(run).epoch >= 2


@pytest.mark.worker
def test_a_tool_that_ran_when_its_worker_was_killed_is_in_doubt_within_ten_seconds(
    worker: Worker, scheduler: Process
) -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    wait_until(lambda: fresh(run).status == "waiting")
    effects.flag("wait_pay").touch()
    give(pending(run), APPROVE)
    wait_for("pay_began")
    worker.kill()
    effects.flag("wait_pay").unlink()
    worker.start()
    wait_until(lambda: fresh(run).status == "in_doubt", seconds=10)
    runs.settle(run.pk, outcome="run_again")
    wait_until(lambda: fresh(run).status == "finished")
    assert effects.count("pay") == 1
    assert len(attempts(run)) == 2


@pytest.mark.worker
def test_a_child_that_dies_alone_loses_nothing(worker: Worker, scheduler: Process) -> None:
    effects.flag("die_look").touch()
    run = runs.start("t-per-call", input=script([call("look", what="x")]), requested_by="tests")
    wait_until(lambda: fresh(run).status == "finished", seconds=15)
    assert effects.count("look") == 1
