"""The fingerprint changes when a waiting run could break, and only then."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_runtime.anatomy import examine
from agents_runtime.fingerprint import fingerprint, without_wording
from agents_runtime.listings import SHIPPED, read
from agents_runtime.loading import load
from agents_runtime.registry import graph_fingerprint
from tests.registry.conftest import entry
from tests.registry.sources import gated
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
