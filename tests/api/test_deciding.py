"""Deciding through the API: the card, the answer, and everything that can be wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from agents_runtime.states import PauseStatus
from reviewer.models import AuditEvent, CardOpening, Decision, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, REJECT, open_refund, pause_run, question
from tests.doors import ApiClient, json_of

Programs = Callable[..., ApiClient]


@pytest.fixture
def task(cast: Cast) -> ReviewTask:
    return open_refund(by=cast.developer)


def decide(program: ApiClient, task: ReviewTask, answer: Any = None, **more: Any) -> Any:
    body = {"answer": APPROVE if answer is None else answer, "digest": task.digest, **more}
    return program.post(f"tasks/{task.pk}/decision", body)


def test_the_card_says_what_will_happen_and_what_may_be_answered(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    card = json_of(api_client(cast.reviewer).get(f"tasks/{task.pk}"))
    assert card["tool"] == "issue_refund"
    assert card["args"] == {"order_id": "A-1001", "amount": "18.40"}
    assert card["allowed_decisions"] == ["approve", "edit", "reject"]
    assert card["digest"] == task.digest
    assert card["title"] == "Refund 18.40 for order A-1001"
    assert card["queue"] == "payments"
    assert card["decision"] is None


def test_opening_a_card_is_recorded_once_for_each_person(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    for person in (cast.reviewer, cast.reviewer, cast.auditor):
        api_client(person).get(f"tasks/{task.pk}")
    openings = CardOpening.objects.filter(task=task, digest=task.digest, via="api")
    assert {opening.person for opening in openings} == {cast.reviewer, cast.auditor}
    assert AuditEvent.objects.filter(type="card.opened", task_id=task.pk).count() == 2


def test_a_list_gives_nothing_away_that_would_count_as_opening(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    (row,) = json_of(api_client(cast.reviewer).get("tasks"))["items"]
    assert not {"args", "digest", "response_schema", "said"} & set(row)
    assert not CardOpening.objects.exists()


def test_an_approval_answers_the_pause_and_says_who_decided(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    response = decide(api_client(cast.reviewer), task, reason_code="ok", comment="Checked the order.")
    assert response.status_code == 200
    made = json_of(response)
    assert (made["verdict"], made["decided_by"], made["via"]) == ("approve", "Ines H.", "api")
    assert made["decided_at"]
    task.pause.refresh_from_db()
    assert task.pause.status == PauseStatus.ANSWERED
    assert task.pause.answer_list == [APPROVE]
    shown = json_of(api_client(cast.reviewer).get(f"tasks/{task.pk}"))
    assert shown["decision"]["comment"] == "Checked the order."


def test_deciding_claims_an_unclaimed_task(cast: Cast, api_client: Programs, task: ReviewTask) -> None:
    decide(api_client(cast.reviewer), task)
    task.refresh_from_db()
    assert task.claimed_by == cast.reviewer
    assert task.claim_version == 1


def test_the_second_reviewer_gets_409_and_sees_who_won(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    decide(api_client(cast.reviewer), task)
    response = decide(api_client(cast.reviewer2), task, REJECT)
    assert response.status_code == 409
    problem = json_of(response)
    assert (problem["error"], problem["who"]) == ("decided", "Ines H.")
    assert problem["when"]
    assert Decision.objects.count() == 1


def test_another_digest_is_stale(cast: Cast, api_client: Programs, task: ReviewTask) -> None:
    response = decide(api_client(cast.reviewer), task, digest="0" * 64)
    assert response.status_code == 409
    assert json_of(response)["error"] == "stale"


def test_a_task_that_somebody_holds_is_taken(cast: Cast, api_client: Programs, task: ReviewTask) -> None:
    api_client(cast.reviewer2).post(f"tasks/{task.pk}/claim")
    for response in (
        decide(api_client(cast.reviewer), task),
        api_client(cast.reviewer).post(f"tasks/{task.pk}/claim"),
    ):
        assert response.status_code == 409
        assert (json_of(response)["error"], json_of(response)["who"]) == ("taken", "Tom O.")


def test_a_claim_that_ran_out_and_was_taken_over_is_fenced_off(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    claimed = json_of(api_client(cast.reviewer).post(f"tasks/{task.pk}/claim"))
    api_client(cast.reviewer).post(f"tasks/{task.pk}/release")
    api_client(cast.reviewer2).post(f"tasks/{task.pk}/claim")
    api_client(cast.reviewer2).post(f"tasks/{task.pk}/release")
    response = decide(api_client(cast.reviewer), task, claim_version=claimed["claim_version"])
    assert (response.status_code, json_of(response)["error"]) == (409, "stale")


def test_an_answer_that_does_not_fit_says_where(cast: Cast, api_client: Programs, task: ReviewTask) -> None:
    edit = {
        "type": "edit",
        "edited_action": {"name": "issue_refund", "args": {"order_id": "A-1", "amount": "1"}},
    }
    response = decide(api_client(cast.reviewer), task, edit)
    assert response.status_code == 422
    pointers = [problem["pointer"] for problem in json_of(response)["problems"]]
    assert pointers == ["/edited_action/args/amount"]
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        "approve",
        {"type": "delete"},
        {"type": "respond", "message": "x"},
        {"type": "edit"},
        0,
        True,
    ],
)
def test_answers_of_another_kind_are_refused(
    cast: Cast, api_client: Programs, task: ReviewTask, answer: Any
) -> None:
    body = {"answer": answer, "digest": task.digest}
    assert api_client(cast.reviewer).post(f"tasks/{task.pk}/decision", body).status_code == 422


def test_an_edit_cannot_name_another_tool(cast: Cast, api_client: Programs, task: ReviewTask) -> None:
    args = {"order_id": "A-1001", "amount": "18.40"}
    edit = {"type": "edit", "edited_action": {"name": "delete_file", "args": args}}
    assert decide(api_client(cast.reviewer), task, edit).status_code == 422


def test_a_plain_question_takes_any_answer_that_fits(cast: Cast, api_client: Programs) -> None:
    asked = pause_run(question(), by=cast.developer).tasks.get()
    program = api_client(cast.reviewer)
    assert decide(program, asked, "").status_code == 422
    made = decide(program, asked, "Rule 4, § 2")
    assert (made.status_code, json_of(made)["verdict"]) == (200, "answer")


def test_a_reject_keeps_its_message(cast: Cast, api_client: Programs, task: ReviewTask) -> None:
    assert json_of(decide(api_client(cast.reviewer), task, REJECT))["answer"] == REJECT


def test_the_next_task_comes_with_its_card_and_then_nothing_is_left(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    first = api_client(cast.reviewer).post("queues/payments/claim-next")
    assert UUID(json_of(first)["id"]) == task.pk
    assert CardOpening.objects.filter(task=task, person=cast.reviewer).exists()
    second = api_client(cast.reviewer2).post("queues/payments/claim-next")
    assert (second.status_code, second.content) == (204, b"")


def test_a_list_is_cut_into_parts_and_filtered(cast: Cast, api_client: Programs) -> None:
    tasks = [open_refund(by=cast.developer) for _ in range(5)]
    decide(api_client(cast.reviewer), tasks[0])
    program = api_client(cast.reviewer)
    parts = [json_of(program.get("tasks", status="open", limit=3, offset=offset)) for offset in (0, 3)]
    seen = [row["id"] for part in parts for row in part["items"]]
    assert [part["total"] for part in parts] == [4, 4]
    assert sorted(seen) == sorted(str(task.pk) for task in tasks[1:])
    assert json_of(program.get("tasks", run=tasks[0].run_id))["total"] == 1
    assert json_of(program.get("tasks", queue="mail"))["total"] == 0
    assert json_of(program.get("tasks", queue="no-such"))["total"] == 0


def test_the_trail_tells_the_whole_story_to_an_auditor(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    reviewer, auditor = api_client(cast.reviewer), api_client(cast.auditor)
    reviewer.get(f"tasks/{task.pk}")
    decide(reviewer, task)
    found = json_of(auditor.get("audit", task=task.pk))
    assert [event["type"] for event in reversed(found["items"])] == [
        "task.opened",
        "card.opened",
        "decision.made",
    ]
    assert found["items"][0]["payload"]["facts"]["digest"] == task.digest
    assert (
        json_of(auditor.get("audit", person="reviewer", type="decision.made"))["items"][0]["actor"]
        == "Ines H."
    )
    assert not json_of(auditor.get("audit", person="reviewer2"))["items"]
    assert len(json_of(auditor.get("audit", queue="payments"))["items"]) == 3


def test_the_trail_is_read_in_parts_without_a_gap(cast: Cast, api_client: Programs) -> None:
    for _ in range(3):
        open_refund(by=cast.developer)
    auditor = api_client(cast.auditor)
    whole = [event["id"] for event in json_of(auditor.get("audit", limit=500))["items"]]
    seen: list[int] = []
    before: dict[str, int] = {}
    while True:
        part = json_of(auditor.get("audit", limit=2, **before))
        seen += [event["id"] for event in part["items"]]
        if part["next"] is None:
            break
        before = {"before": part["next"]}
    assert seen == whole
