"""The runs list, starting a run from its form, and what a person may do to one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.test import Client
from django.utils.timezone import now

from agents_runtime.canonical import decode, encode
from agents_runtime.models import AgentSpec, Run, RunStep, ToolExecution
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus
from reviewer import decisions, intake, steering
from reviewer.accounts.models import User
from reviewer.models import AuditEvent
from tests.cast import Cast
from tests.deciding.making import APPROVE, REJECT, open_refund, pause_run, question

ClientOf = Callable[[User], Client]

INPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "order": {"type": "string", "pattern": "^A-[0-9]+$", "title": "Order"},
        "amount": {"type": "integer", "title": "Amount"},
    },
    "required": ["order"],
}


@pytest.fixture
def agent(db: None) -> AgentSpec:
    """The only agent: its input has two fields, one with an example."""
    AgentSpec.objects.all().delete()
    return AgentSpec.objects.create(
        name="refunds",
        title="Customer refunds",
        source="langgraph.json",
        entry="./refunds.py:graph",
        input_schema=encode(INPUT_SCHEMA),
        example_input=encode({"order": "A-1043"}),
    )


def text_of(client: Client, path: str, status: int = 200) -> str:
    """Return a page's text."""
    response = client.get(path)
    assert response.status_code == status, response.content[:500]
    return response.content.decode()


def test_a_developer_starts_a_run_from_the_form_of_the_agents_input(
    cast: Cast, client_of: ClientOf, agent: AgentSpec
) -> None:
    client = client_of(cast.developer)
    form = text_of(client, "/runs/start/refunds/")
    assert "A-1043" in form
    response = client.post(
        "/runs/start/refunds/",
        {"verdict": "answer", "v:/order": "A-7", "s:/amount": "value", "v:/amount": "12"},
    )
    run = Run.objects.get()
    assert response.headers["Location"] == f"/runs/{run.pk}/"
    assert run.requested_by == cast.developer.reference
    assert decode(run.input) == {"order": "A-7", "amount": 12}


def test_a_start_form_that_does_not_fit_comes_back_with_422_and_what_was_typed(
    cast: Cast, client_of: ClientOf, agent: AgentSpec
) -> None:
    response = client_of(cast.developer).post(
        "/runs/start/refunds/", {"verdict": "answer", "v:/order": "no order"}
    )
    assert response.status_code == 422
    assert "no order" in response.content.decode()
    assert not Run.objects.exists()


def test_a_structural_button_of_the_start_form_redraws_it_and_starts_nothing(
    cast: Cast, client_of: ClientOf, agent: AgentSpec
) -> None:
    typed = {"verdict": "answer", "v:/order": "not yet", "s:/amount": "absent", "_op": "set:value:/amount"}
    response = client_of(cast.developer).post("/runs/start/refunds/", typed)
    assert response.status_code == 200
    assert "not yet" in response.content.decode()
    assert 'name="v:/amount"' in response.content.decode()
    assert not Run.objects.exists()


def test_a_reviewer_starts_no_runs(cast: Cast, client_of: ClientOf, agent: AgentSpec) -> None:
    client = client_of(cast.reviewer)
    assert client.get("/runs/start/").status_code == 403
    assert client.post("/runs/start/refunds/", {"v:/order": "A-7"}).status_code == 403
    assert not Run.objects.exists()


def test_an_agent_that_does_not_import_offers_no_form(
    cast: Cast, client_of: ClientOf, agent: AgentSpec
) -> None:
    AgentSpec.objects.update(import_error="ModuleNotFoundError: no module named 'requests'")
    page = text_of(client_of(cast.developer), "/runs/start/refunds/")
    assert "cannot run now" in page
    assert "Start the run" not in page


def test_a_run_is_seen_by_its_starter_and_by_members_of_its_queues_and_by_nobody_else(
    cast: Cast, client_of: ClientOf
) -> None:
    run = open_refund(by=cast.developer).run
    for person in (cast.developer, cast.reviewer, cast.lead, cast.admin, cast.auditor):
        assert client_of(person).get(f"/runs/{run.pk}/").status_code == 200, person
    assert client_of(cast.outsider).get(f"/runs/{run.pk}/").status_code == 404
    assert run.short_id in text_of(client_of(cast.reviewer), "/runs/")
    assert run.short_id not in text_of(client_of(cast.outsider), "/runs/")


def test_an_unknown_run_is_404(cast: Cast, client_of: ClientOf) -> None:
    assert client_of(cast.admin).get(f"/runs/{uuid4()}/").status_code == 404


def test_the_runs_list_filters_by_status_agent_and_mine(cast: Cast, client_of: ClientOf) -> None:
    waiting = open_refund(by=cast.developer).run
    other = pause_run(question(), by=cast.lead, agent="asker", interrupt="1" * 32).run
    client = client_of(cast.lead)
    assert other.short_id not in text_of(client, "/runs/?agent=refunds")
    mine = text_of(client, "/runs/?mine=1")
    assert other.short_id in mine
    assert waiting.short_id not in mine
    assert "No run fits this filter" in text_of(client, "/runs/?status=finished")


def test_the_search_opens_the_run_whose_id_is_given_and_else_filters_the_inbox(
    cast: Cast, client_of: ClientOf
) -> None:
    run = open_refund(by=cast.developer).run
    client = client_of(cast.reviewer)
    assert client.get("/search/", {"q": run.short_id}).headers["Location"] == f"/runs/{run.pk}/"
    assert client.get("/search/", {"q": "charged twice"}).headers["Location"] == "/?q=charged+twice"
    outsider = client_of(cast.outsider)
    assert outsider.get("/search/", {"q": str(run.pk)}).headers["Location"].startswith("/?q=")


def test_the_story_of_a_run_tells_who_decided_and_links_the_event_only_for_those_who_may_read_the_trail(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_refund(by=cast.developer)
    decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    event = AuditEvent.objects.get(type="decision.made")
    for_auditor = text_of(client_of(cast.auditor), f"/runs/{task.run_id}/")
    assert "Ines H. approved" in for_auditor
    assert f"/audit/{event.pk}/" in for_auditor
    for_reviewer = text_of(client_of(cast.reviewer), f"/runs/{task.run_id}/")
    assert "You approved" in for_reviewer
    assert "/audit/" not in for_reviewer


def test_what_an_agent_wrote_is_escaped_and_stands_in_a_fence(cast: Cast, client_of: ClientOf) -> None:
    run = open_refund(by=cast.developer).run
    text = "<script>alert(1)</script> pay\u202e now"
    RunStep.objects.create(run=run, key="message:m1", kind=RunStep.Kind.MODEL, text=text)
    page = text_of(client_of(cast.reviewer), f"/runs/{run.pk}/")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page
    assert '<div class="fence">' in page


def test_a_rejected_call_is_never_told_as_a_tool_that_ran(cast: Cast, client_of: ClientOf) -> None:
    task = open_refund(by=cast.developer)
    decisions.decide(task.pk, by=cast.reviewer, answer=REJECT, digest=task.digest)
    data = encode({"tool_call_id": task.tool_call_id, "status": "error"})
    RunStep.objects.create(
        run=task.run, key="tool:t:1", kind=RunStep.Kind.TOOL, name=task.tool, text="User rejected", data=data
    )
    page = text_of(client_of(cast.reviewer), f"/runs/{task.run_id}/")
    assert "Did not run" in page
    assert "Tool ran" not in page


def test_a_tool_in_doubt_is_settled_on_the_page_with_the_result_that_a_person_saw(
    cast: Cast, client_of: ClientOf
) -> None:
    execution = make_doubt(cast)
    client = client_of(cast.lead)
    page = text_of(client, f"/runs/{execution.run_id}/")
    assert "It happened" in page
    assert "Run it again" in page
    assert "Stop the run" in page
    response = client.post(
        f"/runs/{execution.run_id}/settle/",
        {"outcome": "happened", "execution": execution.pk, "result": '{"refund": "re_1"}'},
    )
    assert response.status_code == 302
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.ASSERTED
    assert execution.result == encode({"refund": "re_1"})
    assert AuditEvent.objects.filter(type="run.settled", actor=cast.lead).exists()


@pytest.mark.parametrize("outcome", ["happened", "run_again", "stop"])
def test_each_choice_on_a_doubt_is_recorded_with_the_person_and_the_attempt(cast: Cast, outcome: str) -> None:
    execution = make_doubt(cast)
    steering.settle(execution.run_id, outcome=outcome, result="re_1", by=cast.lead)
    event = AuditEvent.objects.get(type="run.settled", run_id=execution.run_id)
    assert (event.actor, event.outcome, event.tool) == (cast.lead, outcome, execution.tool)
    facts = json.loads(event.payload)["facts"]
    assert (facts["attempt"], facts["attempt_id"]) == (1, execution.pk)
    execution.refresh_from_db()
    ended = {"happened": "asserted", "run_again": "abandoned", "stop": "abandoned"}
    assert execution.status == ended[outcome]


@pytest.mark.parametrize("outcome", ["happened", "run_again", "stop"])
def test_a_choice_on_an_older_attempt_than_the_one_in_doubt_gets_409(
    cast: Cast, client_of: ClientOf, outcome: str
) -> None:
    older = make_doubt(cast)
    ToolExecution.objects.filter(pk=older.pk).update(status="abandoned", finished_at=older.started_at)
    newer = ToolExecution.objects.get(pk=older.pk)
    newer.pk, newer.attempt, newer.status, newer.grant = None, 2, ExecutionStatus.STARTED, "run_again"
    newer.finished_at = None
    newer.save(force_insert=True)
    chosen = {"outcome": outcome, "execution": older.pk, "result": "x"}
    assert client_of(cast.lead).post(f"/runs/{older.run_id}/settle/", chosen).status_code == 409
    newer.refresh_from_db()
    assert newer.status == ExecutionStatus.STARTED
    assert not AuditEvent.objects.filter(type="run.settled", run_id=older.run_id).exists()


def test_settling_without_a_choice_says_so_and_keeps_what_was_typed(cast: Cast, client_of: ClientOf) -> None:
    execution = make_doubt(cast)
    response = client_of(cast.lead).post(
        f"/runs/{execution.run_id}/settle/", {"execution": execution.pk, "result": "re_55"}
    )
    assert response.status_code == 422
    assert "Choose one of the three" in response.content.decode()
    assert "re_55" in response.content.decode()


def test_an_auditor_sees_a_doubt_but_cannot_settle_it(cast: Cast, client_of: ClientOf) -> None:
    execution = make_doubt(cast)
    client = client_of(cast.auditor)
    assert "Record this" not in text_of(client, f"/runs/{execution.run_id}/")
    assert client.post(f"/runs/{execution.run_id}/settle/", {"outcome": "stop"}).status_code == 403


def test_cancelling_withdraws_the_open_cards_and_a_second_cancel_is_409(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_refund(by=cast.developer)
    client = client_of(cast.developer)
    assert client.post(f"/runs/{task.run_id}/cancel/").status_code == 302
    task.refresh_from_db()
    assert task.status == "withdrawn"
    assert client.post(f"/runs/{task.run_id}/cancel/").status_code == 409


def test_nothing_changes_by_a_get(cast: Cast, client_of: ClientOf) -> None:
    task = open_refund(by=cast.developer)
    client = client_of(cast.developer)
    for verb in ("cancel", "retry", "settle"):
        assert client.get(f"/runs/{task.run_id}/{verb}/").status_code == 405


def test_a_run_that_waits_is_not_given_new_input(cast: Cast, client_of: ClientOf) -> None:
    task = open_refund(by=cast.developer)
    AgentSpec.objects.update(input_schema=encode({"type": "string"}))
    response = client_of(cast.developer).post(f"/runs/{task.run_id}/input/", {"v:": "go on"})
    assert response.status_code == 409


def test_the_state_is_shown_as_a_tree_that_escapes_what_the_agent_holds(
    cast: Cast, client_of: ClientOf
) -> None:
    run = open_refund(by=cast.developer).run
    state = {"values": {"<b>key": ["<img src=x>", None, 1.0]}, "next": ["tools"], "checkpoint_id": "1f0-abc"}
    Run.objects.filter(pk=run.pk).update(state=encode(state))
    page = text_of(client_of(cast.reviewer), f"/runs/{run.pk}/")
    assert "&lt;img src=x&gt;" in page
    assert "<img" not in page
    assert "1f0-abc" in page
    assert "1.0" in page


@transaction.atomic
def make_doubt(cast: Cast) -> ToolExecution:
    """Store a run whose approved refund was under way when its worker died."""
    task = open_refund(by=cast.developer)
    decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    run, pause = task.run, task.pause
    run.refresh_from_db()
    pause.refresh_from_db()
    pause.become(PauseStatus.DELIVERING)
    pause.delivery_epoch = 1
    pause.save()
    pause.become(PauseStatus.IN_DOUBT)
    pause.save()
    run.become(RunStatus.IN_DOUBT)
    run.save()
    execution = ToolExecution.objects.create(
        run=run,
        pause=pause,
        call_key="call",
        tool=task.tool,
        tool_call_id=task.tool_call_id,
        arguments=task.action,
        arguments_digest="0" * 64,
        grant=ToolExecution.Grant.DECISION,
        epoch=1,
        in_doubt_since=run.created_at,
    )
    intake.Desk().run_in_doubt(run, [execution])
    return execution


def test_only_those_who_may_give_new_input_see_its_form(cast: Cast, client_of: ClientOf) -> None:
    run_id = open_refund(by=cast.developer).run_id
    for person, status in (
        (cast.developer, 200),
        (cast.reviewer, 403),
        (cast.auditor, 403),
        (cast.outsider, 404),
    ):
        assert client_of(person).get(f"/runs/{run_id}/input/").status_code == status


def test_the_list_tells_runs_of_one_agent_apart_by_their_input(cast: Cast, client_of: ClientOf) -> None:
    first = open_refund(by=cast.developer).run_id
    second = open_refund(by=cast.developer).run_id
    spoken = {"messages": [{"role": "user", "content": "Refund  <b>order</b>\u202e A-7"}]}
    Run.objects.filter(pk=first).update(input=encode({"ticket": "T-1", "n": 3, "scope": ["nightly"]}))
    Run.objects.filter(pk=second).update(input=encode(spoken))
    page = text_of(client_of(cast.developer), "/runs/")
    assert "nightly, T-1" in page
    assert "Refund &lt;b&gt;order&lt;/b&gt;" in page
    assert "\u202e" not in page


def ask_and_feed(cast: Cast, client: Client, agent: AgentSpec, **fields: str) -> tuple[Run, Any]:
    """Let a run ask somebody, and give it new input through its page."""
    run = open_refund(by=cast.developer).run
    response = client.post(
        f"/runs/{run.pk}/input/",
        {"verdict": "answer", "v:/order": "A-8", "s:/amount": "value", "v:/amount": "3"} | fields,
    )
    run.refresh_from_db()
    return run, response


def test_new_input_for_a_run_that_asks_people_shows_what_is_open_and_closes_nothing_unasked(
    cast: Cast, client_of: ClientOf, agent: AgentSpec
) -> None:
    client = client_of(cast.developer)
    run, response = ask_and_feed(cast, client, agent)
    page = response.content.decode()
    assert response.status_code == 409
    assert "The run waits for 1 decision" in page
    assert "A-8" in page  # what was typed is kept
    task = run.tasks.get()
    assert task.title in page
    assert task.is_open
    assert "Give new input" in text_of(client, f"/runs/{run.pk}/")


def test_new_input_closes_the_open_cards_when_asked_to_and_says_who_did(
    cast: Cast, client_of: ClientOf, agent: AgentSpec
) -> None:
    run, response = ask_and_feed(cast, client_of(cast.developer), agent, close_open_reviews="1")
    assert response.headers["Location"] == f"/runs/{run.pk}/"
    assert (run.status, run.closes_reviews) == ("running", True)
    assert decode(run.pending_input) == {"order": "A-8", "amount": 3}
    assert run.tasks.get().status == "superseded"
    (told,) = AuditEvent.objects.filter(run_id=run.pk, type="run.reviews_closed")
    assert told.actor == cast.developer
    assert "closed its open cards" in text_of(client_of(cast.reviewer), f"/runs/{run.pk}/")


def test_a_run_whose_checkpoints_are_deleted_says_when_and_by_whom_and_takes_no_input(
    cast: Cast, client_of: ClientOf
) -> None:
    run = open_refund(by=cast.developer).run
    Run.objects.filter(pk=run.pk).update(
        status="finished",
        finished_at=now(),
        thread_deleted_at=now(),
        thread_deleted_by="retention after 9 days",
    )
    client = client_of(cast.developer)
    page = text_of(client, f"/runs/{run.pk}/")
    assert "Checkpoint deleted on" in page
    assert "by retention after 9 days" in page
    assert "Give new input" not in page
    assert client.post(f"/runs/{run.pk}/input/", {"verdict": "answer"}).status_code in {409, 422}
