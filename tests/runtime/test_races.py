"""Doubled messages, two workers, two sweeps: nothing is doubled, nothing is lost."""

from __future__ import annotations

import pytest
from django.db import connection

from agents_runtime import runs, steps, tasks
from agents_runtime.models import Run
from tests.agents import effects
from tests.runtime.crashing import KILLED, advance_in_child, wait_for
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    at_once,
    attempts,
    call,
    fresh,
    give,
    pauses,
    pending,
    script,
    start,
)

pytestmark = pytest.mark.usefixtures("runtime", "workers_that_die")
PAY = call("pay", to="a", amount=1)


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_a_second_worker_leaves_a_busy_run_alone(agent: str) -> None:
    run = start(agent, script([PAY]))
    give(pending(run), APPROVE)
    effects.flag("wait_pay").touch()

    def second() -> None:
        wait_for("pay_began")
        epoch = fresh(run).epoch
        steps.advance(run.pk)
        assert fresh(run).epoch == epoch
        assert fresh(run).status == "running"
        effects.flag("wait_pay").unlink()

    at_once(lambda: steps.advance(run.pk), second)
    run = fresh(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == effects.count("pay_began") == 1
    assert len(attempts(run)) == 1


def test_many_workers_with_the_same_message_run_it_once() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a"), call("drop", path="/b")]))
    for pause in pauses(run):
        give(pause, APPROVE)
    at_once(*[lambda: steps.advance(run.pk)] * 6)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert effects.count("drop") == 2


def test_a_doubled_start_starts_once() -> None:
    run = runs.start("t-per-call", input=script([call("look", what="x")]), requested_by="tests")
    at_once(*[lambda: steps.advance(run.pk)] * 4)
    assert fresh(run).status == "finished"
    assert effects.count("look") == 1


def test_an_answer_given_while_the_thread_is_busy_is_delivered_by_the_busy_worker() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    give(pending(run, "pay"), APPROVE)
    effects.flag("wait_pay").touch()

    def second() -> None:
        wait_for("pay_began")
        give(pending(run, "drop"), APPROVE)
        steps.advance(run.pk)
        assert effects.count("drop_began") == 0
        effects.flag("wait_pay").unlink()

    at_once(lambda: steps.advance(run.pk), second)
    assert fresh(run).status == "finished"
    assert effects.count("pay") == effects.count("drop") == 1


def test_cancelling_while_a_tool_runs_lets_it_end_and_starts_nothing_more() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    give(pending(run, "pay"), APPROVE)
    give(pending(run, "drop"), APPROVE)
    effects.flag("wait_pay").touch()

    def second() -> None:
        wait_for("pay_began")
        runs.cancel(run.pk)
        effects.flag("wait_pay").unlink()

    at_once(lambda: steps.advance(run.pk), second)
    run = advance(run)
    assert run.status == "cancelled"
    assert effects.count("drop_began") == 0
    assert [one.status for one in attempts(run)] == ["succeeded"]
    assert "already started" in pauses(run, tool="pay")[0].error


def test_a_worker_whose_lock_is_lost_writes_nothing_over_its_successor() -> None:
    run = start("t-per-call", script([PAY]))
    give(pending(run), APPROVE)
    effects.flag("wait_pay").touch()

    def second() -> None:
        wait_for("pay_began")
        end_lock_connections()
        effects.happened("lock_lost")
        steps.advance(run.pk)
        assert fresh(run).status == "in_doubt"
        effects.flag("wait_pay").unlink()

    at_once(lambda: tasks.start_run(str(run.pk)), second)
    run = fresh(run)
    assert run.status == "in_doubt"
    (attempt,) = attempts(run)
    assert attempt.status == "started"
    runs.settle(run.pk, outcome="happened", result="it did happen")
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1


def test_a_cancelled_run_whose_worker_died_gives_its_attempt_up() -> None:
    run = start("t-per-call", script([PAY]))
    give(pending(run), APPROVE)
    effects.flag("die_after_pay").touch()
    assert advance_in_child(run) == KILLED
    runs.cancel(run.pk)
    run = advance(run)
    assert run.status == "cancelled"
    assert [one.status for one in attempts(run)] == ["abandoned"]


def test_a_decision_cannot_be_taken_back_once_it_is_given() -> None:
    run = start("t-per-call", script([PAY]))
    pause = pending(run)
    give(pause, APPROVE)
    with pytest.raises(Exception, match="answered already"):
        give(pause, REJECT)
    assert advance(run).status == "finished"
    assert effects.count("pay") == 1


def end_lock_connections() -> None:
    """End the connections that hold the locks on threads, as a network that breaks does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'countersign thread'"
        )


def test_a_run_that_kills_its_workers_is_not_tried_for_ever() -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    for _ in range(steps.MAX_DEATHS):
        assert advance_in_child(run, "agents_runtime.engine:Engine:step", "GiveInput", "before") == KILLED
    run = advance(run)
    assert run.status == "failed"
    assert "ended 5 times" in run.error
    runs.retry(run.pk)
    assert advance(Run.objects.get(pk=run.pk)).status == "waiting"
