"""Intake: what the runtime tells becomes tasks, with everything the card will show fixed at once."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from agents_runtime.canonical import encode
from agents_runtime.desk import OpenedPause, ReviewRequest
from agents_runtime.errors import Problem
from agents_runtime.models import Pause, ToolExecution
from agents_runtime.states import PauseStatus
from reviewer import live, organising, routing
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


def test_the_default_queue_may_be_a_policy_s_own_and_may_be_missing(cast: Cast) -> None:
    Policy.objects.create(name="own", tool="issue_refund", agent="mine", queue=cast.general, risk="low")
    Policy.objects.create(name="other", tool="another", queue=cast.general, risk="critical")
    own = routing.route(agent="mine", tool="issue_refund")
    assert (own.queue, own.label, own.risk) == (cast.general, "own v1", "low")
    assert own.policy == Policy.objects.get(name="own")
    assert routing.route(agent="mine", tool="", risk="high").queue == cast.general
    assert routing.route(agent="", tool="unknown").label == routing.DEFAULT_LABEL
    Queue.objects.filter(pk=cast.general.pk).update(is_default=False, slug="old", name="Old")
    assert routing.route(agent="", tool="unknown").queue.slug == "general"


def test_what_a_pause_and_a_run_tell_raises_the_version_of_each_of_their_tasks_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = pause_run(refund(0), refund(1), refund(2), by=cast.developer)
    other = open_refund(by=cast.developer)
    told: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        live, "task_changed", lambda task: told.append((task.pk, task.version, task.queue_id, task.run_id))
    )
    tasks = list(pause.tasks.order_by("pk"))
    with transaction.atomic():
        Desk().delivery_started(pause)
        Desk().run_failed(pause.run)
    for version in (2, 3):
        rows = {(task.pk, version, task.queue_id, task.run_id) for task in tasks}
        assert set(told[3 * version - 6 : 3 * version - 3]) == rows
    assert set(pause.tasks.values_list("version", "status")) == {(3, "open")}
    assert ReviewTask.objects.get(pk=other.pk).version == 1


def test_a_pause_and_what_it_asks_are_recorded_in_their_order_however_many_it_asks(cast: Cast) -> None:
    pause = pause_run(*(refund(at) for at in range(43)), by=cast.developer)
    told = list(AuditEvent.objects.filter(run_id=pause.run_id).order_by("pk").values_list("type", "task_id"))
    tasks = list(pause.tasks.order_by("position").values_list("pk", flat=True))
    assert told == [("run.paused", None), *(("task.opened", key) for key in tasks)]


@pytest.mark.parametrize("is_told_before", [True, False], ids=["known", "not known"])
def test_what_is_recorded_of_a_call_names_its_task(cast: Cast, *, is_told_before: bool) -> None:
    pause = pause_run(*(refund(at) for at in range(3)), by=cast.developer)
    call = ToolExecution(run=pause.run, pause=pause, position=1, call_key="key", tool="issue_refund", epoch=1)
    with transaction.atomic():
        if is_told_before:
            Desk().delivery_started(pause)
        Desk().tool_started(call)
        Desk().tool_finished(call)
    told = AuditEvent.objects.filter(run_id=pause.run_id, type="tool.started").values_list(
        "task_id", flat=True
    )
    assert list(told) == [pause.tasks.get(position=1).pk] * 2


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
