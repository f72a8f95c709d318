"""A deep agent that is built with a policy asks for each call, whoever makes it; permissions still ask."""

from __future__ import annotations

from typing import Any

import pytest
from deepagents import FilesystemPermission

from agents_runtime import policy
from agents_runtime.anatomy import examine
from agents_runtime.canonical import Json
from agents_runtime.policy import PolicyError, for_deep_agent, review_policy
from agents_runtime.reviewed import ReviewedTools
from agents_runtime.wiring import flaws, gaps
from tests.agents import effects, reviewed
from tests.agents.tools import look, pay
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    answer,
    attempts,
    call,
    pauses,
    pending,
    script,
    start,
)

PAY = call("pay", to="a", amount=1)
SECRET = call("write_file", file_path="/secrets/a", content="x")
PUBLIC = call("write_file", file_path="/public/a", content="x")


def by(subagent: str, *calls: Json) -> Json:
    """Return the call by which the main agent lets a subagent make these calls."""
    inner = script(list(calls))["messages"][0]["content"]
    return call("task", description=inner, subagent_type=subagent)


def test_every_agent_in_it_asks_for_each_call() -> None:
    graph = reviewed.deep_by_policy()
    anatomy = examine(graph)
    assert anatomy.mode == "per_call"
    assert {"pay", "drop", "write_file", "edit_file"} <= anatomy.gates.keys()
    assert flaws(graph) == gaps(graph, anatomy.gates) == ()


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("who", ["", "general-purpose", "clerk"])
def test_a_call_runs_with_its_decision_only_whoever_makes_it(who: str) -> None:
    calls = [PAY, SECRET, PUBLIC]
    run = start("r-deep-policy", script([by(who, *calls)] if who else calls))
    assert {pause.place: pause.tool for pause in pauses(run)} == {0: "pay", 1: "write_file"}
    assert {pause.kind for pause in pauses(run)} == {"per_call"}
    assert effects.count("pay_began") == 0
    answer(pending(run, "write_file"), REJECT)
    run = answer(pending(run, "pay"), APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert {(one.tool, one.grant) for one in attempts(run)} == {
        ("pay", "decision"),
        ("write_file", "condition"),
    }
    assert "/public/a" in run.output
    assert '"/secrets/a":' not in run.output


def test_rules_keep_their_order_when_the_review_asks_in_their_place() -> None:
    rules = [
        FilesystemPermission(operations=["write"], paths=["/secrets/**"], mode="interrupt"),
        FilesystemPermission(operations=["write"], paths=["/**"], mode="deny"),
    ]
    given = for_deep_agent(review_policy([pay, look], high=[pay], low=[look]), permissions=rules)
    assert [rule.mode for rule in given["permissions"]] == ["allow", "deny"]
    assert [spec["name"] for spec in given["subagents"]] == ["general-purpose"]
    assert [rule.mode for rule in given["subagents"][0]["permissions"]] == ["allow", "deny"]
    assert [rule.mode for rule in rules] == ["interrupt", "deny"]
    (review,) = given["middleware"]
    assert isinstance(review, ReviewedTools)
    assert "when" in review.interrupt_on["write_file"]


@pytest.mark.parametrize(
    ("middleware", "subagent", "word"),
    [
        ([], {"name": "clerk"}, "gates nothing"),
        (None, {"name": "clerk", "interrupt_on": {"pay": True}}, "gates of its own"),
        (None, {"name": "clerk", "middleware": [ReviewedTools({"pay": True})]}, "gates of its own"),
    ],
)
def test_gates_beside_the_policy_are_refused(middleware: Any, subagent: Any, word: str) -> None:
    given = review_policy([pay], high=[pay]) if middleware is None else middleware
    with pytest.raises(PolicyError, match=word):
        for_deep_agent(given, subagents=[subagent])


def test_a_subagent_that_is_compiled_or_runs_elsewhere_stays_as_it_is() -> None:
    specs: list[dict[str, Any]] = [
        {"name": "compiled", "runnable": object()},
        {"name": "elsewhere", "graph_id": "x"},
    ]
    given = for_deep_agent(review_policy([pay], high=[pay]), subagents=specs)
    assert given["subagents"][1:] == specs


def test_deep_agents_is_loaded_by_those_who_use_it_only() -> None:
    assert "deepagents" not in vars(policy)
