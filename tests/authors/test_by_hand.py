"""Reviewed tools run in a run of the product only: whoever resumes their graph by hand is refused."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agents_runtime import registry
from agents_runtime.checkpointer import fenced_saver
from agents_runtime.fence import Fence
from agents_runtime.gate import ToolStopped
from agents_runtime.reviewed import idempotency_key, rehearsal
from tests.agents import effects, reviewed
from tests.agents.tools import apay
from tests.runtime.driving import APPROVE, answer, attempts, call, fresh, pending, script, start

HERE: RunnableConfig = {"configurable": {"thread_id": "by hand"}}
PAY = call("pay", to="a", amount=1)


@pytest.fixture(autouse=True)
def nothing_happened() -> None:
    effects.clear()


def _compiled(builder: Any) -> Any:
    return builder.copy({"checkpointer": InMemorySaver()})


@pytest.mark.parametrize("make", [reviewed.per_call, reviewed.batched])
def test_a_graph_that_is_resumed_by_hand_runs_no_reviewed_tool(make: Any) -> None:
    graph = _compiled(make())
    asked = graph.invoke(script([PAY]), HERE)["__interrupt__"]
    given = APPROVE if make is reviewed.per_call else {"decisions": [APPROVE]}
    with pytest.raises(ToolStopped, match="runs in a run of Countersign only"):
        graph.invoke(Command(resume={asked[0].id: given}), HERE)
    assert effects.count("pay_began") == 0
    assert graph.get_state(HERE).next == ("tools",)


def test_a_call_by_hand_that_nobody_need_be_asked_about_runs_no_reviewed_tool_either() -> None:
    with pytest.raises(ToolStopped):
        _compiled(reviewed.conditional()).invoke(script([PAY]), HERE)
    assert effects.count("pay_began") == 0


def test_tools_without_a_gate_run_by_hand_as_ever() -> None:
    result = _compiled(reviewed.per_call()).invoke(script([call("look", what="x")]), HERE)
    assert result["messages"][-1].content == "done: saw x"


async def test_a_graph_that_is_resumed_by_hand_on_a_loop_runs_no_reviewed_tool() -> None:
    graph = _compiled(reviewed.on_a_loop_by_hand())
    asked = (await graph.ainvoke(script([call(apay.name, to="a", amount=1)]), HERE))["__interrupt__"]
    with pytest.raises(ToolStopped, match="apay is reviewed"):
        await graph.ainvoke(Command(resume={asked[0].id: APPROVE}), HERE)
    assert effects.count("apay_began") == 0


def test_an_authors_own_test_may_rehearse() -> None:
    graph = _compiled(reviewed.per_call())
    asked = graph.invoke(script([PAY]), HERE)["__interrupt__"]
    with rehearsal():
        result = graph.invoke(Command(resume={asked[0].id: APPROVE}), HERE)
        assert idempotency_key() != idempotency_key()
    assert result["messages"][-1].content == "done: paid 1 to a"


@pytest.mark.usefixtures("runtime")
def test_a_rehearsal_changes_nothing_in_a_run() -> None:
    with rehearsal():
        run = start("r-forgetful", script([PAY]))
        effects.flag("gate_removed").touch()
        run = answer(pending(run), {"type": "reject"})
    assert effects.count("pay_began") == 0
    assert "does not allow it" in run.error


@pytest.mark.usefixtures("runtime")
def test_a_waiting_run_that_is_resumed_by_hand_stays_as_it_was() -> None:
    run = start("r-per-call", script([PAY]))
    pause = pending(run)
    graph = registry.load_graph(run.agent)
    by_hand = graph.copy({"checkpointer": fenced_saver(Fence(run.pk, fresh(run).epoch), [])})
    config: RunnableConfig = {"configurable": {"thread_id": run.thread_id}}
    with pytest.raises(ToolStopped):
        by_hand.invoke(Command(resume={pause.interrupt_id: APPROVE}), config)
    assert effects.count("pay_began") == 0
    run = answer(pause, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay") == len(attempts(run)) == 1
