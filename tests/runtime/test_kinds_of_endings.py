"""Whatever kind of question is open: new input closes it in order, and what is gone is seen and said.

Which states that goes through is tested in ``test_new_input`` and ``test_repair``; here are the kinds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from agents_runtime import registry, runs, thread_lock
from agents_runtime.canonical import Json, decode
from agents_runtime.checkpointer import fenced_saver
from agents_runtime.engine import Engine
from agents_runtime.fence import Fence
from agents_runtime.models import Run
from agents_runtime.thread_state import GiveAnswer
from reviewer import decisions
from reviewer.models import AuditEvent, ReviewTask
from tests.agents import effects
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    answer,
    call,
    fresh,
    pauses,
    pending,
    script,
    start,
)
from tests.runtime.reviewing import Reviewer
from tests.runtime.storing import delete_thread

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
APAY = call("apay", to="a", amount=1)
NEXT = script([call("look", what="y")])


def as_task(*calls: dict[str, Json]) -> str:
    return str(script(list(calls))["messages"][0]["content"])


def in_helper(*calls: dict[str, Json]) -> Json:
    return script([call("task", description=as_task(*calls), subagent_type="general-purpose")])


@pytest.mark.parametrize(
    ("agent", "begin", "following"),
    [
        ("t-deep", script([PAY]), NEXT),
        ("t-deep", in_helper(PAY), NEXT),
        ("t-deep-per-call", in_helper(PAY), NEXT),
        ("t-deep-async", script([APAY]), NEXT),
        ("t-async-batched", script([APAY, call("look", what="x")]), NEXT),
        ("t-async-boss", script([call("delegate", task=as_task(APAY))]), NEXT),
        ("t-drafter", script([]), script([])),
        ("t-held", script([call("look", what="x")]), NEXT),
        ("t-house", {"ask": "x"}, {"ask": "y"}),
        ("t-legacy", {"ask": "accept"}, {"ask": "accept"}),
        ("t-async-asker", {"ask": "x"}, {"ask": "y"}),
        ("t-async-breakpoints", {"ask": "x"}, {"ask": "y"}),
    ],
)
def test_new_input_closes_a_question_of_any_kind_and_leaves_a_history_that_models_take(
    ines: Reviewer, agent: str, begin: Json, following: Json
) -> None:
    run = start(agent, begin)
    before = ines.cards(run)
    runs.add_input(run.pk, following, close_open_reviews=True)
    run = advance(run)
    assert run.status in {"finished", "waiting"}, run.error
    assert set(ReviewTask.objects.filter(pk__in=[task.pk for task in before]).values_list("status")) == {
        ("superseded",)
    }
    assert effects.count("pay_began") == effects.count("apay_began") == 0
    assert unanswered(run) == (1 if run.status == "waiting" and agent == "t-held" else 0)


def unanswered(run: Run) -> int:
    """Count the model's calls that no message answers; a provider refuses such a history."""
    messages = decode(run.state)["values"].get("messages", [])
    called = Counter(one["id"] for message in messages for one in message.get("tool_calls", []))
    called.subtract(message["tool_call_id"] for message in messages if message["type"] == "tool")
    return sum(called.values())


# What is unknown, spent, vanished or orphaned is noticed, and shown to whoever looks


@pytest.mark.parametrize("agent", ["t-per-call", "t-async", "t-batched", "t-deep-per-call", "t-boss"])
def test_an_unknown_or_spent_interrupt_takes_no_answer(agent: str) -> None:
    name = "apay" if agent == "t-async" else "pay"
    paid = call(name, to="a", amount=1)
    first = [call("delegate", task=as_task(paid))] if agent == "t-boss" else [paid]
    run = start(agent, script(first, first))
    spent = pending(run)
    run = answered(run)
    assert run.status == "waiting"
    with thread_lock.hold(run.pk) as epoch:
        assert epoch is not None
        engine = Engine(Run.objects.select_related("agent").get(pk=run.pk), epoch)
        for interrupt_id in ("0" * 32, spent.interrupt_id):
            outcome = engine.step(GiveAnswer(spent.pk, interrupt_id, APPROVE))
            assert "UnknownInterruptError" in outcome.error
    assert effects.count(name) == 1
    assert answered(run).status == "finished"
    assert effects.count(name) == 2


def answered(run: Run) -> Run:
    """Approve whatever the run's one pause asks."""
    pause = pending(run)
    return answer(pause, *[APPROVE] * len(pause.call_list))


def thread_of(run: Run) -> tuple[Any, RunnableConfig]:
    """Return the run's graph and thread as somebody behind the product's back would use them."""
    saver = fenced_saver(Fence(run.pk, fresh(run).epoch), [])
    return registry.load_graph(run.agent).copy({"checkpointer": saver}), {
        "configurable": {"thread_id": run.thread_id}
    }


def test_an_answer_given_behind_the_products_back_closes_the_card_and_says_so(ines: Reviewer) -> None:
    run = start("t-inspector", {"ask": "x"})
    task = ines.card(run)
    graph, config = thread_of(run)
    graph.invoke(Command(resume={task.pause.interrupt_id: {"verdict": "pass", "score": 1}}), config)
    run = ines.decide(task, {"verdict": "fail", "score": 0})
    task.refresh_from_db()
    assert task.status == "superseded"
    assert "went on without this answer" in pauses(run)[0].error
    assert AuditEvent.objects.filter(type="pause.superseded").count() == 1
    assert "without" in ines.page(task)


def test_a_question_raised_behind_the_products_back_becomes_a_card(ines: Reviewer) -> None:
    run = start("t-stubborn", {"ask": "x"})
    first = ines.card(run)
    graph, config = thread_of(run)
    graph.invoke(Command(resume={first.pause.interrupt_id: "many"}), config)
    run = ines.decide(first, 3)
    orphan = ines.card(run)
    assert orphan.arguments == "'many' is no number. How many?"
    first.refresh_from_db()
    assert first.status == "superseded"
    run = ines.decide(orphan, 12)
    assert decode(run.output)["answers"] == [12]


def test_a_card_whose_thread_is_gone_says_so_and_runs_nothing(ines: Reviewer) -> None:
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    delete_thread(run)
    run = ines.decide(task, APPROVE)
    assert (run.status, run.trouble) == ("failed", "checkpoint")
    assert "gone" in ines.browser.get(f"/runs/{run.pk}/").content.decode()
    assert effects.all_effects() == []


def test_a_rejection_of_a_question_that_vanished_is_no_success(ines: Reviewer) -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/b")]))
    pay, drop = ines.cards(run)
    graph, config = thread_of(run)
    graph.update_state(config, {"messages": [("ai", "never mind")]}, as_node="model")
    run = ines.decide(pay, REJECT)
    for task in (pay, drop):
        task.refresh_from_db()
        assert task.status == "superseded"
    assert effects.all_effects() == []


# Each answer is handed over once


@pytest.mark.parametrize(("agent", "name"), [("t-per-call", "pay"), ("t-async", "apay"), ("t-crowd", "")])
def test_each_answer_is_handed_over_once_alone_and_in_the_order_it_was_given(
    ines: Reviewer, agent: str, name: str
) -> None:
    calls = [call(name, to=to, amount=1) for to in "abc"]
    run = start(agent, script(calls) if name else {"ask": "3"})
    first, second, third = ines.cards(run)
    given = (third, first, second)
    for task in given:
        decisions.decide(task.pk, by=ines.person, answer=APPROVE if name else "so", digest=task.digest)
    for _ in range(2):
        run = advance(run)
    assert run.status == "finished", run.error
    handed = AuditEvent.objects.filter(run_id=run.pk, type="answer.delivering").order_by("pk")
    ids = [decode(event.payload)["facts"]["interrupt"] for event in handed]
    assert ids == [task.pause.interrupt_id for task in given]
    assert {pause.status for pause in pauses(run)} == {"delivered"}
    assert effects.count(name) == (3 if name else 0)
