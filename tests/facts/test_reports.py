"""Public bug reports of other review tools, row by row: here it comes out right.

Each test is named by its row; the docstring names the report. What the runtime must never do stands in
``test_traps`` and ``test_findings``; what only a browser can show, in ``test_reports_in_browser``.
"""

from __future__ import annotations

import json
import re
import threading
from itertools import product
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents_runtime import registry, runs, steps
from agents_runtime.canonical import Json, decode
from agents_runtime.checkpointer import fenced_saver
from agents_runtime.fence import Fence
from agents_runtime.listings import SHIPPED
from agents_runtime.models import AgentSpec
from agents_runtime.payloads import read
from agents_runtime.thread_state import RaisedInterrupt
from reviewer import claims, decisions, queries
from reviewer.errors import Conflict, Invalid, NotAllowed, ReviewProblem
from reviewer.expiry import expire_due
from reviewer.models import AuditEvent, Decision, Policy, Queue, ReviewTask
from reviewer.shown import card_of
from tests.agents import effects
from tests.cards.making import Reviewer as Form
from tests.cast import Cast
from tests.doors import ApiClient
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    at_once,
    attempts,
    call,
    edit,
    fresh,
    pauses,
    pending,
    script,
    start,
)
from tests.runtime.reviewing import Reviewer
from tests.web import test_inbox_socket
from tests.web.markup import read as read_page

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
DROP = call("drop", path="/b")


def as_task(*calls: dict[str, Json]) -> str:
    return str(script(list(calls))["messages"][0]["content"])


def form_of(task: ReviewTask, verdict: str) -> Form:
    """Return the form of a card with one of its decisions chosen."""
    return Form.at(card_of(task), verdict)


def filled(task: ReviewTask, form: Form, changes: dict[str, str]) -> dict[str, Any]:
    """Return what a browser posts when some fields of the form are changed and it is sent."""
    posted = form.page.post_with(None, changes)
    return {**posted, "digest": task.digest, "claim_version": str(task.claim_version)}


def test_report_02_shipped_agents_run_as_they_come(ines: Reviewer) -> None:
    """agent-inbox#33: no runnable example; several interrupts and subgraphs were open questions."""
    ours = AgentSpec.objects.filter(is_listed=True, source=str(SHIPPED))
    shipped = ours.exclude(example_input="")
    assert shipped.count() >= 3
    for spec in shipped:
        assert spec.is_available, spec.import_error
        run = start(spec.name, decode(spec.example_input))
        assert ines.cards(run), spec.name


def test_report_06_a_decided_card_opens(ines: Reviewer) -> None:
    """agent-inbox PR#61: threads that were no longer interrupted could not be opened."""
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    ines.decide(task, REJECT)
    assert "Ines H." in ines.page(task)


MALFORMED: list[Json] = [
    {"type": "tool_approval", "name": None, "args": []},
    {"action_requests": [None, 1, {"name": []}]},
    {"action_requests": [{"name": "x", "args": {}}], "review_configs": "none"},
    [{"action_request": {"action": 7}, "config": []}],
    {"__proto__": {"x": 1}, "constructor": None, "~type": "object"},
    "<script>alert(1)</script>",
    [[[[[[[[]]]]]]]],
]


@pytest.mark.parametrize("shape", MALFORMED)
def test_report_08_no_payload_leaves_the_page_blank(ines: Reviewer, shape: Json) -> None:
    """agent-chat-ui#77: the window went blank on an interrupt."""
    run = start("t-parrot", {"ask": json.dumps(shape)})
    task = ines.card(run)
    page = read_page(ines.browser.get(f"/tasks/{task.pk}/"))
    assert page.all("form", action=f"/tasks/{task.pk}/decide/")
    assert not page.inline


def test_report_10_a_minimal_legacy_request_is_shown_and_answered(ines: Reviewer) -> None:
    """agent-chat-ui#95: a minimal HumanInterrupt was not shown, and the graph was reset."""
    shapes: list[Json] = [
        {"action_request": {"action": "send", "args": {}}},
        {"action_request": {}, "config": {}},
    ]
    for shape in shapes:
        run = start("t-parrot", {"ask": json.dumps(shape)})
        assert ines.card(run).arguments == shape
        run = ines.answer(run, "fine")
        assert decode(run.output)["answers"] == ["fine"]


def test_report_12_each_combination_of_legacy_flags_offers_just_that() -> None:
    """agent-chat-ui#147: the legacy schema with allow_ignore and allow_respond was rendered wrongly."""
    words = {"accept": "approve", "edit": "edit", "ignore": "reject", "respond": "respond"}
    for flags in product([False, True], repeat=4):
        config = {f"allow_{name}": is_on for name, is_on in zip(words, flags, strict=True)}
        value = {"action_request": {"action": "send", "args": {}}, "config": config}
        (request,) = read(RaisedInterrupt("0" * 32, value, None, "x:1"), AgentSpec(tools="{}"), []).requests
        offered = set(request.response_schema["discriminator"]["mapping"])
        wanted = {words[name] for name in words if config[f"allow_{name}"]}
        assert offered == (wanted or {"respond"})


def test_report_14_questions_one_after_another_are_all_shown(ines: Reviewer) -> None:
    """agent-chat-ui PR#191: only the first of sequential interrupts was displayed."""
    run = start("t-house", {"ask": "x"})
    shown = []
    while run.status == "waiting":
        shown.append(ines.card(run).arguments)
        run = ines.answer(run, "on")
    assert shown == ["first?", "second?", "leave?"]


def test_report_16_the_answer_to_a_generic_question_is_no_new_input(ines: Reviewer) -> None:
    """agent-chat-ui PR#287: a generic payload was answered as new input, which made an endless loop."""
    run = start("t-parrot", {"ask": json.dumps({"type": "human_input_request", "prompt": "Name?"})})
    run = ines.answer(run, "Ann")
    assert run.status == "finished"
    assert decode(run.output)["answers"] == ["Ann"]
    assert run.steps.filter(kind="input").count() == 1


def test_report_18_a_question_of_a_subagent_is_a_card(ines: Reviewer) -> None:
    """deep-agents-ui#45: a subagent's interrupt showed no card, and the run was stuck."""
    for agent, given in (
        ("t-boss", call("delegate", task=as_task(PAY))),
        ("t-deep", call("task", description=as_task(PAY), subagent_type="general-purpose")),
    ):
        run = start(agent, script([given]))
        assert ines.card(run).tool == "pay"
        assert ines.answer(run, REJECT).status == "finished"


def test_report_20_a_decision_stops_at_the_next_gate(ines: Reviewer) -> None:
    """langgraph-studio#218: submitting as a node ran through the next interrupt."""
    run = start("t-per-call", script([PAY], [DROP]))
    run = ines.answer(run, APPROVE)
    assert ines.card(run).tool == "drop"
    assert effects.count("drop_began") == 0


def test_report_22_a_workers_retry_answers_nothing(ines: Reviewer) -> None:
    """langgraph#8837: invoke(None) answered the next interrupt with the stale value."""
    run = start("t-asker", {"ask": "x"})
    run = ines.answer(run, "one")
    waiting = ines.card(run)
    for _ in range(3):
        run = advance(run)
    assert ines.card(run) == waiting
    run = ines.answer(run, "two")
    assert decode(run.output)["answers"] == ["one", "two"]


def test_report_24_questions_of_parallel_tools_are_told_apart(ines: Reviewer) -> None:
    """langgraph#6626: parallel tools that called interrupt() inside one ToolNode got identical ids."""
    run = start("t-per-call", script([call("haggle", to=to, amount=1) for to in ("a", "b")]))
    for task in ines.cards(run):
        run = ines.decide(task, APPROVE)
    asked = {task.arguments["question"]: task for task in ines.cards(run)}
    assert set(asked) == {"Really 1 to a?", "Really 1 to b?"}
    assert len({task.pause.interrupt_id for task in asked.values()}) == 2
    ines.decide(asked["Really 1 to b?"], "b it is")
    run = ines.decide(asked["Really 1 to a?"], "a it is")
    assert run.status == "finished", run.error
    assert effects.count("haggle", to="a", agreed="a it is") == 1
    assert effects.count("haggle", to="b", agreed="b it is") == 1


def test_report_26_an_answer_is_not_used_for_the_next_question_of_a_subgraph(ines: Reviewer) -> None:
    """langgraph#2870: the resume value was reused for the next interrupt of the subgraph."""
    run = ines.answer(start("t-house", {"ask": "x"}), "one", "two", "three")
    assert decode(run.output)["answers"] == ["entered", "one", "two", "three"]


def test_report_28_a_loop_that_asks_again_has_no_effect_twice(ines: Reviewer) -> None:
    """langgraph#7780: an interrupt in a loop replays; extra resumes and doubled effects."""
    run = ines.answer(start("t-stubborn", {"ask": "x"}), "many", "lots", 12)
    assert decode(run.output)["answers"] == [12]
    assert [pause.status for pause in pauses(run)] == ["delivered"] * 3


def test_report_30_what_stands_before_a_question_of_a_subgraph_is_done_once(ines: Reviewer) -> None:
    """langgraph#6792: tasks before the interrupt ran again in subgraphs."""
    ines.answer(start("t-house", {"ask": "x"}), "one", "two", "three")
    assert effects.count("enter") == 1


def test_report_32_a_card_whose_question_is_gone_is_superseded(ines: Reviewer) -> None:
    """langgraph#6534: a goto with a pending interrupt raised another one."""
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    saver = fenced_saver(Fence(run.pk, run.epoch), [])
    graph = registry.load_graph(run.agent).copy({"checkpointer": saver})
    config: Any = {"configurable": {"thread_id": run.thread_id}}
    graph.update_state(config, {"messages": [("ai", "never mind")]}, as_node="model")
    run = ines.decide(task, APPROVE)
    task.refresh_from_db()
    assert task.status == "superseded"
    assert effects.count("pay_began") == 0
    assert "went on without" in pauses(run)[0].error


def test_report_34_a_step_that_never_ends_is_ended_and_says_so(settings: Settings) -> None:
    """langgraphjs#1298: a second interrupt halted silently."""
    settings.COUNTERSIGN_STEP_DEADLINE = 1
    effects.flag("wait_look").touch()
    run = start("t-per-call", script([call("look", what="x")]))
    effects.flag("wait_look").unlink()
    assert run.status == "failed"
    assert "took longer than 1 seconds" in run.error


async def test_report_36_a_card_raised_after_a_reload_reaches_the_page(
    ines: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """langgraphjs PR#2813: an interrupt raised after a page refresh never showed."""
    monkeypatch.setattr(test_inbox_socket, "SOON", 60.0)
    session = await sync_to_async(test_inbox_socket.session_of)(ines.person)
    first = test_inbox_socket.Page(session)
    await first.open()
    await first.socket.disconnect()
    again = test_inbox_socket.Page(session)
    await again.open()
    run = await sync_to_async(start)("t-per-call", script([PAY]))
    task = await sync_to_async(ReviewTask.objects.get)(run=run)
    assert str(task.pk) in await again.pushed_with(str(task.pk))
    await again.socket.disconnect()


def test_report_38_an_edit_names_the_same_tool(ines: Reviewer) -> None:
    """langchain#40166: an edit to another tool bypassed that tool's gate."""
    for agent in ("t-per-call", "t-batched", "t-legacy"):
        run = start(agent, {"ask": "edit"} if agent == "t-legacy" else script([PAY]))
        task = ines.card(run)
        with pytest.raises(Invalid):
            decisions.decide(task.pk, by=ines.person, answer=edit("other", path="/b"), digest=task.digest)
    assert effects.all_effects() == []


def test_report_40_a_rejection_is_on_record_and_nothing_ran(ines: Reviewer) -> None:
    """langchain#37093: a rejected call was still executed by a bare ToolNode; no recorded rejection."""
    run = ines.answer(start("t-per-call", script([PAY])), REJECT)
    assert run.status == "finished"
    assert Decision.objects.get(task__run=run).verdict == "reject"
    assert AuditEvent.objects.filter(type="decision.made", outcome="reject").count() == 1
    assert attempts(run) == []
    assert effects.count("pay_began") == 0


@pytest.mark.parametrize("agent", ["t-batched", "t-per-call"])
def test_report_42_a_rejection_leaves_the_approved_siblings_alone(ines: Reviewer, agent: str) -> None:
    """langchainjs#11125: one rejection discarded approved siblings."""
    run = start(agent, script([PAY, DROP, call("drop", path="/c")]))
    for task, given in zip(ines.cards(run), (APPROVE, REJECT, APPROVE), strict=True):
        run = ines.decide(task, given)
    assert run.status == "finished", run.error
    assert (effects.count("pay"), effects.count("drop", path="/c"), effects.count("drop")) == (1, 1, 1)


def test_report_44_the_answer_goes_to_the_question_it_names(ines: Reviewer) -> None:
    """auxilia PR#319: the first pending interrupt was picked instead of the given one."""
    run = start(
        "t-boss", script([call("delegate", task=as_task(call("pay", to=to, amount=1))) for to in "abc"])
    )
    tasks = {task.arguments["to"]: task for task in ines.cards(run)}
    run = ines.decide(tasks["c"], APPROVE)
    assert {task.arguments["to"] for task in ines.cards(run)} == {"a", "b"}
    run = ines.decide(tasks["a"], REJECT)
    run = ines.decide(tasks["b"], APPROVE)
    assert run.status == "finished", run.error
    assert sorted(e["to"] for e in effects.all_effects() if e["name"] == "pay") == ["b", "c"]


@pytest.mark.parametrize(
    ("given", "amount"),
    [(APPROVE, 1), (edit("pay", to="a", amount=5), 5), (REJECT, 0), ({"type": "respond", "message": "m"}, 0)],
)
def test_report_46_each_decision_works_in_a_subagent(ines: Reviewer, given: Json, amount: int) -> None:
    """deepagents#554: in a subagent only approve worked; edit and reject failed."""
    delegated = call("task", description=as_task(PAY), subagent_type="general-purpose")
    run = ines.answer(start("t-deep-per-call", script([delegated])), given)
    assert run.status == "finished", run.error
    assert [e["amount"] for e in effects.all_effects() if e["name"] == "pay"] == [amount] * bool(amount)


def test_report_48_the_card_of_an_async_subagent_tells_all(ines: Reviewer) -> None:
    """deepagents#3008: an interrupted async subagent gave no reason and no payload."""
    run = start("t-async-boss", script([call("delegate", task=as_task(call("apay", to="Ann", amount=7)))]))
    task = ines.card(run)
    assert (task.tool, task.arguments) == ("apay", {"to": "Ann", "amount": 7})
    page = ines.page(task)
    assert "apay" in page
    assert "Ann" in page


def test_report_50_a_reload_loses_no_pending_question(ines: Reviewer) -> None:
    """CopilotKit#1397, #2418: a reload lost the pending interrupt."""
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    assert all("Approve" in ines.page(task) for _ in range(3))
    assert str(task.pk) in ines.browser.get("/").content.decode()


@pytest.mark.parametrize("value", ["a plain string", {"a": {"dict": True}}, ["a", "list"]])
def test_report_52_any_tab_can_answer_with_any_value(ines: Reviewer, client_of: Any, value: Json) -> None:
    """CopilotKit#1991, #3096: a resume after a new tab failed, and string or dict resumes crashed."""
    run = start("t-shower", {"ask": "text"})
    task = ines.card(run)
    another: Client = client_of(ines.person)
    form = form_of(task, "answer")
    typed = {"v:/~0": value}
    if not isinstance(value, str):
        form.press("refresh", **{"b:": "1"})  # in JSON, and not in words
        typed = {"v:/~1": json.dumps(value)}
    response = another.post(f"/tasks/{task.pk}/decide/", filled(task, form, typed))
    assert response.status_code == 302, read_page(response).text
    assert decode(advance(run).output)["answers"] == [value]


def test_report_54_a_pending_question_can_be_called_off(ines: Reviewer) -> None:
    """assistant-ui#4477: a user wanted to type instead; there was no way to cancel what was pending."""
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    runs.cancel(run.pk)
    task.refresh_from_db()
    assert (task.status, fresh(run).status) == ("withdrawn", "cancelled")
    with pytest.raises(Conflict):
        decisions.decide(task.pk, by=ines.person, answer=APPROVE, digest=task.digest)
    assert effects.count("pay_began") == 0


def test_report_56_a_forged_id_approves_nothing(ines: Reviewer, api_client: Any) -> None:
    """agent-framework#4596, #4597: a forged approval id executed any tool."""
    program: ApiClient = api_client(ines.person)
    run = start("t-per-call", script([PAY]))
    for forged in ("00000000-0000-0000-0000-000000000000", str(run.pk), str(pending(run).pk)):
        assert program.post(f"tasks/{forged}/decision", {"answer": APPROVE, "digest": "0"}).status_code == 404
    assert advance(run).status == "waiting"
    assert effects.count("pay_began") == 0


def test_report_58_an_approval_binds_to_what_was_shown(ines: Reviewer, api_client: Any) -> None:
    """agent-framework PR#6376: an approval must bind to the exact arguments shown."""
    program: ApiClient = api_client(ines.person)
    run = start("t-per-call", script([PAY, call("pay", to="thief", amount=10**6)]))
    shown, other = ines.cards(run)
    wrong = program.post(f"tasks/{other.pk}/decision", {"answer": APPROVE, "digest": shown.digest})
    assert wrong.status_code == 409
    assert advance(run).status == "waiting"
    assert effects.count("pay_began") == 0


def test_report_60_a_policy_that_changes_leaves_open_cards_as_they_were(ines: Reviewer, cast: Cast) -> None:
    """cordum PR#204, #210, #294: a policy changed under a pending approval."""
    policy = Policy.objects.create(name="payments", tool="pay", queue=cast.payments, risk="high")
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    policy.risk, policy.version = "low", policy.version + 1
    policy.save()
    Policy.objects.filter(pk=policy.pk).update(queue=cast.mail)
    again = ReviewTask.objects.get(pk=task.pk)
    assert (again.risk, again.policy_label, again.digest) == (task.risk, task.policy_label, task.digest)
    assert ines.decide(again, APPROVE).status == "finished"


def test_report_62_who_decided_comes_from_the_session_and_never_from_the_body(
    ines: Reviewer, api_client: Any
) -> None:
    """edictum-console#19: ``decided_by`` was read from the request's body."""
    program: ApiClient = api_client(ines.person)
    task = ines.card(start("t-per-call", script([PAY])))
    body = {"answer": APPROVE, "digest": task.digest}
    assert program.post(f"tasks/{task.pk}/decision", {**body, "decided_by": "lead"}).status_code == 422
    assert program.post(f"tasks/{task.pk}/decision", body).status_code == 200
    assert Decision.objects.get(task=task).person == ines.person


def test_report_62_an_approval_after_the_deadline_is_refused_and_a_timeout_is_nobodys_denial(
    ines: Reviewer, cast: Cast
) -> None:
    """zeroclaw#9642, agent-secret#199: approved after expiry; a timeout logged as a person's denial."""
    Queue.objects.filter(pk=cast.general.pk).update(minutes_to_decide=60, on_expiry="reject")
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    ReviewTask.objects.filter(pk=task.pk).update(due_at=task.created_at)
    with pytest.raises(Conflict):
        decisions.decide(task.pk, by=ines.person, answer=APPROVE, digest=task.digest)
    assert expire_due() == 1
    task.refresh_from_db()
    assert (task.status, task.outcome.verdict, task.outcome.decided_by) == ("expired", "reject", None)
    assert not Decision.objects.filter(task=task).exists()
    assert advance(run).status == "finished"
    assert effects.count("pay_began") == 0


def test_report_64_hammering_claim_and_release_leaves_no_half_claim(ines: Reviewer, cast: Cast) -> None:
    """camunda#26622: fast assigning and unassigning left "assigned" without an assignee."""
    task = ines.card(start("t-per-call", script([PAY])))

    def hammer(person: Any) -> None:
        for _ in range(6):
            for verb in (claims.claim, claims.release):
                try:
                    verb(task.pk, by=person)
                except ReviewProblem:
                    continue

    at_once(lambda: hammer(cast.reviewer), lambda: hammer(cast.reviewer2))
    left = ReviewTask.objects.get(pk=task.pk)
    assert (left.claimed_by is None) == (left.claimed_until is None)
    assert left.status == "open"


def test_report_66_a_large_value_survives_an_edit_of_another_field(ines: Reviewer) -> None:
    """camunda#39189, #18991: a large value was cut, or its preview saved as the value."""
    large = "0123456789" * 100_000
    run = start("t-per-call", script([call("pay", to=large, amount=1)]))
    task = ines.card(run)
    assert ines.page(task)
    form = form_of(task, "edit")
    (amount,) = (control.name for control in form.page.controls if re.fullmatch(r"v:.*/amount", control.name))
    response = ines.browser.post(f"/tasks/{task.pk}/decide/", filled(task, form, {amount: "2"}))
    assert response.status_code == 302, read_page(response).text[:500]
    assert advance(run).status == "finished"
    assert effects.count("pay", to=large, amount=2) == 1


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
def test_report_68_a_date_stays_the_date_it_is_in_every_time_zone(zone: str) -> None:
    """form-js#1331: a date field counted down by itself."""
    schema = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}
    with timezone.override(zone):
        day: Json = {"day": "2026-03-01"}
        for _ in range(3):
            reading = Form.before(schema, day).send()
            assert not reading.errors
            day = reading.answer
    assert day == {"day": "2026-03-01"}


def test_report_70_a_card_is_handed_to_a_person_and_to_another_queue(ines: Reviewer, cast: Cast) -> None:
    """viewflow#373, #137: delegating, substituting, and assigning to a group were missing."""
    task = ines.card(start("t-per-call", script([PAY])))
    claims.assign(task.pk, to=cast.reviewer2, by=cast.lead)
    assert ReviewTask.objects.get(pk=task.pk).assigned_to == cast.reviewer2
    claims.move(task.pk, queue=cast.payments, by=cast.lead)
    assert ReviewTask.objects.get(pk=task.pk).queue == cast.payments
    assert queries.visible_tasks(cast.reviewer2).filter(pk=task.pk).exists()


def test_report_72_fifteen_people_at_one_card_make_one_decision(ines: Reviewer, cast: Cast) -> None:
    """argilla#5757, #5779, #5196: duplicate answers and drifting counters with 15 users."""
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    barrier = threading.Barrier(15)
    told: list[str] = []

    def decide(person: Any) -> None:
        barrier.wait(timeout=60)
        try:
            decisions.decide(task.pk, by=person, answer=APPROVE, digest=task.digest)
            told.append("won")
        except Conflict as conflict:
            told.append(conflict.code)

    people = (cast.reviewer, cast.reviewer2, cast.lead)
    at_once(*[lambda person=people[place % 3]: decide(person) for place in range(15)])
    assert told.count("won") == Decision.objects.filter(task=task).count() == 1
    assert told.count("decided") == 14
    assert advance(run).status == "finished"
    assert effects.count("pay") == 1
    assert not queries.visible_tasks(cast.lead).filter(status="open").exists()


def test_report_74_reading_an_address_never_decides(ines: Reviewer) -> None:
    """n8n PR#13792, PR#28085: link previews approved by GET."""
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    for verb in ("decide", "claim", "release"):
        for method in ("get", "head", "options"):
            assert getattr(ines.browser, method)(f"/tasks/{task.pk}/{verb}/").status_code == 405
    for verb in ("cancel", "retry", "settle"):
        assert ines.browser.get(f"/runs/{run.pk}/{verb}/").status_code == 405
    again = ReviewTask.objects.get(pk=task.pk)
    assert (again.status, again.claimed_by) == ("open", None)
    assert advance(run).status == "waiting"


def test_report_76_whoever_started_a_run_decides_it_at_no_door(
    ines: Reviewer, cast: Cast, api_client: Any
) -> None:
    """windmill#7886, #10262: the ban on approving one's own was enforced at one endpoint only, twice."""
    run = runs.start("t-per-call", input=script([PAY]), requested_by=ines.person.reference)
    task = ines.card(advance(run))
    program: ApiClient = api_client(ines.person)
    body = {"verdict": "approve", "digest": task.digest, "claim_version": "0"}
    refused = [
        ines.browser.post(f"/tasks/{task.pk}/decide/", body).status_code,
        ines.browser.post(f"/tasks/{task.pk}/claim/").status_code,
        program.post(f"tasks/{task.pk}/decision", {"answer": APPROVE, "digest": task.digest}).status_code,
        program.post(f"tasks/{task.pk}/claim").status_code,
    ]
    assert refused == [403] * 4
    with pytest.raises(NotAllowed):
        decisions.decide(task.pk, by=ines.person, answer=APPROVE, digest=task.digest)
    assert not Decision.objects.exists()
    assert advance(run).status == "waiting"


def test_report_78_a_decision_the_moment_its_card_appears_is_not_lost(ines: Reviewer) -> None:
    """temporal-sa/money-transfer-demo#8: an approval sent before the wait began was dropped."""
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    decided = threading.Event()

    def decide_at_once() -> None:
        while not (task := ReviewTask.objects.filter(run=run).first()):
            assert not decided.wait(0.001)
        decisions.decide(task.pk, by=ines.person, answer=APPROVE, digest=task.digest)

    at_once(lambda: steps.advance(run.pk), decide_at_once)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1


def test_report_80_history_and_roles_are_part_of_the_product(
    ines: Reviewer, cast: Cast, client_of: Any
) -> None:
    """langfuse#16007, label-studio#742: history and roles only in paid tiers."""
    run = ines.answer(start("t-per-call", script([PAY])), APPROVE)
    assert client_of(cast.auditor).get("/audit/").status_code == 200
    assert client_of(cast.reviewer).get("/audit/").status_code in {403, 404}
    told = list(AuditEvent.objects.filter(run_id=run.pk).values_list("type", flat=True))
    assert {"run.started", "task.opened", "decision.made", "tool.started", "run.finished"} <= set(told)
