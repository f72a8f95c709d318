"""Gates, tools, mode and asyncness are found in graphs that say nothing about them themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agents_runtime.anatomy import Anatomy, examine
from agents_runtime.listings import Gate
from agents_runtime.loading import Graph, load
from tests.registry.conftest import entry
from tests.registry.sources import gated

Project = Callable[..., Path]


class Thing:
    """Not for JSON."""


ALL = ("approve", "edit", "reject", "respond")


class Model(GenericFakeChatModel):
    """A model that is never asked anything here."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Accept the tools."""
        return self


@tool
def wipe(path: str) -> str:
    """Wipe a disk."""
    return path


@tool
async def wipe_later(path: str) -> str:
    """Wipe a disk, later."""
    return path


def _agent(*tools: BaseTool, middleware: Any = ()) -> Graph:
    return create_agent(Model(messages=iter([])), tools=list(tools), middleware=middleware)


def _hitl(
    gates: dict[str, Any] | None = None, *, mode: Literal["batched", "per_call"] = "per_call"
) -> HumanInTheLoopMiddleware[Any, Any, Any]:
    return HumanInTheLoopMiddleware(gates or {"wipe": True}, interrupt_mode=mode)


def _found(anatomy: Anatomy) -> tuple[set[str], str]:
    return set(anatomy.gates), anatomy.mode


inner_agent = _agent(wipe, middleware=[_hitl(mode="batched")])


def _ask_inner(question: str) -> str:
    return str([inner_agent.invoke({"messages": [one]}) for one in [question]])


@tool
def research(question: str) -> str:
    """Let another agent do it."""
    return _ask_inner(question)


later_agent = _agent(wipe_later)


def _delegate(question: str) -> str:
    """Let an agent do it that may only be called from a loop."""
    return str(later_agent.invoke({"messages": [question]}))


async def _delegate_later(question: str) -> str:
    return str(await later_agent.ainvoke({"messages": [question]}))


delegate = StructuredTool.from_function(_delegate, coroutine=_delegate_later)


@pytest.mark.parametrize("mode", ["per_call", "batched"])
def test_both_modes_of_the_middleware_are_found(mode: Literal["per_call", "batched"]) -> None:
    anatomy = examine(_agent(wipe, middleware=[_hitl(mode=mode)]))
    assert anatomy.gates == {"wipe": Gate(ALL)}
    assert anatomy.mode == mode


def test_a_graph_without_gates_has_none() -> None:
    anatomy = examine(_agent(wipe))
    assert (anatomy.gates, anatomy.mode) == ({}, "none")
    assert set(anatomy.tools) == {"wipe"}


def test_allowed_decisions_and_conditions_are_told() -> None:
    gates = {
        "wipe": {"allowed_decisions": ["approve", "reject"], "when": lambda _: True},
        "look": False,
    }
    assert examine(_agent(wipe, middleware=[_hitl(gates)])).gates == {
        "wipe": Gate(("approve", "reject"), is_conditional=True)
    }


def test_a_gate_for_a_tool_that_does_not_exist_is_listed_all_the_same() -> None:
    anatomy = examine(_agent(wipe, middleware=[_hitl({"ghost": True})]))
    assert anatomy.gates == {"ghost": Gate(ALL)}
    assert set(anatomy.tools) == {"wipe"}


@pytest.mark.parametrize("is_outer", [True, False])
def test_the_gate_is_found_among_other_middleware(is_outer: bool) -> None:
    stack = [_hitl(), ToolRetryMiddleware()]
    assert _found(examine(_agent(wipe, middleware=stack if is_outer else stack[::-1]))) == (
        {"wipe"},
        "per_call",
    )


def test_a_subclass_of_the_middleware_is_found() -> None:
    class Ours(HumanInTheLoopMiddleware[Any, Any, Any]):
        """Somebody's own."""

    assert _found(examine(_agent(wipe, middleware=[Ours({"wipe": True})]))) == ({"wipe"}, "batched")


def test_an_agent_that_is_a_node_of_a_graph_is_looked_into() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", inner_agent)
    builder.add_edge(START, "agent")
    anatomy = examine(builder.compile())
    assert _found(anatomy) == ({"wipe"}, "batched")
    assert set(anatomy.tools) == {"wipe"}


def test_an_agent_that_a_node_calls_is_looked_into() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": inner_agent.invoke(state)["messages"]})
    builder.add_edge(START, "agent")
    assert _found(examine(builder.compile())) == ({"wipe"}, "batched")


def test_an_agent_that_a_tool_calls_is_looked_into() -> None:
    anatomy = examine(_agent(research))
    assert _found(anatomy) == ({"wipe"}, "batched")
    assert set(anatomy.tools) == {"research", "wipe"}


def test_an_agent_in_a_tools_closure_is_looked_into() -> None:
    def make(agent: Graph) -> BaseTool:
        def task(question: str) -> str:
            return str(agent.invoke({"messages": [question]}))

        return StructuredTool.from_function(task, description="Delegate.")

    assert _found(examine(_agent(make(inner_agent)))) == ({"wipe"}, "batched")


def test_two_modes_in_one_graph_are_mixed_and_their_decisions_joined() -> None:
    outer = _hitl(
        {"wipe": {"allowed_decisions": ["respond"]}, "research": {"allowed_decisions": ["approve"]}}
    )
    anatomy = examine(_agent(research, middleware=[outer]))
    assert anatomy.mode == "mixed"
    assert set(anatomy.gates["wipe"].decisions) == set(ALL)
    assert anatomy.gates["research"] == Gate(("approve",))


def test_a_tool_is_described_as_the_model_sees_it(project: Project) -> None:
    source = project({"a": "./agent.py:graph"}, {"agent.py": gated()})
    face = examine(load(entry(source, "a"))).tools["wipe"]
    assert face.title == "Wipe {path}"
    assert face.description == "Wipe a disk.\n\nNothing is left."
    assert list(face.args_schema["properties"]) == ["path", "level"]
    assert face.args_schema["required"] == ["path", "level"]


def test_a_tool_given_by_json_schema_keeps_it() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    by_schema = StructuredTool(name="t", description="d", args_schema=schema, func=print)
    assert examine(_agent(by_schema)).tools["t"].args_schema == schema | {"description": "d"}


def test_a_tool_whose_arguments_have_no_json_form_takes_any_object() -> None:
    def use(thing: Thing) -> str:
        """Use a thing."""
        return ""

    strange = StructuredTool.from_function(use)
    assert examine(_agent(strange)).tools["use"].args_schema == {"type": "object"}


def test_tools_of_a_plain_graph_are_found() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("work", ToolNode([wipe]))
    builder.add_edge(START, "work")
    assert set(examine(builder.compile()).tools) == {"wipe"}


async def _later(state: MessagesState) -> dict[str, Any]:
    return {}


def _now(state: MessagesState) -> dict[str, Any]:
    return {}


async def _branch_later(state: MessagesState) -> str:
    return "__end__"


class AsyncHooks(AgentMiddleware[Any, Any, Any]):
    """Has only the async form of a hook."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Do nothing."""
        return await handler(request)


class AsyncNode(AgentMiddleware[Any, Any, Any]):
    """Has only the async form of a node."""

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        """Do nothing."""


def _graph(node: Any, *, branch: Any = None) -> Graph:
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    if branch:
        builder.add_conditional_edges("node", branch)
    return builder.compile()


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (_graph(_now), False),
        (_graph(_later), True),
        (_graph(_now, branch=_branch_later), True),
        (_graph(_graph(_later)), True),
        (_agent(wipe, middleware=[_hitl(), ToolRetryMiddleware()]), False),
        (_agent(wipe, wipe_later), True),
        (_agent(wipe, middleware=[AsyncHooks()]), True),
        (_agent(wipe, middleware=[AsyncNode()]), True),
        (_graph(_agent(wipe_later)), True),
        (_agent(research), False),
        (_agent(delegate), True),
    ],
    ids=[
        "sync node",
        "async node",
        "async branch",
        "async subgraph",
        "sync agent",
        "async tool",
        "async hook",
        "async middleware node",
        "agent with async tool as a node",
        "sync tool that calls an agent",
        "tool in both forms that calls an async agent",
    ],
)
def test_a_graph_that_needs_an_event_loop_is_known(graph: Graph, expected: bool) -> None:
    assert examine(graph).is_async is expected
