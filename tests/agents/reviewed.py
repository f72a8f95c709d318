"""The same agents with reviewed tools in place of the library's middleware, and some that only those can be.

A twin is what its original's code makes while that module's name for the middleware means ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolErrorMiddleware, ToolRetryMiddleware
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from agents_runtime.policy import ReviewRule, for_deep_agent, review_policy
from agents_runtime.reviewed import ReviewedTools, idempotency_key
from tests.agents import assistants, deep, effects
from tests.agents.playbook import Playbook
from tests.agents.tools import GATED, apay, drop, look, pay


class Twin(ReviewedTools):
    """Ours, with the library's own default mode."""

    def __init__(self, interrupt_on: Any, *, interrupt_mode: Any = "batched", **options: Any) -> None:
        super().__init__(interrupt_on, interrupt_mode=interrupt_mode, **options)


def _twin(build: Callable[[], Any]) -> Any:
    module: Any = sys.modules[build.__module__]
    own = module.HumanInTheLoopMiddleware
    module.HumanInTheLoopMiddleware = Twin
    try:
        return build()
    finally:
        module.HumanInTheLoopMiddleware = own


def per_call() -> Any:
    """Ask for each call."""
    return _twin(assistants.per_call)


def batched() -> Any:
    """Ask for a turn's calls together."""
    return _twin(assistants.batched)


def on_a_loop() -> Any:
    """Its tools are async only."""
    return _twin(assistants.on_a_loop)


def conditional() -> Any:
    """Ask only for more than 100, unless a test's flag changes the agent's mind."""
    return _twin(assistants.conditional)


def forgetful() -> Any:
    """Ask nobody while the flag is set."""
    return _twin(assistants.forgetful)


def beside() -> Any:
    """Ask a question beside an agent that asks for a turn's calls together."""
    return _twin(assistants.beside)


def boss() -> Any:
    """Delegate to a subagent that has gates of its own."""
    return _twin(assistants.boss)


def deep_per_call() -> Any:
    """Ask for each call, whoever makes it."""
    return _twin(deep.per_call)


def deep_on_a_loop() -> Any:
    """Ask for each call of a tool that is async only."""
    return _twin(deep.on_a_loop)


def deep_by_policy() -> Any:
    """A deep agent as ``for_deep_agent`` builds it: a subagent, and permissions that ask."""
    clerk = {"name": "clerk", "description": "Keep the files.", "system_prompt": "Keep them."}
    policy = review_policy([pay, drop, look], high=[pay], medium=[drop], low=[look])
    gated = for_deep_agent(policy, subagents=[clerk], permissions=deep.SECRETS)
    return create_deep_agent(Playbook(), [pay, drop, look], **gated)


def unguarded() -> Any:
    """Its file says that a tool is gated; its middleware asks about another one."""
    return create_agent(Playbook(), [pay, drop], middleware=[ReviewedTools({"drop": True})])


class _Changing:
    """Asks for each call, until a test's flag makes it ask for a turn's calls together, or nobody at all."""

    interrupt_mode: Any = property(
        lambda _: "batched" if effects.is_set("mode_switched") else "per_call",
        lambda _, __: None,
    )


class ChangingPlain(_Changing, HumanInTheLoopMiddleware[Any, Any, Any]):
    """The library's own."""

    @property
    def name(self) -> str:
        """Its name, as ours keeps it."""
        return "HumanInTheLoopMiddleware"


class ChangingReviewed(_Changing, ReviewedTools):
    """Ours."""


def changing() -> Any:
    """Change its mode while a run waits, by the library's middleware."""
    return create_agent(Playbook(), [pay, drop], middleware=[ChangingPlain(GATED)])


def changing_reviewed() -> Any:
    """Change its mode while a run waits, by ours."""
    return create_agent(Playbook(), [pay, drop], middleware=[ChangingReviewed(GATED)])


def _two_in_one_task(gate: Any) -> Any:
    """Both calls of a turn run in one task of the graph: when one asks, the other one runs again later."""

    def model(state: AgentState[Any]) -> dict[str, Any]:
        return {"messages": [Playbook().invoke(state["messages"])]}

    graph = StateGraph(AgentState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([pay, drop, look], wrap_tool_call=gate.wrap_tool_call))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph


def one_call() -> Any:
    """Run the calls of a turn in one task, with the library's middleware, which asks about each."""
    return _two_in_one_task(HumanInTheLoopMiddleware(interrupt_on=GATED, interrupt_mode="per_call"))


NOBODY_ASKS_ABOUT_DROP: Any = {
    "pay": {"allowed_decisions": ["approve", "reject"]},
    "drop": {"allowed_decisions": ["approve", "reject"], "when": lambda _: False},
}


def one_task() -> Any:
    """Run both calls of a turn in one task, with the library's middleware."""
    return _two_in_one_task(
        HumanInTheLoopMiddleware(interrupt_on=NOBODY_ASKS_ABOUT_DROP, interrupt_mode="per_call")
    )


def one_task_reviewed() -> Any:
    """Run both calls of a turn in one task, with ours."""
    return _two_in_one_task(ReviewedTools(NOBODY_ASKS_ABOUT_DROP))


def _with_own_callbacks(gate: Any) -> Any:
    """Delegate to a subagent with callbacks of its own, which take the place of the run's."""
    worker: Any = create_agent(Playbook(), [pay, drop], middleware=[gate])

    @tool
    def delegate(task: str) -> str:
        """Let the subagent play a script."""
        result = worker.invoke({"messages": [("user", task)]}, {"callbacks": []})
        return str(result["messages"][-1].content)

    return create_agent(Playbook(), [delegate])


def own_callbacks() -> Any:
    """Its subagent drops the run's callbacks."""
    return _with_own_callbacks(HumanInTheLoopMiddleware(interrupt_on=GATED, interrupt_mode="per_call"))


def own_callbacks_reviewed() -> Any:
    """Its subagent drops the run's callbacks and has reviewed tools."""
    return _with_own_callbacks(ReviewedTools(GATED))


def retry_inside() -> Any:
    """A retry middleware in its right place: after the gate."""
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    gate = HumanInTheLoopMiddleware(interrupt_on=GATED, interrupt_mode="per_call")
    return create_agent(Playbook(), [pay], middleware=[gate, retry])


def retry_inside_reviewed() -> Any:
    """A retry middleware in its right place: after reviewed tools."""
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    return create_agent(Playbook(), [pay], middleware=[ReviewedTools(GATED), retry])


def retry_of_harmless_errors() -> Any:
    """Try again by itself after an error of which its author says that it harms nothing."""
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False, on_failure="error")
    rule = ReviewRule(harmless=(RuntimeError,))
    policy = review_policy([pay], high=[pay], rules={"pay": rule}, middleware=[retry])
    return create_agent(Playbook(), [pay], middleware=policy)


def _telling_errors(gate: Any) -> Any:
    """Tell the model of errors of tools, after the gate."""
    errors = ToolErrorMiddleware(on_error=lambda error, _: f"It failed: {error}")
    return create_agent(Playbook(), [pay], middleware=[gate, errors])


def errors_told() -> Any:
    """Tell the model of a tool's error, with the library's middleware."""
    return _telling_errors(HumanInTheLoopMiddleware(interrupt_on=GATED, interrupt_mode="per_call"))


def errors_told_reviewed() -> Any:
    """Tell the model of a reviewed tool's error."""
    return _telling_errors(ReviewedTools(GATED))


@tool
def keyed(to: str) -> str:
    """Pay somebody, and say under which key."""
    effects.happened("keyed_began", key=idempotency_key())
    if effects.is_set("fail_keyed"):
        raise RuntimeError("keyed does not work today")
    effects.happened("keyed", to=to)
    return f"keyed {to}"


@tool
async def akeyed(to: str) -> str:
    """Pay somebody on a loop, and say under which key."""
    effects.happened("keyed_began", key=idempotency_key())
    return f"keyed {to}"


@tool
def free(to: str) -> str:
    """Say under which key it runs; nobody need be asked."""
    effects.happened("free", key=idempotency_key())
    return f"free {to}"


def key_user() -> Any:
    """Its tools use the key that they are handed."""
    return create_agent(Playbook(), [keyed, free], middleware=[ReviewedTools({"keyed": True})])


def key_user_on_a_loop() -> Any:
    """Its async tool uses the key that it is handed."""
    return create_agent(Playbook(), [akeyed], middleware=[ReviewedTools({"akeyed": True})])


@tool
def leave(to: str) -> Command[Any]:
    """Pay somebody and tell the parent graph."""
    effects.happened("leave", to=to)
    return Command(graph=Command.PARENT, update={"messages": [("user", f"left to {to}")]}, goto="__end__")


def leaver() -> Any:
    """A gated tool whose result is a command to the parent graph."""
    inner = create_agent(Playbook(), [leave], middleware=[ReviewedTools({"leave": True})])
    graph = StateGraph(AgentState)
    graph.add_node("inner", inner)
    graph.add_edge(START, "inner")
    return graph


def on_a_loop_by_hand() -> Any:
    """For calling by hand on a loop."""
    return create_agent(Playbook(), [apay], middleware=[ReviewedTools({"apay": True})])
