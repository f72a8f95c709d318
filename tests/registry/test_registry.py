"""Registering writes what is true of every agent, tells what is wrong with some, and harms no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from agents_runtime.canonical import decode
from agents_runtime.errors import AgentUnavailable
from agents_runtime.models import AgentSpec, RegistrationProblem
from agents_runtime.registry import graph_fingerprint, load_graph, register
from tests.registry.sources import ECHO, gated

pytestmark = pytest.mark.django_db

Project = Callable[..., Path]
Listed = Callable[..., None]
SHIPPED = ("ask_officer", "outgoing_mail", "records_cleanup", "refunds", "vendor_payment")


def test_the_shipped_agents_are_registered_without_a_problem(listed: Listed) -> None:
    report = register()
    assert set(report.registered) >= set(SHIPPED)
    assert report.broken == ()
    assert report.troubles == ()
    assert not RegistrationProblem.objects.exists()


def test_a_row_tells_all_that_the_web_needs(listed: Listed, project: Project) -> None:
    example = {"messages": [{"role": "user", "content": "wipe /dev/sda"}]}
    notes = {"title": "Disk wiper", "description": "Wipes.", "example_input": example}
    source = project({"wiper": "./agent.py:graph"}, {"agent.py": gated()}, countersign={"wiper": notes})
    listed(source)
    register()
    spec = AgentSpec.objects.get(name="wiper")
    assert (spec.title, spec.description) == ("Disk wiper", "Wipes.")
    assert (spec.source, spec.entry) == (str(source), "./agent.py:graph")
    assert (spec.mode, spec.is_async, spec.import_error, spec.is_available) == ("per_call", False, "", True)
    assert decode(spec.gates) == {
        "wipe": {"decisions": ["approve", "edit", "reject", "respond"], "conditional": False}
    }
    tools = decode(spec.tools)
    assert (tools["wipe"]["gated"], tools["look"]["gated"]) == (True, False)
    assert tools["wipe"]["title"] == "Wipe {path}"
    assert list(tools["wipe"]["args_schema"]["properties"]) == ["path", "level"]
    assert list(decode(spec.input_schema)["properties"]) == ["messages"]
    assert decode(spec.example_input) == example
    assert len(spec.fingerprint) == 64


def test_an_async_and_a_conditional_agent_are_marked(listed: Listed, project: Project) -> None:
    gates = '{"wipe": {"allowed_decisions": ["approve"], "when": lambda request: True}}'
    source = gated(gates, mode="batched").replace("def look", "async def look")
    listed(project({"a": "./agent.py:graph"}, {"agent.py": source}))
    register()
    spec = AgentSpec.objects.get(name="a")
    assert spec.is_async
    assert spec.mode == AgentSpec.Mode.BATCHED
    assert decode(spec.gates) == {"wipe": {"decisions": ["approve"], "conditional": True}}


def test_a_gate_that_only_the_file_names_is_a_gate(listed: Listed, project: Project) -> None:
    notes = {"gates": {"look": {}, "wipe": {"decisions": [], "conditional": True}}}
    listed(project({"a": "./agent.py:graph"}, {"agent.py": gated()}, countersign={"a": notes}))
    register()
    spec = AgentSpec.objects.get(name="a")
    assert decode(spec.gates)["look"] == {"decisions": [], "conditional": False}
    assert decode(spec.tools)["look"]["gated"] is True
    # What the agent's own code says is stronger: the file cannot make that gate weaker.
    assert decode(spec.gates)["wipe"]["conditional"] is False


def test_a_graph_whose_gates_only_the_file_names_asks_for_each_call(listed: Listed, project: Project) -> None:
    files = {"agent.py": gated("{}")}
    listed(project({"a": "./agent.py:graph"}, files, countersign={"a": {"gates": ["wipe"]}}))
    register()
    assert AgentSpec.objects.get(name="a").mode == AgentSpec.Mode.PER_CALL


def test_broken_agents_are_told_of_and_the_others_work(listed: Listed, project: Project) -> None:
    files = {"good.py": ECHO, "bad.py": "import nothing_such"}
    graphs = {"good": "./good.py:graph", "bad": "./bad.py:graph", "lost": "./good.py:lost"}
    source = project(graphs, files)
    listed(source, source.parent / "missing.json")
    report = register()
    assert "good" in report.registered
    assert set(SHIPPED) <= set(report.registered)
    assert report.broken == ("bad", "lost")
    bad = AgentSpec.objects.get(name="bad")
    assert "No module named 'nothing_such'" in bad.import_error
    assert not bad.is_available
    told = {(problem.source, problem.entry): problem.message for problem in RegistrationProblem.objects.all()}
    assert told == {
        (str(source.parent / "missing.json"), ""): "There is no such file.",
        (str(source), "bad (./bad.py:graph)"): bad.import_error,
        (str(source), "lost (./good.py:lost)"): "./good.py has no attribute lost.",
    }


def test_an_agent_cannot_take_a_shipped_name(listed: Listed, project: Project) -> None:
    listed(project({"refunds": "./agent.py:graph", "mine": "./agent.py:graph"}, {"agent.py": ECHO}))
    report = register()
    assert "mine" in report.registered
    assert decode(AgentSpec.objects.get(name="refunds").gates)
    assert "The name refunds is already used by" in RegistrationProblem.objects.get().message


def test_mending_an_agent_clears_its_problems(listed: Listed, project: Project) -> None:
    source = project({"a": "./agent.py:graph"}, {"agent.py": "raise ValueError"})
    listed(source)
    assert register().broken == ("a",)
    (source.parent / "agent.py").write_text(ECHO)
    assert "a" in register().registered
    assert AgentSpec.objects.get(name="a").import_error == ""
    assert not RegistrationProblem.objects.exists()


def test_an_agent_that_breaks_keeps_what_was_known_of_its_gates(listed: Listed, project: Project) -> None:
    source = project({"a": "./agent.py:graph"}, {"agent.py": gated()})
    listed(source)
    register()
    project({"a": "./agent2.py:graph"}, {"agent2.py": "raise ValueError"})
    register()
    spec = AgentSpec.objects.get(name="a")
    assert not spec.is_available
    assert list(decode(spec.gates)) == ["wipe"]


def test_an_agent_that_is_no_longer_listed_stays_known_but_unavailable(
    listed: Listed, project: Project
) -> None:
    listed(project({"a": "./agent.py:graph"}, {"agent.py": ECHO}))
    register()
    listed()
    assert register().unlisted == ("a",)
    assert not AgentSpec.objects.get(name="a").is_available
    assert register().unlisted == ()


def test_a_part_of_the_input_without_a_json_form_is_told(listed: Listed, project: Project) -> None:
    source = """
from typing import TypedDict
from langgraph.graph import START, StateGraph

class Thing: ...

class State(TypedDict):
    name: str
    thing: Thing

builder = StateGraph(State)
builder.add_node("node", lambda state: {})
builder.add_edge(START, "node")
"""
    listed(project({"a": "./agent.py:builder"}, {"agent.py": source}))
    report = register()
    assert "a" in report.registered
    fields = decode(AgentSpec.objects.get(name="a").input_schema)["properties"]
    assert (fields["name"]["type"], "type" in fields["thing"]) == ("string", False)
    assert report.troubles[0].message == (
        "Part of its input has no JSON form, so any JSON is taken there: thing."
    )


def test_an_example_that_does_not_fit_is_told(listed: Listed, project: Project) -> None:
    notes = {"a": {"example_input": {"messages": "hello"}}}
    listed(project({"a": "./agent.py:graph"}, {"agent.py": ECHO}, countersign=notes))
    report = register()
    assert "a" in report.registered
    assert "Its example input does not fit" in report.troubles[0].message


def test_a_model_that_does_not_exist_is_told_for_each_agent_that_needs_it(
    listed: Listed, settings: Settings
) -> None:
    settings.COUNTERSIGN_MODEL = "nosuch:model"
    report = register()
    assert report.broken == SHIPPED
    assert all("nosuch" in trouble.message for trouble in report.troubles)


def test_a_worker_loads_a_graph_once(listed: Listed) -> None:
    register()
    spec = AgentSpec.objects.get(name="refunds")
    graph = load_graph(spec)
    assert load_graph(AgentSpec.objects.get(name="refunds")) is graph
    assert graph.checkpointer is None
    assert graph_fingerprint(graph) == spec.fingerprint


def test_a_worker_refuses_an_agent_whose_code_has_another_gate(listed: Listed, project: Project) -> None:
    source = project({"a": "./agent.py:graph"}, {"agent.py": gated()})
    listed(source)
    register()
    project({"a": "./later.py:graph"}, {"later.py": gated('{"wipe": True, "look": True}')})
    spec = AgentSpec.objects.get(name="a")
    spec.entry = "./later.py:graph"
    with pytest.raises(AgentUnavailable, match="gates other calls than it did when registered"):
        load_graph(spec)


def test_a_worker_refuses_an_agent_that_is_gone_from_its_file(listed: Listed, project: Project) -> None:
    source = project({"a": "./agent.py:graph"}, {"agent.py": ECHO})
    listed(source)
    register()
    source.write_text(json.dumps({"graphs": {"b": "./agent.py:graph"}}))
    with pytest.raises(AgentUnavailable, match="no longer listed"):
        load_graph(AgentSpec.objects.get(name="a"))
    source.unlink()
    with pytest.raises(AgentUnavailable, match="There is no such file"):
        load_graph(AgentSpec.objects.get(name="a"))


def test_the_command_prints_one_line_for_each_problem(listed: Listed, project: Project) -> None:
    source = project({"good": "./good.py:graph", "bad": "./bad.py:graph"}, {"good.py": ECHO, "bad.py": "1/0"})
    listed(source)
    out, err = StringIO(), StringIO()
    call_command("register_agents", stdout=out, stderr=err)
    assert out.getvalue() == f"Agents: {', '.join(sorted([*SHIPPED, 'good']))}\n"
    assert err.getvalue() == (
        f"Problem: {source}: bad (./bad.py:graph): It could not be imported: "
        "ZeroDivisionError: division by zero (bad.py, line 1).\n"
    )


def test_the_strict_command_fails_on_a_problem(listed: Listed, tmp_path: Path) -> None:
    listed(tmp_path / "missing.json")
    with pytest.raises(CommandError, match="1 problem"):
        call_command("register_agents", "--strict", stdout=StringIO(), stderr=StringIO())


def test_text_that_no_database_holds_harms_no_agent(listed: Listed, project: Project) -> None:
    source = project(
        {
            "fine": "./agent.py:graph",
            "raises": "./raises.py:graph",
            "nowhere": "./no\x00.py:\ud800",
            "\x00": "./agent.py:graph",
        },
        {"agent.py": ECHO, "raises.py": 'raise SystemExit("broken \\x00 \\ud800")'},
        countersign={"fine": {"title": "\x00" * 200, "description": "a \x00 b \ud800"}},
    )
    listed(source)
    register()
    fine, raises = AgentSpec.objects.get(name="fine"), AgentSpec.objects.get(name="raises")
    assert fine.is_available
    assert fine.description == "a \\u0000 b \\ud800"
    assert "broken \\u0000 \\ud800" in raises.import_error
    assert not AgentSpec.objects.get(name="nowhere").is_available
    assert RegistrationProblem.objects.filter(entry="\\u0000").exists()


ODD_INPUT = """
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

class In(BaseModel):
    code: str = Field(json_schema_extra={"pattern": "(?<=", "format": 3})

graph = StateGraph(In)
graph.add_node("n", lambda state: {})
graph.add_edge(START, "n")
graph.add_edge("n", END)
"""


def test_an_input_schema_that_is_not_valid_is_told_and_takes_any_json(
    listed: Listed, project: Project
) -> None:
    notes = {"odd": {"example_input": {"code": "x"}}}
    listed(project({"odd": "./agent.py:graph"}, {"agent.py": ODD_INPUT}, countersign=notes))
    register()
    spec = AgentSpec.objects.get(name="odd")
    assert spec.is_available
    assert decode(spec.input_schema) == {}
    assert "input schema is not valid" in RegistrationProblem.objects.get().message
