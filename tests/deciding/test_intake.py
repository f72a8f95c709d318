"""Intake: what the runtime tells becomes tasks, with everything the card will show fixed at once."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from agents_runtime.canonical import encode
from agents_runtime.desk import OpenedPause, ReviewRequest
from agents_runtime.errors import Problem
from agents_runtime.models import Pause
from agents_runtime.states import PauseStatus
from reviewer import organising
from reviewer.decisions import decide
from reviewer.intake import Desk, open_task
from reviewer.models import AuditEvent, Policy, Queue, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund, pause_run, question, refund


def test_a_request_becomes_a_task_routed_by_the_most_specific_policy(cast: Cast) -> None:
    everything = Queue.objects.create(slug="all", name="All")
    Policy.objects.create(name="anything", queue=everything, risk="low")
    Policy.objects.create(name="agent", agent="refunds", queue=everything, risk="low")
    task = open_refund(by=cast.developer)
    assert (task.queue, task.risk, task.policy_label) == (cast.payments, "high", "refunds v1")
    assert task.title == "Refund 18.40 for order A-1001"
    Policy.objects.create(
        name="both", agent="refunds", tool="issue_refund", queue=everything, risk="critical"
    )
    assert open_refund(by=cast.developer).policy_label == "both v1"


def test_what_no_policy_matches_goes_to_the_default_queue(cast: Cast) -> None:
    task = pause_run(question(), by=cast.developer, agent="unknown").tasks.get()
    assert (task.queue, task.risk, task.due_at) == (cast.general, "medium", None)


def test_the_digest_covers_action_schema_description_and_policy(cast: Cast) -> None:
    first = open_refund(by=cast.developer)
    assert open_refund(by=cast.developer).digest == first.digest
    assert open_refund(by=cast.developer, amount="18.41").digest != first.digest
    organising.save_policy(
        name="refunds", agent="", tool="issue_refund", queue_slug="payments", risk="high",
        minutes_to_decide=30, by=cast.lead,
    )  # fmt: skip
    again = open_refund(by=cast.developer)
    assert again.digest != first.digest
    assert again.due_at is not None


def test_telling_of_the_same_pause_twice_opens_no_second_task(cast: Cast) -> None:
    pause = pause_run(refund(), by=cast.developer)
    with pytest.raises(IntegrityError), transaction.atomic():
        Desk().run_paused(pause.run, [OpenedPause(pause, [refund()])])


def test_text_of_an_agent_that_a_text_column_cannot_hold_is_kept_visible(cast: Cast) -> None:
    request = ReviewRequest(
        position=0,
        kind="question",
        arguments={"a\x00": "\ud800"},
        response_schema=True,
        description="x\x00y\udfff",
    )
    task = pause_run(request, by=cast.developer).tasks.get()
    assert task.description == "x\\u0000y\\udfff"
    assert task.arguments == {"a\x00": "\ud800"}


def test_a_pause_that_vanished_closes_its_open_tasks_and_says_so(cast: Cast) -> None:
    for status, closed in (("superseded", "superseded"), ("withdrawn", "withdrawn"), ("expired", "expired")):
        pause = pause_run(refund(), by=cast.developer)
        pause.become(PauseStatus(status))
        pause.save()
        with transaction.atomic():
            Desk().pause_closed(pause)
        task = pause.tasks.get()
        assert task.status == closed
        assert task.version == 2
        assert AuditEvent.objects.filter(type=f"task.{closed}", task_id=task.pk).exists()


def test_a_refused_answer_opens_a_linked_task_that_shows_the_error(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    following = Pause.objects.create(
        run=task.run, interrupt_id="1" * 32, kind="per_call", value=encode(None), previous=task.pause
    )
    request = ReviewRequest(
        position=0,
        kind="tool_call",
        tool="issue_refund",
        arguments={"order_id": "A-1001"},
        response_schema=True,
        refused_answer=APPROVE,
        refusal=(Problem("/amount", "Input should be a valid decimal"),),
    )
    with transaction.atomic():
        linked = open_task(following, request)
    assert linked.previous == task
    assert linked.queue == task.queue
    assert "valid decimal" in linked.refusal
    assert ReviewTask.objects.get(pk=task.pk).next == linked
