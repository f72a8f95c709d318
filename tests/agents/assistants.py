"""Agents with tools: per call, batched, async, conditional, with a subagent, with a gate that may vanish."""

from __future__ import annotations

from typing import Any

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from tests.agents import effects
from tests.agents.playbook import Playbook, Talker
from tests.agents.tools import GATED, apay, drop, haggle, look, pay

TOOLS = [pay, drop, look, haggle]


def per_call() -> Any:
    """Ask for each call."""
    gate = HumanInTheLoopMiddleware(interrupt_on=GATED, interrupt_mode="per_call")
    return create_agent(Playbook(), TOOLS, middleware=[gate])


def batched() -> Any:
    """Ask for a turn's calls together."""
    return create_agent(Playbook(), TOOLS, middleware=[HumanInTheLoopMiddleware(interrupt_on=GATED)])


def on_a_loop() -> Any:
    """Its tools are async only."""
    allowed: Any = {"apay": {"allowed_decisions": ["approve", "edit", "reject"]}}
    gate = HumanInTheLoopMiddleware(interrupt_on=allowed, interrupt_mode="per_call")
    return create_agent(Playbook(), [apay, look], middleware=[gate])


def conditional() -> Any:
    """Ask only for more than 100, unless a test's flag changes the agent's mind."""

    def when(request: Any) -> bool:
        return bool(request.tool_call["args"]["amount"] > 100) and not effects.is_set("never_ask")

    allowed: Any = {"pay": {"allowed_decisions": ["approve", "reject"], "when": when}}
    gate = HumanInTheLoopMiddleware(interrupt_on=allowed, interrupt_mode="per_call")
    return create_agent(Playbook(), [pay], middleware=[gate])


def forgetful() -> Any:
    """Its gate is known from its file only, and its code asks nobody while the flag is set."""

    def when(request: Any) -> bool:
        return not effects.is_set("gate_removed")

    allowed: Any = {"pay": {"allowed_decisions": ["approve", "reject"], "when": when}}
    gate = HumanInTheLoopMiddleware(interrupt_on=allowed, interrupt_mode="per_call")
    return create_agent(Playbook(), [pay], middleware=[gate])


def beside() -> Any:
    """Ask a question beside an agent that asks for a turn's calls together, unless a test's flag is set."""

    def when(request: Any) -> bool:
        return not effects.is_set("gate_removed")

    def ask(state: AgentState[Any]) -> None:
        interrupt("Is it late?")

    allowed: Any = {"pay": {"allowed_decisions": ["approve", "reject"], "when": when}}
    agent = create_agent(Playbook(), [pay], middleware=[HumanInTheLoopMiddleware(interrupt_on=allowed)])
    graph = StateGraph(AgentState)
    graph.add_node("ask", ask)
    graph.add_node("agent", agent)
    for node in ("ask", "agent"):
        graph.add_edge(START, node)
        graph.add_edge(node, END)
    return graph


def boss() -> Any:
    """Delegate to a subagent that has gates of its own."""
    worker = per_call()

    @tool
    def delegate(task: str) -> str:
        """Let the subagent play a script."""
        result = worker.invoke({"messages": [("user", task)]})
        return str(result["messages"][-1].content)

    return create_agent(Playbook(), [delegate, look])


def unguarded() -> Any:
    """Its file says that a tool is gated; its code asks nobody."""
    return create_agent(Playbook(), [pay])


def talker() -> Any:
    """Speak word by word."""
    return create_agent(Talker(), [look])
