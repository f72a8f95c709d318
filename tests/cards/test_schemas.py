"""Schemas in any of the ways people write them: drawn as what they ask, and checked as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from reviewer import cards
from reviewer.cards.compile import MOST_NODES, compile_form
from reviewer.cards.tree import Node, Raw, walk
from tests.cards.making import Reviewer, tool_card

AT = "/edited_action/args"
WORD: dict[str, Any] = {"type": "string"}


def drawn(schema: Any, value: Any = cards.MISSING) -> list[tuple[str, str]]:
    """Return the fields that are drawn: path and kind, without the root."""
    return [(node.path, kind_of(node)) for node in walk(compile_form(schema, value).root) if node.path]


def kind_of(node: Node) -> str:
    return f"raw: {node.reason}" if isinstance(node, Raw) else type(node).__name__


def errors_of(schema: Any, value: Any) -> list[tuple[str, str]]:
    return [(error.pointer, error.code) for error in Reviewer.before(schema, value).send().errors]


# allOf and what stands beside a reference


def test_limits_of_all_parts_hold_at_their_own_field() -> None:
    part = {"properties": {"a": {"minLength": 5, "pattern": "^x"}}}
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 2, "maxLength": 9, "pattern": "z$"}},
        "allOf": [part, {"properties": {"a": {"maxLength": 7}}}],
    }
    assert errors_of(schema, {"a": "xyz"}) == [("/a", "minLength")]
    assert errors_of(schema, {"a": "xyyyyyyz"}) == [("/a", "maxLength")]
    assert errors_of(schema, {"a": "xyyyyy"}) == [("/a", "pattern")]
    assert errors_of(schema, {"a": "yyyyyz"}) == [("/a", "pattern")]
    assert errors_of(schema, {"a": "xyyyyz"}) == []


def test_conditions_of_several_parts_are_never_mixed() -> None:
    schema = {
        "type": "object",
        "properties": {"a": WORD, "b": WORD},
        "allOf": [
            {"if": {"properties": {"a": {"const": "x"}}, "required": ["a"]}, "then": {"required": ["b"]}},
            {"if": {"properties": {"a": {"const": "y"}}}, "else": {"required": ["b"]}},
        ],
    }
    assert errors_of(schema, {"a": "y"}) == []
    assert errors_of(schema, {"a": "x"}) == [("/b", "required")]
    assert errors_of(schema, {"a": "z", "b": ""}) == []


def test_a_reference_with_fields_beside_it_has_the_fields_of_both() -> None:
    schema = {
        "$defs": {"Base": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
        "$ref": "#/$defs/Base",
        "properties": {"b": {"type": "integer"}},
    }
    assert drawn(schema, {"a": 1, "b": 2}) == [("/b", "Entry"), ("/a", "Entry")]
    assert Reviewer.before(schema, {"a": 1, "b": 2}).send(**{"v:/a": "5"}).answer == {"a": 5, "b": 2}
    assert errors_of(schema, {"b": 1}) == [("/a", "required")]


def test_one_named_field_of_several_parts_is_drawn_once_through_references() -> None:
    schema = {
        "$defs": {"Level": {"enum": [1, 2, 3], "title": "Level"}},
        "type": "object",
        "properties": {"level": {"$ref": "#/$defs/Level"}},
        "allOf": [{"properties": {"level": {"enum": [2, 3, 4]}}}],
    }
    reviewer = Reviewer.before(schema, {"level": 2})
    assert drawn(schema, {"level": 2}) == [("/level", "Choice")]
    assert reviewer.send(**{"v:/level": "1"}).answer == {"level": 3}


def test_a_key_that_another_part_closes_is_not_offered() -> None:
    closed = {"type": "object", "properties": {"a": WORD}, "additionalProperties": False}
    schema = {"allOf": [closed, {"properties": {"b": WORD}}]}
    assert drawn(schema, {"a": ""}) == [("/a", "Entry")]
    assert drawn(schema, {"a": "", "b": ""})[1] == ("/~+", "raw: not-allowed")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([{"type": "string"}, {"type": "integer"}], "conflict"),
        ([{"enum": [1]}, {"enum": [2]}], "conflict"),
        ([{"const": 1}, {"const": 2}], "conflict"),
        (
            [{"type": "array", "prefixItems": [WORD], "maxItems": 1}, {"type": "array", "items": WORD}],
            "conflict",
        ),
    ],
)
def test_a_contradiction_makes_json_of_its_own_subtree_only(parts: list[Any], reason: str) -> None:
    schema = {"type": "object", "properties": {"bad": {"allOf": parts}, "good": WORD}}
    value = {"bad": [1], "good": "x"}
    assert drawn(schema, value) == [("/bad", f"raw: {reason}"), ("/good", "Entry")]
    assert Reviewer.before(schema, value).send(**{"v:/good": "y"}).answer == {"bad": [1], "good": "y"}


# Unions


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_nothing_is_chosen_for_anybody_where_a_choice_alone_is_an_answer(keyword: str) -> None:
    schema = {keyword: [{"const": "approve", "type": "string"}, {"const": "reject", "type": "string"}]}
    reviewer = Reviewer.before(schema)
    assert [error.code for error in reviewer.send().errors] == ["choose-kind"]
    reviewer.press("refresh", **{"b:": "1"})
    assert reviewer.send().answer == "reject"


@pytest.mark.parametrize(
    "other",
    [
        {"type": "object", "patternProperties": {"^a": {}}},
        {"$ref": "#/nowhere"},
        {"$ref": "https://elsewhere.example/"},
        {"allOf": [{"type": "string"}, {"type": "array"}]},
        False,
    ],
)
def test_a_kind_without_a_form_takes_nothing_from_the_others(other: Any) -> None:
    schema = {"anyOf": [other, {"type": "number"}, {"type": "boolean"}]}
    reading = Reviewer.before(schema, 5).send()
    assert (reading.answer, reading.errors) == (5, ())


def test_limits_beside_a_union_hold_for_every_kind_of_it() -> None:
    schema = {
        "type": "object",
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}},
            {"properties": {"kind": {"const": "b"}, "n": {"type": "integer"}}},
        ],
        "properties": {"note": {"type": "string", "maxLength": 3}},
        "required": ["kind", "note"],
    }
    value = {"kind": "b", "n": 1, "note": "long"}
    assert errors_of(schema, value) == [("/note", "maxLength")]
    assert Reviewer.before(schema, value).send(**{"v:/~1/note": "ok"}).answer == {**value, "note": "ok"}


def test_a_union_in_each_part_is_a_choice_within_a_choice() -> None:
    def one_of(key: str) -> Any:
        return {
            "anyOf": [
                {"properties": {key: {"const": at}, f"{key}{at}": WORD}, "required": [key]} for at in (1, 2)
            ]
        }

    schema = {"type": "object", "allOf": [one_of("a"), one_of("b")]}
    value = {"a": 2, "a2": "x", "b": 1, "b1": "y"}
    reading = Reviewer.before(schema, value).send(**{"v:/~1/~0/a2": "z"})
    assert (reading.answer, reading.errors) == ({**value, "a2": "z"}, ())


# Defaults, limits


def test_a_default_is_shown_wherever_nothing_is_given_and_never_sent() -> None:
    schema = {
        "type": "object",
        "properties": {
            "needed": {"type": "string", "default": "seen one"},
            "maybe": {"type": "integer", "default": 4711},
            "nullable": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "seen two"},
            "none": {"type": ["string", "null"], "default": None},
            "long": {"type": "string", "default": "x" * 500},
        },
        "required": ["needed"],
    }
    reviewer = Reviewer.before(schema)
    for shown in ("seen one", "4711", "seen two", "<code>null</code>", "x" * 100 + "…"):
        assert shown in reviewer.html.replace("x" * 119, "x" * 100)
    assert reviewer.send().answer == {"needed": ""}
    assert reviewer.send(**{"v:/needed": "typed"}).answer == {"needed": "typed"}
    assert Reviewer.before({}, {}).send().answer == {}


def test_a_date_nobody_picked_is_missing_and_the_agents_empty_one_is_kept() -> None:
    schema = {"type": "string", "format": "date"}
    assert [error.code for error in Reviewer.before(schema).send(**{"v:": ""}).errors] == ["missing"]
    assert Reviewer.before(schema, "").send().answer == ""


MANY = {"type": "object", "properties": {f"k{number}": WORD for number in range(MOST_NODES + 1)}}
LARGE = "word " * 250_000
DEEP: Any = WORD
for _ in range(120):
    DEEP = {"type": "array", "items": DEEP}


@pytest.mark.parametrize(
    ("schema", "args", "reason"),
    [
        (MANY, {"k1": "x"}, "large"),
        ({"type": "object", "properties": {"k1": WORD, "body": WORD}}, {"k1": "x", "body": LARGE}, "large"),
        ({**MANY, "description": "d" * 300_000}, {"k1": "x"}, "large-schema"),
        (
            {"type": "object", "properties": {"k1": WORD, "deep": DEEP}},
            {"k1": "x", "deep": []},
            "large-schema",
        ),
    ],
    ids=["fields", "value", "schema", "depth"],
)
def test_above_the_limits_the_whole_decision_is_json_that_still_works(
    schema: Any, args: Any, reason: str
) -> None:
    card = tool_card(schema, args)
    reviewer = Reviewer.at(card)
    root = reviewer.form.tree.root
    assert isinstance(root, Raw)
    assert root.reason == reason
    assert [error.code for error in reviewer.send().errors] == ["unchanged"]
    reading = reviewer.send(**{"v:": root.text.replace('"k1": "x"', '"k1": "y"')})
    assert reading.errors == ()
    assert reading.answer == {"type": "edit", "edited_action": {"name": "act", "args": {**args, "k1": "y"}}}
    assert [change.pointer for change in reading.changes] == ["/k1"]


def test_json_of_a_whole_decision_cannot_become_another_decision() -> None:
    reviewer = Reviewer.at(tool_card(MANY, {"k1": "x"}))
    reading = reviewer.send(**{"v:": '{"type": "approve"}'})
    assert {error.code for error in reading.errors} == {"const", "required"}
    other = '{"type": "edit", "edited_action": {"name": "drop_database", "args": {}}}'
    assert [error.pointer for error in reviewer.send(**{"v:": other}).errors] == ["/edited_action/name"]


def test_many_options_and_many_kinds_are_typed_instead_of_picked() -> None:
    codes = {"enum": [f"code-{number}" for number in range(300)]}
    assert drawn({"properties": {"a": codes}}, {"a": "code-7"}) == [("/a", "Entry")]
    assert errors_of({"properties": {"a": codes}}, {"a": "none"}) == [("/a", "enum")]
    kinds = {"anyOf": [{"const": number} for number in range(80)]}
    assert drawn({"properties": {"a": kinds}}, {"a": 7}) == [("/a", "raw: many-branches")]
    numbers = {"enum": list(range(300))}
    assert drawn({"properties": {"a": numbers}}, {"a": 7}) == [("/a", "raw: many-options")]


def test_line_ends_of_lines_that_nobody_touched_are_kept() -> None:
    reviewer = Reviewer.before(WORD, "Dear Ann,\r\nfirst\r\nsecond\rthird\nend")
    reading = reviewer.send(**{"v:": "Dear Ann,\nfirst\nSECOND\nthird\nend"})
    assert reading.answer == "Dear Ann,\r\nfirst\r\nSECOND\rthird\nend"
