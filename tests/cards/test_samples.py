"""Every stored payload: drawn, sent back untouched, every decision sent once, and accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reviewer import cards
from reviewer.cards import check, render
from reviewer.cards.schema import Document
from tests.cards.browser import Page, Post
from tests.cards.making import SAMPLES, Reviewer, card_of, schema_of

EVERY = pytest.mark.parametrize("name", SAMPLES)
WITH_VALUE = [name for name, sample in SAMPLES.items() if sample.get("initial") is not None]

# What a reviewer types where the agent gave nothing to start from.
TYPED: dict[str, dict[str, str]] = {
    "12_custom_verdict": {
        "v:/score": "5",
        "v:/comment": "long enough to count",
        "v:/confident": "0",
        "v:/categories": "1",
    },
    "13_custom_bare_string": {"v:": "forty-two"},
    "14_custom_bare_bool": {"v:": "1"},
    "19_custom_nasty_names": {"v:/a.b[0]~1~0c": "x"},
    "call_raw_int": {"v:": "9007199254740993"},
    "call_raw_literal": {"v:": "1"},
    "call_raw_pydantic": {"v:/name": "Ann"},
    "call_raw_str_optional": {"s:": "null"},
}
ANSWERS: dict[str, Any] = {
    "12_custom_verdict": {
        "score": 5,
        "comment": "long enough to count",
        "confident": True,
        "categories": ["facts"],
    },
    "13_custom_bare_string": "forty-two",
    "14_custom_bare_bool": False,
    "19_custom_nasty_names": {"a.b[0]/~c": "x"},
    "call_raw_int": 2**53 + 1,
    "call_raw_literal": "no",
    "call_raw_pydantic": {"name": "Ann"},
    "call_raw_str_optional": None,
}


@EVERY
def test_every_sample_is_drawn(name: str) -> None:
    card = card_of(SAMPLES[name])
    assert card.title
    Page(str(render.render_arguments(card)))
    for choice in card.choices:
        page = Page(str(render.render_form(card.open(choice.verdict))))
        assert len(set(page.ids)) == len(page.ids)


@pytest.mark.parametrize("name", WITH_VALUE)
def test_every_sample_with_a_value_comes_back_untouched(name: str) -> None:
    sample = SAMPLES[name]
    reading = Reviewer.before(schema_of(sample), sample["initial"]).send()
    assert json.dumps(reading.answer) == json.dumps(sample["initial"])
    assert [error.code for error in reading.errors] == (["required"] if name == "17_raw_dict_schema" else [])


@EVERY
def test_every_decision_without_arguments_is_sent_and_valid(name: str) -> None:
    card = card_of(SAMPLES[name])
    expected = {
        "approve": {"type": "approve"},
        "reject": {"type": "reject", "message": "No.\nAsk again"},
        "respond": {"type": "respond", "message": "No.\nAsk again"},
    }
    for choice in card.choices:
        if choice.verdict not in expected:
            continue
        typed = {} if choice.verdict == "approve" else {"v:/message": "No.\nAsk again"}
        reading = Reviewer.at(card, choice.verdict).send(**typed)
        assert reading.errors == ()
        assert reading.answer == expected[choice.verdict]
        assert check.accepts(Document(schema_of(SAMPLES[name])), schema_of(SAMPLES[name]), reading.answer)


@EVERY
def test_a_rejection_without_a_message_sends_none(name: str) -> None:
    card = card_of(SAMPLES[name])
    if card.choice("reject") is not None:
        assert Reviewer.at(card, "reject").send(**{"v:/message": "  "}).answer == {"type": "reject"}


@pytest.mark.parametrize("name", TYPED)
def test_a_custom_answer_is_typed_as_its_schema_asks(name: str) -> None:
    reading = Reviewer.at(card_of(SAMPLES[name]), "answer").send(**TYPED[name])
    assert reading.errors == ()
    assert reading.answer == ANSWERS[name]
    assert type(reading.answer) is type(ANSWERS[name])


def test_the_order_of_decisions_is_always_the_same() -> None:
    orders = [[choice.verdict for choice in card_of(sample).choices] for sample in SAMPLES.values()]
    assert all(
        order in (["approve", "edit", "reject", "respond"], ["approve", "reject"])
        for order in orders
        if len(order) > 1
    )


def test_an_edit_keeps_the_name_of_the_tool_and_changes_one_argument_only() -> None:
    card = card_of(SAMPLES["02_refund_decimal_enum"])
    reading = Reviewer.at(card).send(**{"v:/edited_action/args/order_id": "ORD-000124"})
    assert reading.errors == ()
    assert reading.answer["edited_action"] == {
        "name": "refund",
        "args": {**card.request.args, "order_id": "ORD-000124"},
    }
    assert [(change.pointer, change.before, change.after) for change in reading.changes] == [
        ("/order_id", "ORD-000123", "ORD-000124")
    ]


def test_an_unknown_tool_is_edited_as_json() -> None:
    card = card_of(SAMPLES["10_unknown_tool_any_args"])
    reading = Reviewer.at(card).send(**{"v:/edited_action/args": '{"a": 2, "b": {"c": [1.0, 2]}}'})
    assert reading.errors == ()
    assert json.dumps(reading.answer["edited_action"]["args"]) == '{"a": 2, "b": {"c": [1.0, 2]}}'


def test_the_tools_own_schema_draws_arguments_that_the_response_schema_does_not_know() -> None:
    args_schema = {
        "type": "object",
        "$defs": {"Level": {"enum": [1, 2, 3]}},
        "properties": {"a": {"$ref": "#/$defs/Level"}, "b": {}},
        "required": ["a"],
    }
    card = card_of(SAMPLES["10_unknown_tool_any_args"], args_schema=args_schema)
    reading = Reviewer.at(card).send(**{"v:/edited_action/args/a": "2"})
    assert reading.errors == ()
    assert reading.answer["edited_action"]["args"] == {"a": 3, "b": {"c": [1, 2]}}
    wrong = {"type": "edit", "edited_action": {"name": "ghost", "args": {"a": 9}}}
    assert [error.pointer for error in card.validate(wrong)] == ["/edited_action/args/a"]


def test_arguments_that_no_schema_enforces_are_checked_by_us() -> None:
    card = card_of(SAMPLES["09_mcp_json_schema_tool"])
    answer = {"type": "edit", "edited_action": {"name": card.request.tool, "args": {"nope": ["a"]}}}
    assert {error.pointer for error in card.validate(answer)} >= {"/edited_action/args/repo"}


def test_an_edit_that_changes_nothing_offers_to_approve() -> None:
    reviewer = Reviewer.at(card_of(SAMPLES["01_send_email"]))
    assert [error.code for error in reviewer.send().errors] == ["unchanged"]
    assert '<button type="submit" class="btn btn--s" name="verdict" value="approve">' in reviewer.html


def test_a_decision_that_is_not_allowed_is_refused() -> None:
    card = card_of(SAMPLES["07_delete_approve_reject_only"])
    reading = cards.read_decision(card, Post({"verdict": ["edit"]}))
    assert [error.code for error in reading.errors] == ["verdict"]
    assert [error.code for error in card.validate({"type": "edit"})] == ["verdict"]
