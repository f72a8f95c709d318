"""Agents whose parts stand so that a gate would not hold are told of, and refused where it is undone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolErrorMiddleware, ToolRetryMiddleware
from langchain_core.tools import tool

from agents_runtime import registry
from agents_runtime.anatomy import examine
from agents_runtime.errors import AgentUnavailable
from agents_runtime.models import AgentSpec, RegistrationProblem
from agents_runtime.reviewed import ReviewedTools
from agents_runtime.wiring import flaws, gaps
from reviewer.accounts.models import User
from tests.agents import deep
from tests.agents.playbook import Playbook
from tests.agents.tools import look, pay
from tests.cast import Cast
from tests.registry.conftest import forgets_imports, listed, project
from tests.registry.sources import gated

__all__ = ["forgets_imports", "listed", "project"]

GATES = [HumanInTheLoopMiddleware({"pay": True}, interrupt_mode="per_call"), ReviewedTools({"pay": True})]
RETRY, ERRORS = ToolRetryMiddleware(), ToolErrorMiddleware(on_error=lambda _, __: "no")
FOR_OTHERS = ToolRetryMiddleware(tools=["look"])


def _agent(*middleware: Any) -> Any:
    return create_agent(Playbook(), [pay, look], middleware=middleware)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("other", [RETRY, ERRORS])
def test_what_handles_errors_before_the_gate_is_a_flaw_and_after_it_is_none(gate: Any, other: Any) -> None:
    (flaw,) = flaws(_agent(other, gate))
    assert f"{type(other).__name__} stands before HumanInTheLoopMiddleware" in flaw
    assert flaws(_agent(gate, other)) == ()


def test_a_retry_for_other_tools_than_gated_ones_may_stand_anywhere() -> None:
    assert flaws(_agent(FOR_OTHERS, GATES[0])) == ()


def test_a_batch_asks_before_any_tool_so_a_retry_may_stand_anywhere() -> None:
    assert flaws(_agent(RETRY, HumanInTheLoopMiddleware({"pay": True}))) == ()


def test_the_flaw_of_a_subagent_is_found() -> None:
    inner = _agent(RETRY, GATES[1])

    @tool
    def delegate(task: str) -> str:
        """Let another one do it."""
        return str(inner.invoke({"messages": [("user", task)]}))

    assert len(flaws(create_agent(Playbook(), [delegate], middleware=[GATES[1]]))) == 1


def test_an_agent_that_has_a_tool_without_its_gate_is_told_of() -> None:
    half = deep.half_gated()
    found = gaps(half, examine(half).gates)
    assert {words.split()[0] for words in found} == {"pay", "drop"}
    assert all("Calls there are refused" in words for words in found)
    whole = deep.per_call()
    assert gaps(whole, examine(whole).gates) == ()


def test_a_gap_beside_a_condition_says_that_calls_run_unasked() -> None:
    when: Any = {"pay": {"allowed_decisions": ["approve"], "when": lambda _: True}}
    inner = _agent()

    @tool
    def delegate(task: str) -> str:
        """Let another one do it."""
        return str(inner.invoke({"messages": [("user", task)]}))

    graph = create_agent(Playbook(), [delegate, pay], middleware=[ReviewedTools(when)])
    (gap,) = gaps(graph, examine(graph).gates)
    assert "runs unasked" in gap


def test_an_agent_with_a_retry_in_the_wrong_place_is_refused_where_it_is_registered(
    listed: Callable[..., None], project: Callable[..., Path], cast: Cast, client_of: Callable[[User], Client]
) -> None:
    source = gated().replace("middleware=[", "middleware=[ToolRetryMiddleware(), ").replace(
        "import HumanInTheLoopMiddleware", "import HumanInTheLoopMiddleware, ToolRetryMiddleware"
    )  # fmt: skip
    assert "ToolRetryMiddleware()" in source
    listed(project({"hasty": "./agent.py:graph"}, {"agent.py": source}))
    report = registry.register()
    assert report.broken == ("hasty",)
    assert any("ToolRetryMiddleware stands before" in str(trouble) for trouble in report.troubles)
    spec = AgentSpec.objects.get(name="hasty")
    assert not spec.is_available
    with pytest.raises(AgentUnavailable, match="stands before"):
        registry.load_graph(spec)
    assert RegistrationProblem.objects.filter(message__contains="stands before").exists()
    assert (
        "stands before HumanInTheLoopMiddleware" in client_of(cast.developer).get("/agents/").content.decode()
    )
