"""The fingerprint changes when a waiting run could break, and only then."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_runtime import fingerprint as fingerprints
from agents_runtime.anatomy import examine
from agents_runtime.fingerprint import LIBRARIES, fingerprint, without_wording
from agents_runtime.listings import SHIPPED, read
from agents_runtime.loading import load
from agents_runtime.registry import graph_fingerprint
from tests.registry.conftest import entry
from tests.registry.sources import ROOMS, TEAM, gated
from tests.servers import PROJECT, servers

Project = Callable[..., Path]
PRINT_ALL = """
import json
import django
django.setup()
from agents_runtime.listings import SHIPPED, read
from agents_runtime.loading import load
from agents_runtime.registry import graph_fingerprint
print(json.dumps({one.name: graph_fingerprint(load(one)) for one in read(SHIPPED).entries}))
"""


def _of(project: Project, source: str, folder: str) -> str:
    return fingerprint(
        examine(load(entry(project({"a": "./agent.py:graph"}, {"agent.py": source}, folder=folder), "a")))
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"wipe": True}', '{"wipe": {"allowed_decisions": ["approve"]}}'),
        ('{"wipe": True}', "{}"),
        ('{"wipe": True}', '{"wipe": {"allowed_decisions": ["approve"], "when": lambda request: True}}'),
        ('interrupt_mode="per_call"', 'interrupt_mode="batched"'),
        ('"soft", "hard"', '"soft"'),
        ("path: str, level", "folder: str, level"),
        ("tools=[wipe, look]", "tools=[wipe]"),
    ],
    ids=[
        "decisions",
        "no gate",
        "condition",
        "mode",
        "enum",
        "argument",
        "tool",
    ],
)
def test_a_change_that_could_break_a_waiting_run_changes_it(project: Project, old: str, new: str) -> None:
    source = gated()
    assert old in source
    assert _of(project, source, "before") != _of(project, source.replace(old, new), "after")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"outer_ask"', '"renamed_ask"'),
        ('"inner_ask"', '"renamed_ask"'),
        ("Annotated[list, operator.add]", "list"),
        ("answers", "replies"),
        ('interrupt_before=["outer_ask"], ', ""),
        (', interrupt_after=["rooms"]', ""),
    ],
    ids=["node", "node of a subgraph", "kind of channel", "channel", "breakpoint before", "breakpoint after"],
)
def test_whatever_a_thread_could_wait_at_or_lose_changes_it(project: Project, old: str, new: str) -> None:
    assert old in ROOMS
    assert _of(project, ROOMS, "before") != _of(project, ROOMS.replace(old, new), "after")


@pytest.mark.parametrize("mode", ["per_call", "batched"])
def test_a_gate_that_only_a_subagent_loses_changes_it(project: Project, mode: str) -> None:
    source = TEAM.replace("per_call", mode)
    for lost in ("middleware=[inner_gate]", "middleware=[outer_gate]"):
        assert lost in source
        other = source.replace(lost, "middleware=[]")
        assert _of(project, source, f"before {lost}") != _of(project, other, f"after {lost}")


def test_a_decision_that_only_a_subagent_stops_allowing_changes_it(project: Project) -> None:
    old = 'inner_gate = HumanInTheLoopMiddleware({"wipe": True}'
    new = 'inner_gate = HumanInTheLoopMiddleware({"wipe": {"allowed_decisions": ["approve"]}}'
    assert old in TEAM
    assert _of(project, TEAM, "before") != _of(project, TEAM.replace(old, new), "after")


@pytest.mark.parametrize("library", LIBRARIES)
def test_another_version_of_a_library_that_holds_pauses_changes_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    before = _of(project, ROOMS, "before")
    monkeypatch.setattr(
        fingerprints, "version", lambda name: "999" if name == library else importlib.metadata.version(name)
    )
    assert _of(project, ROOMS, "after") != before


def test_the_drawn_graph_alone_is_blind_to_gates(project: Project) -> None:
    """The reason why gates are looked for in the graph's own parts; a contract with the library."""
    drawn = [
        load(entry(project({"a": "./agent.py:graph"}, {"agent.py": source}, folder=folder), "a"))
        .get_graph()
        .to_json()
        for folder, source in (("one", gated()), ("two", gated(mode="batched")), ("three", gated("{}")))
    ]
    assert drawn[0] == drawn[1] == drawn[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [("Nothing is left.", "Nothing at all is left."), ("Wipe {path}", "Empty {path}"), ('"wiped"', '"gone"')],
    ids=["description", "title", "code"],
)
def test_wording_does_not_change_it(project: Project, old: str, new: str) -> None:
    source = gated()
    assert old in source
    assert _of(project, source, "before") == _of(project, source.replace(old, new), "after")


def test_it_is_the_same_in_every_process() -> None:
    here = {one.name: graph_fingerprint(load(one)) for one in read(SHIPPED).entries}
    there = subprocess.run(
        [sys.executable, "-c", PRINT_ALL],
        cwd=PROJECT,
        env=servers().child_environment(PYTHONHASHSEED="7"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(there.stdout) == here


NAMES = st.sampled_from(["title", "description", "examples", "x", "properties"])


@given(names=st.lists(NAMES, unique=True, min_size=1))
def test_an_argument_may_be_named_like_wording(names: list[str]) -> None:
    schema = {
        "title": "T",
        "description": "D",
        "properties": {name: {"type": "string", "title": "T", "description": "D"} for name in names},
        "required": names,
    }
    assert without_wording(schema) == {
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
    }


@given(value=st.recursive(st.none() | st.text(max_size=4), lambda x: st.dictionaries(NAMES, x), max_leaves=5))
def test_values_that_a_schema_holds_are_kept_whole(value: Any) -> None:
    schema = {"const": value, "default": value, "enum": [value]}
    assert without_wording(schema) == schema
