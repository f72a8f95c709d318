"""Deciding: who may, on what, once, and what is on record afterwards."""

from __future__ import annotations

import threading
from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction

from agents_runtime.canonical import decode
from agents_runtime.states import PauseStatus
from reviewer import claims
from reviewer.decisions import decide
from reviewer.errors import Conflict, Invalid, NotAllowed, NotFound
from reviewer.models import AuditEvent, Decision, Outcome, QueueMembership, ReviewTask
from tests.cast import Cast
from tests.deciding.making import (
    APPROVE,
    REFUND_ARGS,
    REJECT,
    decision_schema,
    open_refund,
    pause_run,
    question,
    refund,
)
from tests.runtime.driving import at_once
from tests.runtime.locking import outsider, wait_for_whoever_asks


def test_a_decision_its_evidence_and_the_answer_are_stored_together(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    decision = decide(
        task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest, comment="Seen the receipt"
    )
    task.refresh_from_db()
    assert (task.status, task.claimed_by, task.claim_version) == ("decided", cast.reviewer, 1)
    assert (decision.verdict, decision.person_name, decision.round) == ("approve", "Ines H.", 1)
    assert task.outcome.decided_by == decision
    assert task.pause.status == PauseStatus.ANSWERED
    assert decode(task.pause.answers) == [APPROVE]
    event = AuditEvent.objects.get(type="decision.made")
    payload = decode(event.payload)
    assert (event.actor, event.task_id, event.outcome) == (cast.reviewer, task.pk, "approve")
    assert payload["facts"]["digest"] == task.digest
    assert payload["facts"]["comment"] == "Seen the receipt"


def test_a_second_decision_is_told_who_decided_and_when(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    first = decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    with pytest.raises(Conflict) as refused:
        decide(task.pk, by=cast.reviewer2, answer=REJECT, digest=task.digest)
    assert (refused.value.code, refused.value.who, refused.value.when) == (
        "decided",
        "Ines H.",
        first.decided_at,
    )
    assert Decision.objects.count() == 1
    assert AuditEvent.objects.filter(type="decision.refused", actor=cast.reviewer2).count() == 1


def test_the_same_person_cannot_decide_twice(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    with pytest.raises(Conflict):
        decide(task.pk, by=cast.reviewer, answer=REJECT, digest=task.digest)


def test_a_stale_digest_is_refused(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    with pytest.raises(Conflict) as refused:
        decide(task.pk, by=cast.reviewer, answer=APPROVE, digest="0" * 64)
    assert refused.value.code == "stale"
    assert not Decision.objects.exists()


def test_a_task_of_another_queue_does_not_exist(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    with pytest.raises(NotFound):
        decide(task.pk, by=cast.outsider, answer=APPROVE, digest=task.digest)
    with pytest.raises(NotFound):
        decide(uuid4(), by=cast.reviewer, answer=APPROVE, digest=task.digest)


def test_whoever_started_a_run_cannot_decide_its_tasks(cast: Cast) -> None:
    for starter in (cast.developer, cast.lead):
        task = open_refund(by=starter)
        with pytest.raises(NotAllowed, match="started"):
            decide(task.pk, by=starter, answer=APPROVE, digest=task.digest)


def test_admins_and_auditors_see_but_do_not_decide(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    for person in (cast.admin, cast.auditor):
        with pytest.raises(NotAllowed):
            decide(task.pk, by=person, answer=APPROVE, digest=task.digest)


def test_a_task_that_somebody_else_holds_is_refused_with_the_holders_name(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    claims.claim(task.pk, by=cast.reviewer)
    with pytest.raises(Conflict) as refused:
        decide(task.pk, by=cast.reviewer2, answer=APPROVE, digest=task.digest)
    assert (refused.value.code, refused.value.who) == ("taken", "Ines H.")


def test_an_old_claim_is_refused_even_if_nobody_claimed_since(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    held = claims.claim(task.pk, by=cast.reviewer)
    claims.release(task.pk, by=cast.reviewer)
    claims.claim(task.pk, by=cast.reviewer)
    with pytest.raises(Conflict) as refused:
        decide(
            task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest, claim_version=held.claim_version
        )
    assert refused.value.code == "stale"


@pytest.mark.parametrize(
    ("answer", "pointer"),
    [
        ({"type": "approve_all"}, ""),
        ({"type": "respond", "message": "hello"}, ""),
        ({}, ""),
        ("approve", ""),
        (None, ""),
        ({"type": "reject", "message": None}, "/message"),
        ({"type": "edit", "edited_action": {"name": "wire", "args": {}}}, "/edited_action/name"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_nothing_is_stored(
    cast: Cast, answer: object, pointer: str
) -> None:
    task = open_refund(by=cast.developer)
    with pytest.raises(Invalid) as refused:
        decide(task.pk, by=cast.reviewer, answer=answer, digest=task.digest)
    assert any(problem.pointer.startswith(pointer) for problem in refused.value.problems)
    task.refresh_from_db()
    assert task.is_open
    assert task.claimed_by is None


def test_an_edit_says_which_field_is_wrong(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    answer = {
        "type": "edit",
        "edited_action": {"name": "issue_refund", "args": {"order_id": "A", "amount": "9"}},
    }
    with pytest.raises(Invalid) as refused:
        decide(task.pk, by=cast.reviewer, answer=answer, digest=task.digest)
    assert [problem.pointer for problem in refused.value.problems] == ["/edited_action/args/amount"]


def test_a_plain_question_takes_the_answer_its_schema_asks_for(cast: Cast) -> None:
    task = pause_run(question(), by=cast.developer).tasks.get()
    with pytest.raises(Invalid):
        decide(task.pk, by=cast.reviewer, answer="", digest=task.digest)
    decision = decide(task.pk, by=cast.reviewer, answer="Rule 7", digest=task.digest)
    assert decision.verdict == "answer"
    task.pause.refresh_from_db()
    assert task.pause.answer_list == ["Rule 7"]


def test_a_batch_is_answered_only_when_every_action_is_decided_and_in_order(cast: Cast) -> None:
    pause = pause_run(refund(0), refund(1, order="A-2"), refund(2, order="A-3"), by=cast.developer)
    tasks = list(pause.tasks.order_by("position"))
    answers = [APPROVE, REJECT, {"type": "approve"}]
    for index in (2, 0, 1):
        pause.refresh_from_db()
        assert pause.status == PauseStatus.PENDING
        task = tasks[index]
        decide(task.pk, by=cast.reviewer, answer=answers[index], digest=task.digest)
    pause.refresh_from_db()
    assert pause.status == PauseStatus.ANSWERED
    assert pause.answer_list == answers


@pytest.mark.parametrize("model", [Decision, Outcome, AuditEvent])
def test_evidence_can_be_neither_changed_nor_deleted(
    cast: Cast, model: type[Decision | Outcome | AuditEvent]
) -> None:
    task = open_refund(by=cast.developer)
    decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    rows = model._default_manager.all()
    assert rows.exists()
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.delete()
    field = "type" if model is AuditEvent else "verdict"
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(**{field: "reject"})


def test_the_trail_cannot_be_emptied(cast: Cast) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("TRUNCATE reviewer_auditevent CASCADE")


def test_a_decision_without_its_audit_event_does_not_happen(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = open_refund(by=cast.developer)
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT before")

    def broken(*args: object, **kwargs: object) -> None:
        raise DatabaseError("the disk is full")

    monkeypatch.setattr("reviewer.audit.record.write_rows", broken)
    with pytest.raises(DatabaseError, match="disk"):
        decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    task.refresh_from_db()
    assert task.is_open
    assert not Decision.objects.exists()


def test_of_fifteen_reviewers_at_once_one_decides_and_fourteen_are_told_who(
    committed_db: None, cast: Cast
) -> None:
    task = open_refund(by=cast.developer)
    barrier = threading.Barrier(15)
    results: list[str] = []

    def one(person_number: int) -> None:
        person = (cast.reviewer, cast.reviewer2)[person_number % 2]
        barrier.wait()
        try:
            decide(task.pk, by=person, answer=APPROVE, digest=task.digest)
            results.append("won")
        except Conflict as conflict:
            results.append(conflict.who or conflict.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = Decision.objects.get().person_name
    assert sorted(results) == sorted(["won"] + [winner] * 14)
    assert ReviewTask.objects.get().status == "decided"


@pytest.mark.django_db
@pytest.mark.parametrize("table", ["reviewer_auditevent", "reviewer_decision", "reviewer_outcome"])
@pytest.mark.parametrize("right", ["UPDATE", "DELETE", "TRUNCATE"])
def test_the_application_holds_no_right_to_change_evidence(table: str, right: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT has_table_privilege(%s, %s), has_table_privilege(%s, 'INSERT')", [table, right, table]
        )
        assert cursor.fetchone() == (False, True)


def test_who_leaves_the_queue_while_their_decision_waits_for_its_turn_is_refused(
    cast: Cast, committed_db: None
) -> None:
    task = open_refund(by=cast.developer)
    refused: list[BaseException] = []

    def decide_now() -> None:
        with pytest.raises(NotAllowed) as raised:
            decide(task.pk, by=cast.lead, answer=APPROVE, digest=task.digest)
        refused.append(raised.value)

    # A lead who was assigned the task sees it without the queue, too: it is the membership that decides.
    ReviewTask.objects.filter(pk=task.pk).update(assigned_to=cast.lead)
    QueueMembership.objects.get_or_create(user=cast.lead, queue=task.queue)
    waiting = threading.Thread(target=at_once, args=(decide_now,))
    with outsider("SELECT FROM agents_runtime_run WHERE id = %s FOR UPDATE", task.run_id) as other:
        waiting.start()
        wait_for_whoever_asks()
        other.execute("DELETE FROM reviewer_queuemembership WHERE user_id = %s", [cast.lead.pk])
        other.commit()
    waiting.join()
    assert len(refused) == 1
    assert not Decision.objects.exists()


def test_an_edit_is_held_to_the_tools_own_schema_where_the_request_has_none(cast: Cast) -> None:
    """A batched request says nothing of its tool's arguments; the agent's registration does."""
    request = replace(
        refund(), response_schema=decision_schema("issue_refund", {"type": "object"}), args_schema=REFUND_ARGS
    )
    task = pause_run(request, by=cast.developer).tasks.get()
    wrong = {
        "type": "edit",
        "edited_action": {"name": "issue_refund", "args": {"order_id": 7, "amount": "9.00"}},
    }
    with pytest.raises(Invalid) as refused:
        decide(task.pk, by=cast.reviewer, answer=wrong, digest=task.digest)
    assert [problem.pointer for problem in refused.value.problems] == ["/edited_action/args/order_id"]
