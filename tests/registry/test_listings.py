"""langgraph.json files are read leniently where the ecosystem is lenient, and refused in words where not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_runtime.listings import SHIPPED, Gate, read, read_all

Project = Callable[..., Path]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_an_entry_has_two_forms(project: Project) -> None:
    source = project({"a": "./a.py:graph", "b": {"path": "pkg.b:graph", "description": "The second."}}, {})
    a, b = read(source).entries
    assert (a.target, a.description) == ("./a.py:graph", "")
    assert (b.target, b.description) == ("pkg.b:graph", "The second.")


def test_a_folder_stands_for_the_file_in_it(project: Project) -> None:
    source = project({"a": "./a.py:graph"}, {})
    assert [entry.source for entry in read_all([source.parent]).entries] == [source]


def test_a_file_that_is_named_twice_is_read_once(project: Project) -> None:
    source = project({"a": "./a.py:graph"}, {})
    listing = read_all([source, source.parent, str(source)])
    assert len(listing.entries) == 1
    assert listing.troubles == ()


def test_our_own_notes_are_read(project: Project) -> None:
    notes = {
        "title": "The agent",
        "description": "Does it.",
        "example_input": {"x": 1},
        "gates": {"wipe": {"decisions": ["approve"], "conditional": True}, "drop": {}},
    }
    source = project({"a": "./a.py:graph"}, {}, countersign={"a": notes})
    (entry,) = read(source).entries
    assert (entry.title, entry.description, entry.example_input) == ("The agent", "Does it.", {"x": 1})
    assert entry.gates == {"wipe": Gate(("approve",), is_conditional=True), "drop": Gate()}


def test_a_limit_of_its_steps_is_read(project: Project) -> None:
    source = project({"a": "./a.py:graph"}, {}, countersign={"a": {"step_seconds": 120}})
    assert read(source).entries[0].step_seconds == 120


@pytest.mark.parametrize("seconds", [0, -1, True, 1.5, "60", 86_401])
def test_a_limit_of_its_steps_that_is_none_is_refused(project: Project, seconds: object) -> None:
    source = project({"a": "./a.py:graph"}, {}, countersign={"a": {"step_seconds": seconds}})
    (trouble,) = read(source).troubles
    assert "whole number of seconds" in trouble.message


def test_gates_may_be_a_list_of_names(project: Project) -> None:
    source = project({"a": "./a.py:graph"}, {}, countersign={"a": {"gates": ["wipe"]}})
    assert read(source).entries[0].gates == {"wipe": Gate()}


def test_the_first_of_two_equal_names_is_kept_and_the_second_told_with_both_files(project: Project) -> None:
    first = project({"a": "./one.py:graph", "b": "./b.py:graph"}, {}, folder="first")
    second = project({"a": "./two.py:graph", "c": "./c.py:graph"}, {}, folder="second")
    listing = read_all([first, second])
    assert [(entry.name, entry.source) for entry in listing.entries] == [
        ("a", first),
        ("b", first),
        ("c", second),
    ]
    (trouble,) = listing.troubles
    assert str(trouble) == (
        f"{second}: a (./two.py:graph): The name a is already used by {first}. Rename one of them."
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "This is not valid JSON"),
        ("[]", 'There is no "graphs" object in it.'),
        ('{"graphs": []}', 'There is no "graphs" object in it.'),
        ('{"graphs": {}}', 'Its "graphs" object lists no agent.'),
        ('{"graphs": {"a": "./a.py:g", "a": "./b.py:g"}}', "a is given twice in one object"),
    ],
)
def test_a_file_that_makes_no_sense_is_told_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    source = tmp_path / "langgraph.json"
    source.write_text(text)
    listing = read(source)
    assert listing.entries == ()
    (trouble,) = listing.troubles
    assert str(trouble).startswith(f"{source}: ")
    assert reason in trouble.message
    assert "\n" not in str(trouble)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    source = tmp_path / "langgraph.json"
    source.write_bytes(b"\xff\xfe\x00")
    assert "This is not valid JSON" in read(source).troubles[0].message


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    (trouble,) = read_all([tmp_path / "nowhere" / "langgraph.json"]).troubles
    assert trouble.message == "There is no such file."


@pytest.mark.parametrize("target", ["./a.py", ":graph", "./a.py:", 7, None, {"description": "no path"}, []])
def test_an_entry_without_file_or_attribute_is_refused_and_the_others_are_kept(
    project: Project, target: Any
) -> None:
    listing = read(project({"bad": target, "good": "./a.py:graph"}, {}))
    assert [entry.name for entry in listing.entries] == ["good"]
    assert listing.troubles[0].entry == "bad"
    assert "./file.py:attribute" in listing.troubles[0].message


@pytest.mark.parametrize("name", ["", "a/b", "a b", "?", "x" * 101])
def test_a_name_that_would_break_addresses_is_refused(project: Project, name: str) -> None:
    listing = read(project({name: "./a.py:graph"}, {}))
    assert listing.entries == ()
    assert "at most 100 letters" in listing.troubles[0].message


@pytest.mark.parametrize(
    "notes",
    [
        {"gates": "wipe"},
        {"gates": [1]},
        {"gates": {"wipe": True}},
        {"gates": {"wipe": {"decisions": ["maybe"]}}},
        {"gates": {"wipe": {"decisions": [[]]}}},
        {"title": 3},
        "wipe",
    ],
)
def test_wrong_notes_refuse_the_agent_rather_than_drop_a_gate(project: Project, notes: Any) -> None:
    listing = read(project({"a": "./a.py:graph"}, {}, countersign={"a": notes}))
    assert listing.entries == ()
    assert len(listing.troubles) == 1


def test_notes_on_an_agent_that_is_not_listed_are_told(project: Project) -> None:
    listing = read(project({"a": "./a.py:graph"}, {}, countersign={"typo": {"gates": ["wipe"]}}))
    assert [entry.name for entry in listing.entries] == ["a"]
    assert listing.troubles[0].message == 'It is in "countersign" but not in "graphs".'


def test_the_shipped_file_is_in_order() -> None:
    listing = read(SHIPPED)
    assert listing.troubles == ()
    assert len(listing.entries) >= 5


@given(
    content=st.fixed_dictionaries({}, optional={"graphs": JSON, "countersign": JSON, "dependencies": JSON})
)
def test_no_content_whatever_raises(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    source = tmp_path_factory.mktemp("any") / "langgraph.json"
    source.write_text(json.dumps(content))
    listing = read(source)
    assert listing.entries or listing.troubles
