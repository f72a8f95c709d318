"""Nobody decided in time: the card is held or rejected, once, on record, and never approved."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils.timezone import now

from agents_runtime.canonical import decode, encode
from agents_runtime.decision_schemas import decision_schema
from agents_runtime.desk import ReviewRequest
from agents_runtime.errors import WrongState
from agents_runtime.models import Pause, Run
from reviewer import decisions, expiry, organising
from reviewer.errors import Conflict
from reviewer.expiry import CANNOT_REJECT, expire_due
from reviewer.intake import Desk
from reviewer.models import AuditEvent, Decision, Outcome, Queue, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, REFUND_ARGS, open_refund, pause_run, question, refund


def limit(queue: Queue, on_expiry: str, minutes: int = 60) -> None:
    """Set the deadline of a queue's cards."""
    Queue.objects.filter(pk=queue.pk).update(minutes_to_decide=minutes, on_expiry=on_expiry)


def let_time_run_out(*tasks: ReviewTask) -> None:
    """Put the deadlines of tasks into the past."""
    for task in tasks:
        ReviewTask.objects.filter(pk=task.pk).update(due_at=now() - timedelta(days=1))
        task.refresh_from_db()


def trail_of(task: ReviewTask, type: str) -> list[dict[str, Any]]:
    """Return the facts of a task's events of one type."""
    events = AuditEvent.objects.filter(task_id=task.pk, type=type).order_by("pk")
    return [decode(event.payload)["facts"] for event in events]


def calls(tool: str, *decisions: str) -> ReviewRequest:
    """Return a request to decide a call with exactly these decisions."""
    return ReviewRequest(
        position=0,
        kind="tool_call",
        tool=tool,
        tool_call_id="call-0",
        arguments={"order_id": "A-1", "amount": "1.00"},
        response_schema=decision_schema(tool, decisions, REFUND_ARGS),
    )


def test_a_card_before_its_deadline_is_left_alone(cast: Cast) -> None:
    limit(cast.payments, "reject")
    task = open_refund(by=cast.developer)
    assert task.due_at is not None
    assert expire_due() == 0
    task.refresh_from_db()
    assert (task.is_open, task.overdue_at, task.version) == (True, None, 1)


def test_a_card_that_was_held_because_its_run_had_failed_can_be_decided_once_the_run_goes_on(
    cast: Cast,
) -> None:
    limit(cast.payments, "reject")
    task = open_refund(by=cast.developer)
    let_time_run_out(task)
    Run.objects.filter(pk=task.run_id).update(status="failed", error="its build has changed")
    assert expire_due() == 1
    Run.objects.filter(pk=task.run_id).update(status="running", error="")
    assert expire_due() == 0
    decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    task.refresh_from_db()
    assert task.status == "decided"


def test_a_held_card_stays_open_is_marked_once_and_can_still_be_decided(cast: Cast) -> None:
    limit(cast.payments, "hold")
    task = open_refund(by=cast.developer)
    let_time_run_out(task)
    assert expire_due() == 1
    assert expire_due() == 0
    task.refresh_from_db()
    assert task.is_open
    assert task.overdue_at is not None
    assert task.version == 2
    assert [facts["policy"] for facts in trail_of(task, "task.overdue")] == ["queue Payments"]
    decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    assert Pause.objects.get(pk=task.pause_id).status == "answered"


def test_a_rejected_card_is_closed_by_the_rule_and_the_agent_is_told_why(cast: Cast) -> None:
    limit(cast.payments, "reject")
    task = open_refund(by=cast.developer)
    let_time_run_out(task)
    assert expire_due() == 1
    assert expire_due() == 0
    task.refresh_from_db()
    assert task.status == "expired"
    assert not Decision.objects.exists()
    assert (task.outcome.verdict, task.outcome.decided_by) == ("reject", None)
    pause = Pause.objects.get(pk=task.pause_id)
    assert pause.status == "answered"
    (told,) = pause.answer_list
    assert told == {
        "type": "reject",
        "message": "Rejected: no decision in time. Nobody decided by the deadline of queue Payments.",
    }
    (event,) = AuditEvent.objects.filter(task_id=task.pk, type="task.expired")
    assert event.actor_name == "Countersign"
    facts = decode(event.payload)["facts"]
    assert facts["policy"] == "queue Payments"
    assert decode(facts["answer"]) == told


def test_a_decision_after_the_deadline_is_refused_even_before_the_sweep(cast: Cast) -> None:
    limit(cast.payments, "reject")
    task = open_refund(by=cast.developer)
    let_time_run_out(task)
    with pytest.raises(Conflict, match="Time is up") as refused:
        decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    assert refused.value.code == "closed"
    assert refused.value.when == task.due_at
    assert not Outcome.objects.exists()


ALWAYS_HELD: dict[str, ReviewRequest] = {
    "a question": question(),
    "a question that takes anything": ReviewRequest(0, "question", "Which one?", True),
    "a question that takes a rejection's shape": ReviewRequest(
        0, "question", "?", decision_schema("x", ["approve", "reject"], None)
    ),
    "a breakpoint": ReviewRequest(0, "continue", {"next": ["act"]}, {"const": "continue"}),
    "only to approve": calls("issue_refund", "approve"),
    "to approve or edit": calls("issue_refund", "approve", "edit"),
    "to answer": calls("issue_refund", "respond"),
    "any answer to a call": ReviewRequest(0, "tool_call", {}, True, tool="issue_refund"),
}


@pytest.mark.parametrize("kind", ALWAYS_HELD)
def test_what_cannot_be_rejected_is_held_although_its_rule_says_reject(cast: Cast, kind: str) -> None:
    for queue in (cast.payments, cast.general):
        limit(queue, "reject")
    task = pause_run(ALWAYS_HELD[kind], by=cast.developer).tasks.get()
    assert task.on_expiry == "reject"
    let_time_run_out(task)
    assert expire_due() == 1
    assert expire_due() == 0
    task.refresh_from_db()
    assert task.is_open
    assert not Outcome.objects.exists()
    assert Pause.objects.get(pk=task.pause_id).status == "pending"
    assert [facts["reason"] for facts in trail_of(task, "task.overdue")] == [CANNOT_REJECT]


REJECTABLE: dict[str, ReviewRequest] = {
    "per call": refund(),
    "approve or reject": calls("issue_refund", "approve", "reject"),
    "only to reject": calls("issue_refund", "reject"),
    "everything": calls("issue_refund", "approve", "edit", "reject", "respond"),
}


@pytest.mark.parametrize("kind", REJECTABLE)
def test_whatever_expires_with_an_outcome_was_rejected_and_nothing_else(cast: Cast, kind: str) -> None:
    limit(cast.payments, "reject")
    task = pause_run(REJECTABLE[kind], by=cast.developer).tasks.get()
    let_time_run_out(task)
    assert expire_due() == 1
    outcome = Outcome.objects.get(task=task)
    assert outcome.verdict == "reject"
    assert decode(outcome.answer)["type"] == "reject"
    assert "no decision in time" in decode(outcome.answer)["message"].lower()


@pytest.mark.parametrize("verdict", ["approve", "edit", "respond", "answer"])
def test_the_database_takes_no_outcome_of_nobody_but_a_rejection(cast: Cast, verdict: str) -> None:
    task = open_refund(by=cast.developer)
    with pytest.raises(IntegrityError, match="outcome_of_nobody_only_rejects"), transaction.atomic():
        Outcome.objects.create(task=task, verdict=verdict, answer=encode(APPROVE))


@pytest.mark.parametrize("thing", ["queue", "policy", "task"])
def test_the_database_takes_no_expiry_that_approves(cast: Cast, thing: str) -> None:
    task = open_refund(by=cast.developer)
    row = {"queue": cast.payments, "policy": cast.refunds_policy, "task": task}[thing]
    with pytest.raises(IntegrityError, match=f"{thing}_expiry_never_approves"), transaction.atomic():
        type(row)._default_manager.filter(pk=row.pk).update(on_expiry="allow")


def test_a_batch_goes_out_when_its_last_card_is_decided_or_expired(cast: Cast) -> None:
    limit(cast.payments, "reject")
    pause = pause_run(refund(0), refund(1, order="A-1002"), by=cast.developer)
    first, second = pause.tasks.order_by("position")
    decisions.decide(first.pk, by=cast.reviewer, answer=APPROVE, digest=first.digest)
    let_time_run_out(second)
    assert expire_due() == 1
    pause.refresh_from_db()
    assert pause.status == "answered"
    assert [answer["type"] for answer in pause.answer_list] == ["approve", "reject"]


def test_an_expired_card_of_a_batch_stays_expired_when_its_run_is_cancelled(cast: Cast) -> None:
    limit(cast.payments, "reject")
    pause = pause_run(refund(0), refund(1, order="A-1002"), by=cast.developer)
    first, second = pause.tasks.order_by("position")
    let_time_run_out(first)
    assert expire_due() == 1
    with transaction.atomic():
        pause.status, pause.closed_at, pause.error = "withdrawn", now(), "cancelled"
        pause.save()
        Desk().pause_closed(pause)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("expired", "withdrawn")


def test_a_card_of_a_run_that_has_failed_is_held(cast: Cast) -> None:
    limit(cast.payments, "reject")
    task = open_refund(by=cast.developer)
    Run.objects.filter(pk=task.run_id).update(status="failed", error="no worker")
    let_time_run_out(task)
    assert expire_due() == 1
    task.refresh_from_db()
    assert task.is_open
    assert task.overdue_at is not None


def test_a_policys_deadline_goes_before_its_queues_and_that_before_the_authors(cast: Cast) -> None:
    def opened(request: ReviewRequest) -> tuple[str, str, bool]:
        task = pause_run(request, by=cast.developer).tasks.get()
        return task.expiry_label, task.on_expiry, task.due_at is not None

    hinted = ReviewRequest(
        0, "tool_call", {}, decision_schema("x", ["approve", "reject"], None), tool="x", expires_after=600
    )
    assert opened(hinted) == ("the agent’s author", "hold", True)
    limit(cast.general, "reject")
    assert opened(hinted) == ("queue General", "reject", True)
    organising.save_policy(
        name="x",
        agent="",
        tool="x",
        queue_slug="general",
        risk="low",
        minutes_to_decide=5,
        on_expiry="hold",
        by=cast.lead,
    )
    assert opened(hinted) == ("x v1", "hold", True)


@pytest.mark.parametrize(
    ("seconds", "on_expiry"), [(0, "reject"), (-5, "reject"), (10**12, ""), (None, "reject")]
)
def test_a_hint_that_makes_no_sense_sets_no_deadline(cast: Cast, seconds: int | None, on_expiry: str) -> None:
    request = ReviewRequest(0, "question", "?", True, expires_after=seconds, on_expiry=on_expiry)
    task = pause_run(request, by=cast.developer).tasks.get()
    assert (task.due_at, task.on_expiry) == (None, "hold")


def test_two_sweepers_at_once_do_each_thing_once(committed_db: None, cast: Cast) -> None:
    limit(cast.payments, "reject")
    limit(cast.general, "hold")
    tasks = [pause_run(refund(), by=cast.developer).tasks.get() for _ in range(4)]
    tasks += [pause_run(question(), by=cast.developer).tasks.get() for _ in range(4)]
    let_time_run_out(*tasks)
    both = threading.Barrier(4)
    done: list[int] = []

    def sweep() -> None:
        both.wait(60)
        try:
            done.append(expire_due())
        finally:
            connection.close()

    sweepers = [threading.Thread(target=sweep) for _ in range(4)]
    for sweeper in sweepers:
        sweeper.start()
    for sweeper in sweepers:
        sweeper.join(60)
    assert sum(done) == 8
    assert AuditEvent.objects.filter(type="task.expired").count() == 4
    assert AuditEvent.objects.filter(type="task.overdue").count() == 4
    assert Outcome.objects.count() == 4


def test_sweeping_looks_at_no_card_whose_time_has_not_come(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    limit(cast.payments, "reject")
    for _ in range(3):
        open_refund(by=cast.developer)
    with django_assert_num_queries(1):
        assert expire_due() == 0


def test_a_card_that_cannot_be_closed_keeps_no_other_from_being_closed(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(cast.payments, "reject")
    first, second = (open_refund(by=cast.developer) for _ in range(2))
    let_time_run_out(first)
    let_time_run_out(second)

    def refuse(pause: Pause) -> None:
        if pause.pk == first.pause_id:
            raise WrongState("it cannot be answered")
        decisions.answer_when_complete(pause)

    monkeypatch.setattr(expiry, "answer_when_complete", refuse)
    assert expire_due() == 1
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("open", "expired")
    assert not Outcome.objects.filter(task=first).exists()
