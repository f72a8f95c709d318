"""Agents with tools: per call, batched, async, conditional, with subagents, drafts and vanishing gates."""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from pydantic import Field

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


class DraftReview(AgentMiddleware[Any, Any, Any]):
    """Ask a person about the last words of the agent before anybody else reads them."""

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Let a person mend a message that calls no tool."""
        message = state["messages"][-1]
        if message.tool_calls:
            return None
        words: Any = Annotated[str, Field(min_length=1)]
        mended = interrupt({"draft": message.content}, response_schema=words)
        effects.happened("draft_sent", text=mended)
        return {"messages": [message.model_copy(update={"content": mended})]}

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same on a loop."""
        return self.after_model(state, runtime)


def drafter() -> Any:
    """Show each draft to a person, beside the gate of its tools."""
    gate = HumanInTheLoopMiddleware(interrupt_on=GATED, interrupt_mode="per_call")
    return create_agent(Playbook(), [pay], middleware=[DraftReview(), gate])


def drafter_on_a_loop() -> Any:
    """Show each draft to a person, on an event loop."""
    return create_agent(Playbook(), [apay], middleware=[DraftReview()])


def batched_on_a_loop() -> Any:
    """Ask for a turn's calls of async tools together."""
    allowed: Any = {"apay": {"allowed_decisions": ["approve", "edit", "reject"]}}
    return create_agent(Playbook(), [apay, look], middleware=[HumanInTheLoopMiddleware(interrupt_on=allowed)])


def describing() -> Any:
    """Describe each call in words of the author's own, and say its own note when a reviewer changed one."""

    def describe(tool_call: Any, state: Any, runtime: Any) -> str:
        said = state["messages"][-1].content
        return f"{said} Would pay {tool_call['args']['amount']} to {tool_call['args']['to']}."

    allowed: Any = {"pay": {**GATED["pay"], "description": describe}}
    gate = HumanInTheLoopMiddleware(
        interrupt_on=allowed, interrupt_mode="per_call", edit_notice="A colleague mended this."
    )
    return create_agent(Playbook(), [pay], middleware=[gate])


def boss_of_batches() -> Any:
    """Delegate to subagents that ask for a turn's calls together."""
    worker = batched()

    @tool
    def delegate(task: str) -> str:
        """Let a subagent play a script."""
        result = worker.invoke({"messages": [("user", task)]})
        return str(result["messages"][-1].content)

    return create_agent(Playbook(), [delegate, look])


def boss_on_a_loop() -> Any:
    """Delegate to async subagents that have gates of their own."""
    worker = on_a_loop()

    @tool
    async def delegate(task: str) -> str:
        """Let a subagent play a script."""
        result = await worker.ainvoke({"messages": [("user", task)]})
        return str(result["messages"][-1].content)

    return create_agent(Playbook(), [delegate, look])


def boss_of_the_held() -> Any:
    """Delegate to a subagent that a static breakpoint stops before its tools."""
    worker = held_before_tools()

    @tool
    def delegate(task: str) -> str:
        """Let a subagent play a script."""
        result = worker.invoke({"messages": [("user", task)]})
        return str(result["messages"][-1].content)

    return create_agent(Playbook(), [delegate, look])


def held_before_tools() -> Any:
    """Stop before its tools by a static breakpoint, and ask nothing else."""
    return create_agent(Playbook(), [look], interrupt_before=["tools"])
