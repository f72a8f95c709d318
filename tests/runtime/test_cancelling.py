"""Cancelling at any point: cards are withdrawn, no tool starts afterwards, and what had started is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from agents_runtime import runs, steps, thread_lock
from agents_runtime.errors import WrongState
from agents_runtime.models import Run
from agents_runtime.runs import ALREADY_STARTED, RUN_CANCELLED
from reviewer.models import ReviewTask
from tests.agents import effects
from tests.runtime.crashing import wait_until
from tests.runtime.driving import (
    APPROVE,
    advance,
    answer,
    attempts,
    call,
    fresh,
    give,
    pauses,
    pending,
    script,
    start,
)

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
LOOK = call("look", what="x")
DROP = call("drop", path="/a")


@contextmanager
def at_work(run: Run) -> Iterator[None]:
    """Bring a run forward in a thread of its own, as a worker does, and wait for its end."""

    def work() -> None:
        try:
            steps.advance(run.pk)
        finally:
            thread_lock.close()
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        for name in ("look", "pay", "after_pay"):
            effects.flag(f"wait_{name}").unlink(missing_ok=True)
        worker.join(60)
    assert not worker.is_alive()


def begun(name: str) -> None:
    """Wait until a tool leaves this trace."""
    wait_until(lambda: effects.count(name) > 0, seconds=60)


def assert_over(run: Run, *, error: str = RUN_CANCELLED) -> None:
    """The run is cancelled for good: nothing is open, and no look of a worker starts anything."""
    before = effects.all_effects()
    run = advance(run)
    assert run.status == "cancelled"
    assert run.finished_at is not None
    assert {pause.status for pause in pauses(run)} <= {"withdrawn", "delivered"}
    assert {pause.error for pause in pauses(run, status="withdrawn")} <= {error}
    assert not ReviewTask.objects.open().filter(run=run).exists()
    assert effects.all_effects() == before
    assert all(attempt.status not in {"started", "suspended"} for attempt in attempts(run))
    with pytest.raises(WrongState):
        runs.cancel(run.pk)
    with pytest.raises(WrongState):
        runs.retry(run.pk)


def test_a_queued_run_never_begins() -> None:
    run = runs.start("t-per-call", input=script([LOOK, PAY]), requested_by="tests")
    runs.cancel(run.pk)
    assert_over(run)
    assert effects.all_effects() == []


def test_a_run_at_work_asks_nobody_afterwards() -> None:
    effects.flag("wait_look").touch()
    run = runs.start("t-per-call", input=script([LOOK], [PAY]), requested_by="tests")
    with at_work(run):
        begun("look_began")
        runs.cancel(run.pk)
    assert_over(run)
    assert pauses(run) == []
    assert effects.count("pay_began") == 0


def test_a_waiting_runs_cards_are_withdrawn() -> None:
    run = start("t-per-call", script([PAY, DROP]))
    runs.cancel(run.pk)
    assert {task.status for task in ReviewTask.objects.filter(run=run)} == {"withdrawn"}
    assert_over(run)
    with pytest.raises(WrongState):
        give(pauses(run)[0], APPROVE)


def test_a_decision_that_has_not_gone_out_runs_nothing() -> None:
    run = start("t-batched", script([PAY, DROP]))
    give(pending(run), APPROVE, APPROVE)
    runs.cancel(run.pk)
    assert {task.status for task in ReviewTask.objects.filter(run=run)} == {"withdrawn"}
    assert_over(run)
    assert effects.all_effects() == []


def test_a_tool_that_had_started_is_said_to_have_and_its_end_is_still_recorded() -> None:
    run = start("t-per-call", script([PAY, DROP]))
    pay, drop = pauses(run)
    give(pay, APPROVE)
    effects.flag("wait_pay").touch()
    with at_work(run):
        begun("pay_began")
        runs.cancel(run.pk)
        pay.refresh_from_db()
        assert (pay.status, pay.error) == ("withdrawn", ALREADY_STARTED)
        drop.refresh_from_db()
        assert (drop.status, drop.error) == ("withdrawn", RUN_CANCELLED)
    (attempt,) = attempts(run)
    assert attempt.status == "succeeded"
    assert effects.count("pay") == 1
    assert effects.count("drop_began") == 0
    assert advance(run).status == "cancelled"


def test_between_two_approved_calls_the_second_does_not_start() -> None:
    run = start("t-per-call", script([PAY, DROP]))
    for pause in pauses(run):
        give(pause, APPROVE)
    effects.flag("wait_pay").touch()
    with at_work(run):
        begun("pay_began")
        runs.cancel(run.pk)
    assert effects.count("pay") == 1
    assert effects.count("drop_began") == 0
    assert [pause.error for pause in pauses(run)] == [ALREADY_STARTED, RUN_CANCELLED]


def test_a_run_in_doubt_is_given_up_and_says_that_it_had_started() -> None:
    run = start("t-per-call", script([PAY]))
    effects.flag("exit_pay").touch()
    run = answer(pending(run), APPROVE)
    assert run.status == "in_doubt"
    runs.cancel(run.pk)
    assert [attempt.status for attempt in attempts(run)] == ["abandoned"]
    assert_over(run, error=ALREADY_STARTED)


def test_a_failed_run_is_cancelled_and_never_retried() -> None:
    run = start("t-per-call", script([PAY]))
    effects.flag("fail_pay").touch()
    run = answer(pending(run), APPROVE)
    assert run.status == "failed"
    runs.cancel(run.pk)
    effects.flag("fail_pay").unlink()
    assert_over(run, error=ALREADY_STARTED)
    assert effects.count("pay") == 0


def test_a_tool_that_paused_inside_is_given_up() -> None:
    run = start("t-per-call", script([call("haggle", to="a", amount=1)]))
    run = answer(pending(run), APPROVE)
    assert run.status == "waiting"
    runs.cancel(run.pk)
    run = advance(run)
    assert run.status == "cancelled"
    assert [attempt.status for attempt in attempts(run)] == ["abandoned"]
    assert effects.count("haggle") == 0


def test_a_run_that_is_over_cannot_be_cancelled() -> None:
    run = start("t-per-call", script([LOOK]))
    assert run.status == "finished"
    with pytest.raises(WrongState):
        runs.cancel(run.pk)
    assert fresh(run).status == "finished"


def test_two_who_cancel_at_once_cancel_once() -> None:
    run = start("t-per-call", script([PAY]))
    ends: list[str] = []

    def cancel() -> None:
        try:
            ends.append(runs.cancel(run.pk).status)
        except WrongState:
            ends.append("refused")
        finally:
            connection.close()

    both = [threading.Thread(target=cancel) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    wait_until(lambda: len(ends) == 2)
    assert sorted(ends) == ["cancelled", "refused"]
