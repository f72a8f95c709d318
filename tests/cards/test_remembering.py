"""What a process remembers of schemas and answers changes nothing of what they are told."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings

from reviewer.cards import check
from reviewer.cards.compile import compile_form
from reviewer.cards.decisions import VERDICTS, choices
from reviewer.cards.schema import Document
from reviewer.cards.validate import validate_part, validate_tree
from reviewer.cards.values import Json, key_text, same
from tests.cards.grammar import JSON, schema_and_value


@settings(deadline=None)
@given(JSON, JSON)
def test_values_of_one_text_are_one_value(left: Json, right: Json) -> None:
    text = key_text(left, 10_000)
    if text is not None:
        assert same(json.loads(text), left)
        assert (text == key_text(right, 10_000)) <= same(left, right)


def test_halves_of_a_character_are_not_remembered_as_the_whole_one() -> None:
    schema: Json = {"type": "string", "maxLength": 1}
    assert key_text("\ud83d\ude00", 100) is None
    for _ in range(2):
        assert validate_part("\U0001f600", schema, schema) == ()
        assert [error.code for error in validate_part("\ud83d\ude00", schema, schema)] == ["maxLength"]


@settings(deadline=None)
@given(schema_and_value(), JSON)
def test_an_answer_is_told_the_same_the_first_time_and_later(made: tuple[Json, Json], other: Json) -> None:
    schema, fits = made
    for answer in (fits, other):
        wanted = validate_tree(compile_form(schema, answer), answer)
        for _ in range(2):
            assert validate_part(answer, schema, schema) == wanted


@settings(deadline=None)
@given(schema_and_value())
def test_a_card_offers_the_same_decisions_the_first_time_and_later(made: tuple[Json, Json]) -> None:
    asked, _ = made
    wanted = [*VERDICTS, "agent's own"]
    schema: Json = {
        "anyOf": [
            {"type": "object", "properties": {"type": {"const": verdict}, "x": {"$ref": "#/$defs/x"}}}
            for verdict in wanted
        ],
        "$defs": {"x": asked},
    }
    first, later = (choices(schema, tool="pay", args={}) for _ in range(2))
    assert first == later
    assert [choice.verdict for choice in later] == wanted


def test_what_one_card_does_with_its_decisions_changes_no_other_card() -> None:
    schema: Json = {"type": "object", "properties": {"type": {"const": "approve"}, "x": {"type": "string"}}}
    first, second = (choices(schema, tool="pay", args={})[0] for _ in range(2))
    first.schema["properties"].clear()
    assert second.schema == choices(schema, tool="pay", args={})[0].schema == schema


def test_decisions_that_are_longer_than_is_kept_are_offered_as_well() -> None:
    for shared in ("x" * 200_000, "x" * 30_000):  # too long itself; too long once it stands in each branch
        schema: Json = {
            "anyOf": [
                {"$ref": "#/$defs/x", "properties": {"type": {"const": verdict}}} for verdict in VERDICTS
            ],
            "$defs": {"x": {"type": "object", "$comment": shared}},
        }
        for _ in range(2):
            assert [choice.verdict for choice in choices(schema, tool="", args={})] == list(VERDICTS)


def test_what_is_longer_than_is_kept_is_told_as_well() -> None:
    schema: Json = {"type": "string", "maxLength": 10, "description": "x" * 200_000}
    for _ in range(2):
        assert [error.code for error in validate_part("y" * 11, schema, schema)] == ["maxLength"]
        assert validate_part("y", schema, schema) == ()
    deep: Json = {}
    for _ in range(20_000):
        deep = {"not": deep}
    assert not check.is_readable(Document(deep), deep)


def test_threads_may_ask_the_same_validator_at_once() -> None:
    schema: Json = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x+$"}}}
    document = Document(schema)

    def ask(number: int) -> bool:
        return check.accepts(document, schema, {"a": "x" * (1 + number % 9)}) and not check.accepts(
            document, schema, {"a": f"{number}"}
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(2_000)))
