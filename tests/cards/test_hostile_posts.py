"""Whatever a client posts: nothing raises, and the schema still decides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer import cards
from reviewer.cards import render
from tests.cards.browser import Page, Post
from tests.cards.grammar import schema_and_value
from tests.cards.making import SAMPLES, Reviewer, card_of, schema_of

AT = "/edited_action/args"
PREFIXES = ["v:", "s:", "b:", "#:", "k:", "r:", "j:", "_op", "verdict", "x:", ""]
PATHS = [
    "",
    "/",
    "/a",
    "/to",
    "/to/0",
    "/to/n1",
    "/~0",
    "/~+",
    AT,
    f"{AT}/to",
    f"{AT}/to/0",
    f"{AT}/method/~1",
    "/../..",
    "/__proto__",
]
_POSTED = [
    "0",
    "1",
    "-1",
    "n1",
    "value",
    "null",
    "absent",
    "current",
    "9" * 500,
    "NaN",
    "[" * 200,
    "\x00",
    "99999999",
]
_PRESSED = [
    "add:",
    f"add:{AT}/to",
    f"del:{AT}/to/0",
    f"raw:{AT}",
    f"form:{AT}",
    "raw:",
    "undo:",
    "set:absent:",
    "up:/to/0",
]
VALUES = st.text(max_size=30) | st.sampled_from([*_POSTED, *_PRESSED, '{"a":1,"a":2}'])
POSTS = st.dictionaries(
    st.tuples(st.sampled_from(PREFIXES), st.sampled_from(PATHS) | st.text(max_size=12)).map("".join),
    st.lists(VALUES, min_size=1, max_size=4),
    max_size=8,
)


@given(st.sampled_from(sorted(SAMPLES)), POSTS, st.data())
@settings(max_examples=250, deadline=None)
def test_a_hostile_post_to_any_card_is_only_an_error(
    name: str, fields: dict[str, list[str]], data: st.DataObject
) -> None:
    card = card_of(SAMPLES[name])
    choice = data.draw(st.sampled_from(card.choices))
    post = Post({**fields, "verdict": data.draw(st.sampled_from([[choice.verdict], ["nonsense"], []]))})
    reading = cards.read_decision(card, post)
    Page(str(render.render_form(reading.form, reading.errors)))
    if not reading.errors and not reading.is_op:
        assert card.validate(reading.answer) == ()


@given(schema_and_value(), st.data())
@settings(max_examples=120, deadline=None)
def test_a_page_posted_with_fields_missing_or_mangled_never_breaks(
    pair: tuple[Any, Any], data: st.DataObject
) -> None:
    reviewer = Reviewer.before(*pair)
    fields = reviewer.page.post()
    for name in list(fields):
        what = data.draw(st.sampled_from(["keep", "keep", "drop", "mangle", "double"]))
        if what == "drop":
            del fields[name]
        elif what == "mangle":
            fields[name] = [data.draw(VALUES)]
        elif what == "double":
            fields[name] = fields[name] * 2
    reading = reviewer.post(fields)
    Page(reviewer.html)
    if not reading.errors:
        assert cards.validate(reading.answer, pair[0]) == ()


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_post_without_any_field_sends_nothing_that_was_not_the_agents(name: str) -> None:
    sample = SAMPLES[name]
    if sample.get("initial") is None:
        return
    reading = Reviewer.before(schema_of(sample), sample["initial"]).post({})
    assert reading.answer == sample["initial"]


def test_posting_an_index_out_of_range_keeps_the_agents_choice() -> None:
    schema = {"enum": ["a", 1, None]}
    assert Reviewer.before(schema, 1).post({"v:": ["7"]}).answer == 1
    assert [error.code for error in Reviewer.before(schema).post({"v:": ["7"]}).errors] == ["choose"]


def test_a_constant_cannot_be_changed_by_posting_it() -> None:
    card = card_of(SAMPLES["02_refund_decimal_enum"])
    reading = Reviewer.at(card).post(
        {
            "v:/edited_action/name": ["drop_database"],
            "v:/type": ["approve"],
            f"v:{AT}/order_id": ["ORD-000777"],
        }
    )
    assert reading.answer["type"] == "edit"
    assert reading.answer["edited_action"]["name"] == "refund"


def test_a_list_posted_with_the_same_item_twice_has_it_once() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    assert Reviewer.before(schema, ["a", "b"]).post({"#:": ["", "1", "1", "0", "x", "-1"]}).answer == [
        "b",
        "a",
    ]


def test_a_state_the_schema_does_not_allow_is_ignored() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert Reviewer.before(schema, {"a": "x"}).post({"s:/a": ["absent"]}).answer == {"a": "x"}
    assert Reviewer.before(schema, {"a": "x"}).post({"s:/a": ["null"]}).answer == {"a": "x"}


def test_a_name_with_thousands_of_steps_costs_nothing() -> None:
    deep = "/a" * 50_000
    assert Reviewer.before({"type": "string"}, "x").post({f"v:{deep}": ["1"], "v:": ["y"]}).answer == "y"


@pytest.mark.parametrize(
    "base",
    ["[" * 500 + "]" * 500, "[" * 5000, "NaN", "1e999", '{"a": 1, "a": 2}', "0.12345678901234567890123"],
)
def test_a_base_that_no_page_of_ours_would_carry_is_ignored(base: str) -> None:
    for schema, value in ((True, 1), ({"type": "number"}, 1), ({"type": "array", "items": {}}, [])):
        reviewer = Reviewer.before(schema, value)
        assert reviewer.post({"j:": [base]}).answer == value
        Page(reviewer.html)


def test_a_large_base_is_read_as_data_and_still_checked() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    reading = Reviewer.before(schema, {"n": 1}).post({"j:": ['{"n": "x"}']})
    assert [error.code for error in reading.errors] == ["type"]
