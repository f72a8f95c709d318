"""What a reviewer reads before deciding: every argument, long values folded with both ends shown."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer import cards
from reviewer.cards import looks, render, view
from reviewer.cards.titles import humanise, title
from tests.cards.browser import Page
from tests.cards.grammar import JSON
from tests.cards.making import SAMPLES, card_of, tool_card


def text_of(html: str) -> str:
    return " ".join(" ".join(Page(html).text).split())


def scalars(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *(part for item in value.values() for part in scalars(item))]
    return [part for item in value for part in scalars(item)] if isinstance(value, list) else [value]


def test_each_argument_is_a_row_with_value_and_type() -> None:
    card = card_of(SAMPLES["02_refund_decimal_enum"])
    text = text_of(str(render.render_arguments(card)))
    assert "order_id ORD-000123 string" in text
    assert "amount 19.90 string" in text
    assert "note null string or null, optional" in text
    assert "notify Yes true boolean, optional" in text


def layout_of(value: Any, schema: Any = True) -> view.Layout:
    (row,) = view.rows({"type": "object", "properties": {"x": schema}}, {"x": value})
    return row.layout


LINE = {"sku": "A-1", "n": 2, "on": True, "note": None}


@pytest.mark.parametrize(
    ("value", "layout"),
    [
        (["a", "b c"], view.Layout.WORDS),
        ([1, 2], view.Layout.WORDS),
        ([1, 2.0], view.Layout.LINES),  # types that differ are told one by one
        (["1", 1], view.Layout.LINES),
        (["a", "b\nc"], view.Layout.LINES),
        ([LINE, LINE], view.Layout.TABLE),
        ([LINE, {"sku": "B"}], view.Layout.TABLE),
        ([LINE, {**LINE, "n": "2"}], view.Layout.ITEMS),
        ([LINE, {**LINE, "sku": "long " * 20}], view.Layout.ITEMS),
        ([LINE, {**LINE, "api_key": "x"}], view.Layout.ITEMS),
        ([{str(n): n for n in range(7)}], view.Layout.ITEMS),
        ([LINE, {}], view.Layout.ITEMS),
        ([LINE, {**LINE, "deep": [1]}], view.Layout.ITEMS),
        ([[1], [2]], view.Layout.ITEMS),
        ([LINE, 1], view.Layout.LINES),
        ({"a": "b"}, view.Layout.LINES),
    ],
)
def test_lists_are_laid_out_by_what_they_hold(value: Any, layout: view.Layout) -> None:
    assert layout_of(value) is layout


def test_like_objects_are_a_table_that_says_each_key_and_type_once() -> None:
    html = str(render.render_arguments(tool_card(True, {"lines": [LINE, {"sku": "B-2", "extra": 1.0}]})))
    heads = re.findall(r'<th scope="col"><code>(\w+)</code> <small>([^<]*)</small></th>', html)
    assert heads == [
        ("sku", "string"),
        ("n", "integer"),
        ("on", "boolean"),
        ("note", "null"),
        ("extra", "number"),
    ]
    rows = re.findall(r'<tr><th scope="row">(\d)</th>(.*?)</tr>', html)
    assert [number for number, _ in rows] == ["1", "2"]
    assert rows[1][1].count("Not sent") == 3
    assert "list of objects" in html


def test_a_table_of_more_than_a_dozen_lines_is_folded_and_one_of_a_dozen_is_not() -> None:
    for count, folded in ((12, ()), (13, ("/lines",))):
        assert tool_card(True, {"lines": [LINE] * count}).folded == folded


def test_a_value_that_is_not_of_the_type_asked_for_says_so() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "x": {"type": "number"}, "l": {"type": "array"}},
    }
    text = text_of(str(render.render_arguments(tool_card(schema, {"n": "12", "x": 1, "l": {"a": 1}}))))
    assert "n 12 string in place of integer" in text
    assert "x 1 number" in text
    assert "object in place of list" in text
    assert layout_of(["1", 1], {"type": "array", "items": {"type": "integer"}}) is view.Layout.LINES


def test_what_the_agent_left_out_is_shown_as_not_sent() -> None:
    string = {"type": "string"}
    schema = {"type": "object", "properties": {"a": string, "cost_center": string}, "required": ["a"]}
    text = text_of(str(render.render_arguments(tool_card(schema, {"a": ""}))))
    assert 'a Empty text "" string' in text
    assert "cost_center Not sent string, optional" in text


def test_an_argument_the_schema_does_not_know_is_shown_all_the_same() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    assert "surprise abc" in text_of(str(render.render_arguments(tool_card(schema, {"surprise": "abc"}))))


@given(JSON)
@settings(max_examples=150, deadline=None)
def test_every_key_and_value_is_on_the_card(value: Any) -> None:
    card = cards.build(cards.CardRequest("t", "tool", value, True))
    text = "".join(Page(str(render.render_arguments(card))).text)
    for part in scalars(value):
        if isinstance(part, str) and part.strip() and part.isprintable() and len(part) < 200:
            assert part in text
        elif isinstance(part, int | float) and not isinstance(part, bool):
            assert repr(part) in text


def test_a_long_text_shows_its_length_its_head_and_its_tail() -> None:
    body = "START " + "middle " * 300 + "pay to EVIL account"
    card = tool_card(True, {"body": body})
    assert card.folded == ("/body",)
    html = str(render.render_arguments(card, expand_url="?expand="))
    text = text_of(html)
    assert "START" in text
    assert "EVIL account" in text
    assert f"Show all {len(body)} characters" in text
    assert 'href="?expand=%2Fbody"' in html
    assert body not in text
    opened = render.render_arguments(card, expanded=["/body"], expand_url="?expand=")
    assert " ".join(body.split()) in text_of(str(opened))


def test_without_a_link_the_whole_text_is_there_folded() -> None:
    body = "x" * 5000
    assert body in "".join(Page(str(render.render_arguments(tool_card(True, {"body": body})))).text)


def test_a_megabyte_is_drawn_folded_in_no_time() -> None:
    card = tool_card(True, {"body": "lorem ipsum " * 87_000})
    began = time.perf_counter()
    html = render.render_arguments(card, expand_url="?expand=")
    assert time.perf_counter() - began < 1
    assert len(html) < 4000


def test_a_list_of_thousands_is_shown_as_text_and_not_left_out() -> None:
    card = tool_card(True, {"ids": list(range(5000))})
    assert card.folded == ("/ids",)
    assert "4999" in "".join(Page(str(render.render_arguments(card))).text)


def test_a_deep_value_is_shown_to_its_end() -> None:
    value: Any = "bottom"
    for _ in range(60):
        value = {"in": [value]}
    assert "bottom" in "".join(Page(str(render.render_arguments(tool_card(True, value)))).text)


def test_a_decided_answer_is_drawn_from_its_schema() -> None:
    properties = {"why": {"enum": ["not_allowed", "late"]}, "n": {"type": "integer"}}
    schema = {"type": "object", "properties": properties}
    text = text_of(str(render.render_value(schema, {"why": "not_allowed", "n": 3})))
    assert "why Not allowed not_allowed enum, optional" in text
    assert "Value Yes true boolean" in text_of(str(render.render_value({"type": "boolean"}, True)))


def test_folding_counts_values_and_not_levels() -> None:
    rows = view.rows(True, {"a": {"b": list(range(20))}})
    assert view.folded(rows) == ("/a", "/a/b")


@pytest.mark.parametrize(
    ("template", "args", "expected"),
    [
        (
            "Refund {n} {currency} of {order_id}",
            {"n": 5, "currency": "EUR", "order_id": "7"},
            "Refund 5 EUR of 7",
        ),
        ("Mail {to.0.address}", {"to": [{"address": "a@b"}]}, "Mail a@b"),
        ("Mail {to}", {"to": ["a@b"]}, "Mail a@b"),
        ("Mail {to}", {"to": ["a", "b"]}, "Send mail"),
        ("Mail {to} now", {}, "Send mail"),
        ("Mail {to.__class__}", {"to": "x"}, "Send mail: x"),
        ("Mail {to!r} {0} {{x}}", {"to": "x", "x": 1}, "Mail {to!r} {0} {1}"),
        ("Set {ok}", {"ok": True}, "Send mail"),
        ("{a}", {"a": "x" * 500}, "x" * 39 + "…"),
        ("{a}", {"a": "line\n\tbreak"}, "line break"),
        ("{a}", {"a": "{b}", "b": "no"}, "{b}"),
        ("{a}", {"a": ""}, "Send mail"),
        (None, {"subject": "Hi", "body": "b"}, "Send mail: Hi, b"),
        (None, {}, "Send mail"),
        (None, None, "Send mail"),
        (None, {"z": 1, "order_id": "A7"}, "Send mail: A7, 1"),
    ],
)
def test_a_title_is_filled_from_arguments_only(template: str | None, args: Any, expected: str) -> None:
    assert title(template, "send_mail", args) == expected


def test_a_title_is_one_short_line() -> None:
    long = title("{a} {b} {c} {d}", "t", dict.fromkeys("abcd", "word " * 50))
    assert len(long) <= 120
    assert long.endswith("…")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("What?", "What?"),
        ({"question": "Who?"}, "Who?"),
        ({"x": 1}, "Answer needed"),
        (None, "Answer needed"),
        ("", "Answer needed"),
    ],
)
def test_a_plain_question_is_its_own_title(value: Any, expected: str) -> None:
    assert title(None, "", value) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("order_id", "Order id"),
        ("orderId", "Order id"),
        ("URL", "URL"),
        ("", ""),
        ("__", "__"),
        ("a.b", "A b"),
        ("HTTP_code", "HTTP code"),
    ],
)
def test_keys_become_words(key: str, expected: str) -> None:
    assert humanise(key) == expected


@given(JSON, JSON)
@settings(max_examples=100, deadline=None)
def test_any_arguments_have_a_title(args: Any, other: Any) -> None:
    for template in (None, "{a} {b.c}", str(other)):
        found = title(template, "tool", args)
        assert found
        assert "\n" not in found
        assert len(found) <= 120


@given(st.text(alphabet="ab \n", min_size=view.LONG_TEXT))
def test_a_folded_text_shows_its_own_two_ends(text: str) -> None:
    head, tail = view.ends_of(text)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) <= view.HEAD + view.TAIL


def test_a_folded_text_is_cut_between_words() -> None:
    head, tail = view.ends_of("payouts " * 60 + "soon")
    assert (set(head.split()), set(tail.split())) == ({"payouts"}, {"payouts", "soon"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["fee_change", "late_payment"], ["Fee change", "Late payment"]),
        (["EUR", "GBP", 3], ["EUR", "GBP", "3"]),
        (["iban", "card"], ["IBAN", "Card"]),
        (["late_fee", "late-fee"], ["late_fee", "late-fee"]),
    ],
)
def test_options_are_called_in_words_unless_two_would_read_the_same(
    options: list[Any], words: list[str]
) -> None:
    assert looks.option_labels(options, None) == words
