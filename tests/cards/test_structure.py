"""Structural buttons, with the page going to the server and back each time, as without a script."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reviewer import cards
from tests.cards.browser import Page
from tests.cards.making import SAMPLES, Reviewer, card_of, tool_card

PEOPLE = {
    "type": "object",
    "properties": {
        "to": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["name", "n"],
            },
        },
        "note": {"type": "string"},
    },
    "required": ["to", "note"],
}
AT = "/edited_action/args"


@pytest.fixture
def reviewer() -> Reviewer:
    args = {"to": [{"name": "a", "n": 1}, {"name": "b", "n": 2}, {"name": "c", "n": 3}], "note": "hi"}
    return Reviewer.at(tool_card(PEOPLE, args))


def errors_at(reviewer: Reviewer, name: str) -> list[str]:
    """Return what is said at a control, found as a screen reader finds it; the summary links to it too."""
    page = reviewer.page
    control = next(control for control in page.controls if control.name == name)
    assert control.attrs["aria-invalid"] == "true"
    assert f'href="#{control.attrs["id"]}"' in reviewer.html
    told = reviewer.html.split(f'id="{control.attrs["aria-describedby"]}"')[1].split("</div>")[0]
    return ["".join(Page(f"<p>{line}</p>").text) for line in re.findall("</svg>(.*?)</p>", told)]


def focused(reviewer: Reviewer) -> str:
    """Return the name or the operation of the control that gets the focus."""
    (control,) = (control for control in reviewer.page.controls if "autofocus" in control.attrs)
    return control.value if control.name == "_op" else control.name


def args_of(reading: cards.Reading) -> Any:
    assert reading.errors == ()
    return reading.answer["edited_action"]["args"]


def test_an_item_is_added_at_the_end_and_its_first_control_gets_the_focus(reviewer: Reviewer) -> None:
    reviewer.press(f"add:{AT}/to")
    assert reviewer.html.count("autofocus") == 1
    focused = next(control for control in reviewer.page.controls if "autofocus" in control.attrs)
    assert focused.name == f"v:{AT}/to/n1/name"
    reading = reviewer.send(**{f"v:{AT}/to/n1/name": "d", f"v:{AT}/to/n1/n": "4"})
    assert args_of(reading)["to"][3] == {"name": "d", "n": 4}


def test_removing_one_item_leaves_the_others_with_what_was_typed(reviewer: Reviewer) -> None:
    reviewer.press(f"del:{AT}/to/1", **{f"v:{AT}/to/2/name": "typed"})
    assert args_of(reviewer.send())["to"] == [{"name": "a", "n": 1}, {"name": "typed", "n": 3}]


def test_after_removing_the_add_button_gets_the_focus(reviewer: Reviewer) -> None:
    reviewer.press(f"del:{AT}/to/1")
    focused = next(control for control in reviewer.page.controls if "autofocus" in control.attrs)
    assert focused.value == f"add:{AT}/to"


def test_moving_an_item_takes_its_typed_text_along(reviewer: Reviewer) -> None:
    reviewer.press(f"down:{AT}/to/0", **{f"v:{AT}/to/0/n": "11"})
    reviewer.press(f"up:{AT}/to/2")
    assert args_of(reviewer.send())["to"] == [
        {"name": "b", "n": 2},
        {"name": "c", "n": 3},
        {"name": "a", "n": 11},
    ]


def test_the_button_that_moved_an_item_keeps_the_focus_while_it_can_be_pressed(reviewer: Reviewer) -> None:
    reviewer.press(f"up:{AT}/to/2")
    assert focused(reviewer) == f"up:{AT}/to/2"
    reviewer.press(f"up:{AT}/to/2")
    assert focused(reviewer) == f"down:{AT}/to/2"
    reviewer.press(f"down:{AT}/to/2")
    reviewer.press(f"down:{AT}/to/2")
    assert focused(reviewer) == f"up:{AT}/to/2"
    assert reviewer.send().changes == ()


def test_text_that_does_not_parse_survives_every_button(reviewer: Reviewer) -> None:
    reviewer.press(f"add:{AT}/to", **{f"v:{AT}/to/0/n": "1.5"})
    assert 'value="1.5"' in reviewer.html
    reading = reviewer.send(**{f"v:{AT}/to/n1/name": "d", f"v:{AT}/to/n1/n": "4"})
    assert [error.pointer for error in reading.errors] == [f"{AT}/to/0/n"]
    assert 'value="1.5"' in reviewer.html


def test_an_error_stays_with_its_item_when_another_is_removed(reviewer: Reviewer) -> None:
    reviewer.send(**{f"v:{AT}/to/2/n": "x"})
    reviewer.press(f"del:{AT}/to/0")
    reading = reviewer.send()
    assert [error.pointer for error in reading.errors] == [f"{AT}/to/1/n"]
    assert [error.path for error in reading.errors] == [f"{AT}/to/2/n"]


def test_undo_gives_a_field_the_agents_value_again(reviewer: Reviewer) -> None:
    reviewer.press(f"del:{AT}/to/0", **{f"v:{AT}/note": "other"})
    reviewer.press(f"undo:{AT}/to")
    assert args_of(reviewer.send()) == {**reviewer.card.request.args, "note": "other"}  # type: ignore[union-attr]


def test_a_refresh_only_draws_again(reviewer: Reviewer) -> None:
    reading = reviewer.press("refresh", **{f"v:{AT}/note": "typed"})
    assert [change.pointer for change in reading.changes] == ["/note"]
    assert args_of(reviewer.send())["note"] == "typed"


def test_switching_a_kind_and_back_restores_what_was_typed() -> None:
    reviewer = Reviewer.at(card_of(SAMPLES["06_pay_nested_discriminator"]))
    method = f"{AT}/method"
    reviewer.press("refresh", **{f"v:{method}/~1/iban": "DE99", f"b:{method}": "0"})
    reading = reviewer.press("refresh", **{f"v:{method}/~0/number": "4111111111111111", f"b:{method}": "1"})
    assert reading.answer["edited_action"]["args"]["method"] == {"kind": "iban", "iban": "DE99", "bic": None}
    reading = reviewer.send(**{f"b:{method}": "0"})
    assert [error.pointer for error in reading.errors] == [f"{AT}/method/cvc"] or reading.errors
    reading = reviewer.send(**{f"v:{method}/~0/cvc": "123"})
    assert args_of(reading)["method"] == {"kind": "card", "number": "4111111111111111", "cvc": "123"}


def test_nothing_of_the_other_kind_is_sent_after_a_switch() -> None:
    reviewer = Reviewer.at(card_of(SAMPLES["06_pay_nested_discriminator"]))
    method = f"{AT}/method"
    reviewer.press("refresh", **{f"b:{method}": "2"})
    reading = reviewer.send(**{f"v:{method}/~2/kind": "1", f"v:{method}/~2/token": "t"})
    assert args_of(reading)["method"] == {"kind": "google", "token": "t"}


def test_a_kind_chosen_without_seeing_its_fields_is_not_sent_blank() -> None:
    reviewer = Reviewer.at(card_of(SAMPLES["02_refund_decimal_enum"]))
    reading = reviewer.send(**{f"b:{AT}/amount": "0"})
    assert [(error.pointer, error.code) for error in reading.errors] == [(f"{AT}/amount", "unseen")]
    reading = reviewer.send(**{f"v:{AT}/amount/~0": "19.9"})
    assert args_of(reading)["amount"] == 19.9


def test_null_not_sent_and_empty_are_three_things() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}},
    }
    reviewer = Reviewer.before(schema, {"x": ""})
    assert reviewer.send().answer == {"x": ""}
    assert reviewer.send(**{"s:/x": "null"}).answer == {"x": None}
    assert reviewer.send(**{"s:/x": "absent"}).answer == {}
    assert reviewer.send(**{"s:/x": "value"}).answer == {"x": ""}


def test_an_optional_list_is_added_and_left_out_again() -> None:
    schema = {
        "type": "object",
        "properties": {"cc": {"type": "array", "items": {"type": "string"}, "default": ["x"]}},
    }
    reviewer = Reviewer.before(schema, {})
    assert reviewer.send().answer == {}
    reviewer.press("set:value:/cc")
    assert reviewer.send().answer == {"cc": []}
    reviewer.press("add:/cc")
    assert reviewer.send(**{"v:/cc/n1": "a"}).answer == {"cc": ["a"]}
    reviewer.press("set:absent:/cc")
    assert reviewer.send().answer == {}


def test_a_null_list_is_made_on_request_only() -> None:
    schema = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    reviewer = Reviewer.before(schema, None)
    assert reviewer.send().answer is None
    assert [error.code for error in reviewer.send(**{"s:": "value"}).errors] == ["unseen"]
    assert reviewer.send().answer == []


def test_the_keys_of_a_map_are_renamed_added_and_removed() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    reviewer = Reviewer.before(schema, {"a": 1, "b": 2, "": 3})
    reviewer.press("del:/1", **{"k:/0": "z/~"})
    reviewer.press("add:")
    reading = reviewer.send(**{"k:/n1": "new", "v:/n1": "9"})
    assert list(reading.answer.items()) == [("z/~", 1), ("", 3), ("new", 9)]


def test_items_of_an_answer_without_a_name_are_called_items() -> None:
    reviewer = Reviewer.before({"type": "array", "items": {"type": "integer"}}, [1, 2])
    assert "Remove Item 2" in reviewer.html
    reviewer.send(**{"v:/1": "x"})
    assert "Item 2: Enter a whole number in digits" in reviewer.html


def test_a_key_that_is_there_twice_is_an_error_at_that_key() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    reviewer = Reviewer.before(schema, {"a": 1, "b": 2})
    reading = reviewer.send(**{"k:/1": "a"})
    assert [(error.code, error.path) for error in reading.errors] == [("key-taken", "/1#key")]
    assert errors_at(reviewer, "k:/1") == ["The key “a” stands here twice; use another"]


@pytest.mark.parametrize(("typed", "told"), [("", "Enter a key"), ("\x00", "Remove the characters")])
def test_a_key_that_is_none_is_an_error_at_that_key_unless_it_is_the_agents(typed: str, told: str) -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    reviewer = Reviewer.before(schema, {"a": 1, "": 2})
    assert reviewer.send().answer == {"a": 1, "": 2}
    reviewer.press("add:", **{"k:/1": "b"})
    reading = reviewer.send(**{"k:/n1": typed, "v:/n1": "3"})
    assert [error.path for error in reading.errors] == ["/n1#key"]
    assert errors_at(reviewer, "k:/n1")[0].startswith(told)


def test_editing_as_json_and_back_keeps_every_field() -> None:
    reviewer = Reviewer.at(card_of(SAMPLES["11_shell_tuple_float_bigint"]))
    args = reviewer.card.request.args  # type: ignore[union-attr]
    reviewer.press(f"raw:{AT}", **{f"v:{AT}/cwd": "/tmp"})
    assert args_of(reviewer.send()) == {**args, "cwd": "/tmp"}
    reviewer.press(f"form:{AT}")
    reading = reviewer.send(**{f"v:{AT}/big": "9007199254740995"})
    assert args_of(reading) == {**args, "cwd": "/tmp", "big": 9007199254740995}
    assert {change.pointer for change in reading.changes} == {"/cwd", "/big"}


def test_json_that_does_not_parse_stays_json_with_line_and_column() -> None:
    reviewer = Reviewer.at(card_of(SAMPLES["01_send_email"]))
    reviewer.press(f"raw:{AT}")
    reading = reviewer.send(**{f"v:{AT}": '{"a": 1,\n "b": }'})
    assert [(error.code, error.params) for error in reading.errors] == [("json", {"line": 2, "column": 7})]
    assert "&quot;b&quot;: }" in reviewer.html
    reviewer.press(f"form:{AT}")
    assert "&quot;b&quot;: }" in reviewer.html


def test_a_value_its_schema_does_not_fit_is_shown_as_it_is_and_can_be_started_anew() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
        "required": ["n", "s"],
    }
    reviewer = Reviewer.at(tool_card(schema, {"n": "30", "s": "x"}))
    reading = reviewer.send()
    assert [(error.pointer, error.code) for error in reading.errors] == [(f"{AT}/n", "type")]
    assert args_of(reviewer.send(**{f"v:{AT}/n": "30"})) == {"n": 30, "s": "x"}
    reviewer.press(f"fresh:{AT}/n")
    assert args_of(reviewer.send(**{f"v:{AT}/n": "31"})) == {"n": 31, "s": "x"}


def test_keys_the_schema_does_not_name_are_kept_and_can_be_edited() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    reviewer = Reviewer.at(tool_card(schema, {"z": [1.0], "a": 1}))
    assert args_of(reviewer.send(**{f"v:{AT}/a": "2"})) == {"z": [1.0], "a": 2}
    assert args_of(reviewer.send(**{f"v:{AT}/~+": '{"y": true}'})) == {"y": True, "a": 2}
    reading = reviewer.send(**{f"v:{AT}/~+": '{"a": 5}'})
    assert [error.code for error in reading.errors] == ["key-taken"]


def test_a_draft_starts_from_an_earlier_answer_and_still_compares_with_the_proposal() -> None:
    card = card_of(SAMPLES["02_refund_decimal_enum"])
    earlier = {
        "type": "edit",
        "edited_action": {"name": "refund", "args": {**card.request.args, "amount": "5"}},
    }
    reviewer = Reviewer(card.open("edit", draft=earlier), card)
    reading = reviewer.send(**{f"v:{AT}/order_id": "ORD-000999"})
    assert args_of(reading) == {**card.request.args, "amount": "5", "order_id": "ORD-000999"}
    assert {change.pointer for change in reading.changes} == {"/amount", "/order_id"}


def test_a_list_that_would_outgrow_the_form_is_not_grown_and_nothing_is_lost() -> None:
    inner = {"type": "object", "properties": {str(number): {"type": "string"} for number in range(60)}}
    reviewer = Reviewer.before({"type": "array", "items": inner}, [{}])
    many = ["", "0", *(f"n{number}" for number in range(1, 26))]
    reading = reviewer.post({"#:": many, "_op": ["add:"]})
    assert [error.code for error in reading.errors] == ["overflow"]
    assert len(reading.answer) == 26


def test_what_the_agent_left_out_is_not_made_up_even_if_it_is_required() -> None:
    schema = {
        "type": "object",
        "properties": {
            "to": {"type": "array", "items": {"type": "string"}},
            "subject": {"type": "string"},
            "meta": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
        "required": ["to", "subject", "meta"],
    }
    reviewer = Reviewer.at(tool_card(schema, {"subject": "x"}))
    reading = reviewer.send()
    assert reading.answer["edited_action"]["args"] == {"subject": "x"}
    assert [error.pointer for error in reading.errors] == [f"{AT}/to", f"{AT}/meta"]
    assert reviewer.html.count("The agent left this out") == 2
    reviewer.press(f"set:value:{AT}/to")
    reviewer.press(f"set:value:{AT}/meta")
    assert args_of(reviewer.send()) == {"subject": "x", "to": [], "meta": {}}
