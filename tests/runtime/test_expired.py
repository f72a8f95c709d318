"""Deadlines of real agents: the agent is told that nobody decided, its tool never runs, the run goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from agents_runtime import runs
from agents_runtime.canonical import Json, decode, encode
from agents_runtime.models import Run
from reviewer.expiry import expire_due
from reviewer.models import AuditEvent, Queue, ReviewTask
from tests.agents import effects
from tests.processes import Process, Worker
from tests.runtime.crashing import wait_until
from tests.runtime.driving import (
    APPROVE,
    advance,
    answer,
    attempts,
    call,
    fresh,
    last_words,
    pauses,
    pending,
    script,
    start,
)

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
DROP = call("drop", path="/a")
LEGACY: Json = {
    "action_request": {"action": "wipe", "args": {"disk": 1}},
    "config": {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True},
    "description": "Wipe it?",
}


@pytest.fixture(autouse=True)
def rejecting_queue(runtime: None) -> None:
    """Every card here has an hour, and is rejected then."""
    Queue.objects.update_or_create(
        is_default=True,
        defaults={"slug": "general", "name": "General", "minutes_to_decide": 60, "on_expiry": "reject"},
    )


def let_time_run_out(run: Run) -> None:
    """Put the deadlines of the run's open cards into the past."""
    ReviewTask.objects.open().filter(run=run).update(due_at=now() - timedelta(days=1))


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched", "t-async"])
def test_the_agent_is_told_and_its_tools_never_run(agent: str) -> None:
    calls = [call("apay", to="a", amount=1)] if agent == "t-async" else [PAY, DROP]
    run = start(agent, script(calls))
    let_time_run_out(run)
    assert expire_due() == len(calls)
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run).count("no decision in time") == len(calls)
    assert effects.all_effects() == []
    assert attempts(run) == []
    assert {pause.status for pause in pauses(run)} == {"delivered"}
    assert {task.status for task in ReviewTask.objects.filter(run=run)} == {"expired"}


def test_what_was_decided_in_time_still_happens() -> None:
    run = start("t-per-call", script([PAY, DROP]))
    run = answer(pending(run, "pay"), APPROVE)
    let_time_run_out(run)
    assert expire_due() >= 1
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert effects.count("drop_began") == 0


def test_a_legacy_request_is_ignored_and_never_accepted() -> None:
    run = start("t-parrot", {"ask": encode(LEGACY)})
    let_time_run_out(run)
    assert expire_due() == 1
    run = advance(run)
    assert run.status == "finished", run.error
    ((told,),) = decode(run.output)["answers"]
    assert told["type"] == "ignore"
    assert "no decision in time" in told["args"]


@pytest.mark.parametrize(
    ("agent", "begin"),
    [
        ("t-inspector", {"ask": "good?"}),
        ("t-asker", {"ask": ""}),
        ("t-breakpoint", {"ask": ""}),
        ("t-breakpoint-after", {"ask": ""}),
        ("t-crowd", {"ask": "3"}),
        ("t-parrot", {"ask": encode({"type": "reject", "approve": True})}),
    ],
)
def test_a_question_or_a_breakpoint_is_held_and_can_be_answered_later(agent: str, begin: Json) -> None:
    run = start(agent, begin)
    waiting = len(pauses(run, status="pending"))
    let_time_run_out(run)
    assert expire_due() == waiting
    assert expire_due() == 0
    run = advance(run)
    assert run.status == "waiting"
    assert len(pauses(run, status="pending")) == waiting
    assert effects.all_effects() == []
    assert AuditEvent.objects.filter(run_id=run.pk, type="task.overdue").count() == waiting


@pytest.mark.worker
def test_the_scheduler_expires_and_a_worker_tells_the_agent(worker: Worker, scheduler: Process) -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    wait_until(lambda: fresh(run).status == "waiting", seconds=60)
    let_time_run_out(run)
    wait_until(lambda: fresh(run).status == "finished", seconds=60)
    assert "no decision in time" in last_words(fresh(run))
    assert effects.count("pay_began") == 0
    assert AuditEvent.objects.filter(run_id=run.pk, type="task.expired").count() == 1
