"""What Deep Agents do with gates. If one of these fails after an upgrade, the advice on how to gate one may
be out of date, and the hole that our gate closes may be another one."""

from __future__ import annotations

from typing import Any

import pytest
from deepagents import create_deep_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agents_runtime.anatomy import examine
from tests.agents import deep, effects
from tests.agents.playbook import Playbook
from tests.runtime.driving import call, script

CONFIG: Any = {"configurable": {"thread_id": "t"}}
PAY = call("pay", to="a", amount=1)


@pytest.fixture(autouse=True)
def nothing_happened() -> None:
    effects.clear()


def bare(graph: Any) -> Any:
    """Return the graph as its author would run it, without the product."""
    return graph.copy({"checkpointer": InMemorySaver()})


def in_general_purpose(*calls: dict[str, Any]) -> Any:
    task = str(script(list(calls))["messages"][0]["content"])
    return script([call("task", description=task, subagent_type="general-purpose")])


def asked(graph: Any) -> list[Any]:
    return [one.value for one in graph.get_state(CONFIG).interrupts]


def test_a_gate_given_as_middleware_leaves_the_general_purpose_subagent_ungated() -> None:
    graph = bare(deep.half_gated())
    graph.invoke(in_general_purpose(PAY), CONFIG)
    assert asked(graph) == []
    assert effects.count("pay") == 1


def test_an_explicit_general_purpose_subagent_with_its_own_middleware_asks_per_call() -> None:
    graph = bare(deep.per_call())
    graph.invoke(in_general_purpose(PAY), CONFIG)
    (value,) = asked(graph)
    assert (value["type"], value["name"]) == ("tool_approval", "pay")
    assert effects.count("pay_began") == 0


def test_gates_given_by_name_ask_for_batches_in_the_general_purpose_subagent_too() -> None:
    graph = bare(deep.batched())
    graph.invoke(in_general_purpose(PAY), CONFIG)
    (value,) = asked(graph)
    assert [action["name"] for action in value["action_requests"]] == ["pay"]


def test_a_gate_that_replaces_the_librarys_drops_what_permissions_ask() -> None:
    gates: Any = {"pay": True}
    careless = bare(
        create_deep_agent(
            Playbook(), deep.TOOLS, permissions=deep.SECRETS, middleware=[deep._per_call(gates)]
        )
    )
    secret = script([call("write_file", file_path="/secrets/a", content="42")])
    careless.invoke(secret, CONFIG)
    assert asked(careless) == []
    assert set(careless.get_state(CONFIG).values["files"]) == {"/secrets/a"}
    merged = bare(deep.permissions_per_call())
    merged.invoke(secret, CONFIG)
    assert [value["name"] for value in asked(merged)] == ["write_file"]


def test_questions_of_a_subagent_surface_at_the_root_and_take_keyed_answers() -> None:
    graph = bare(deep.per_call())
    graph.invoke(in_general_purpose(PAY, call("drop", path="/b")), CONFIG)
    ids = {one.value["name"]: one.id for one in graph.get_state(CONFIG).interrupts}
    graph.invoke(Command(resume={ids["drop"]: {"type": "reject"}}), CONFIG)
    assert {one.value["name"]: one.id for one in graph.get_state(CONFIG).interrupts} == {"pay": ids["pay"]}
    graph.invoke(Command(resume={ids["pay"]: {"type": "approve"}}), CONFIG)
    assert graph.get_state(CONFIG).next == ()
    assert (effects.count("pay"), effects.count("drop")) == (1, 0)


@pytest.mark.parametrize("build", [deep.batched, deep.per_call, deep.half_gated, deep.permissions])
def test_the_tools_and_gates_of_subagents_are_found_in_their_parts(build: Any) -> None:
    anatomy = examine(build())
    assert {"pay", "drop", "look", "task", "write_file"} <= set(anatomy.tools)
    assert set(anatomy.gates) >= ({"write_file"} if build is deep.permissions else {"pay"})
    assert len(anatomy.inner) >= 1
