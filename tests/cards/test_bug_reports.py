"""The right value for what other form renderers got wrong: public bug reports, one test each, the trigger as
reported.

The numbers are those of the list the project keeps; each test's docstring names the report.
"""

from __future__ import annotations

from typing import Any

import pytest

from reviewer import cards
from reviewer.cards import render
from tests.cards.making import Reviewer, tool_card

AT = "/edited_action/args"


def obj(required: list[str] | None = None, /, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required if required is not None else list(properties),
    }


def untouched(schema: Any, value: Any) -> Any:
    reading = Reviewer.before(schema, value).send()
    assert reading.errors == ()
    return reading.answer


def controls(reviewer: Reviewer) -> list[str]:
    return [
        control.name for control in reviewer.page.controls if control.name[:2] in {"v:", "b:", "s:", "k:"}
    ]


# Unions and discriminators

FOO = obj(name={"type": "string"}, foo={"type": "boolean"})
BAR = obj(name={"type": "string"}, bar={"type": "boolean"})


def test_01_the_branch_that_matches_the_data_is_chosen() -> None:
    """rjsf#1661"""
    schema = {"$defs": {"foo": FOO, "bar": BAR}, "oneOf": [{"$ref": "#/$defs/foo"}, {"$ref": "#/$defs/bar"}]}
    reviewer = Reviewer.before(schema, {"name": "x", "bar": False})
    assert "v:/~1/bar" in controls(reviewer)
    assert reviewer.send().answer == {"name": "x", "bar": False}


def test_02_branches_with_the_same_keys_are_told_apart_by_their_constant() -> None:
    """rjsf#2069"""
    schema = {"oneOf": [obj(lorem={"const": "first"}), obj(lorem={"const": "second"})]}
    assert untouched(schema, {"lorem": "second"}) == {"lorem": "second"}


def test_04_typing_never_switches_a_nested_branch() -> None:
    """rjsf#1288"""
    inner = {
        "oneOf": [
            obj(kind={"const": "a"}, text={"type": "string"}),
            obj(kind={"const": "b"}, text={"type": "string"}),
        ]
    }
    schema = {"oneOf": [obj(kind={"const": "x"}, inner=inner), obj(kind={"const": "y"})]}
    reviewer = Reviewer.before(schema, {"kind": "x", "inner": {"kind": "b", "text": ""}})
    reviewer.press("refresh", **{"v:/~0/inner/~1/text": "a"})
    assert reviewer.send().answer == {"kind": "x", "inner": {"kind": "b", "text": "a"}}


COMPONENTS = {
    "anyOf": [
        {
            "oneOf": [obj(kind={"const": "a"}), obj(kind={"const": "b"}, n={"type": "integer"})],
            "discriminator": {"propertyName": "kind"},
        },
        {"type": "null"},
    ]
}


def test_05_a_nullable_discriminated_union_offers_null_and_every_kind() -> None:
    """rjsf#4380"""
    reviewer = Reviewer.before(COMPONENTS, None)
    assert reviewer.send().answer is None
    reviewer.press("refresh", **{"s:": "value"})
    reviewer.press("refresh", **{"b:": "1"})
    assert reviewer.send(**{"v:/~1/n": "5"}).answer == {"kind": "b", "n": 5}


def test_06_null_can_be_chosen_in_a_union() -> None:
    """rjsf#4896"""
    assert Reviewer.before(COMPONENTS, {"kind": "a"}).send(**{"s:": "null"}).answer is None


def test_07_switching_gives_the_whole_new_branch() -> None:
    """rjsf#4314"""
    schema = {"oneOf": [obj(increment=obj()), obj(reset=obj(count={"type": "integer"}))]}
    reviewer = Reviewer.before(schema, {"increment": {}})
    reviewer.press("refresh", **{"b:": "1"})
    assert reviewer.send(**{"v:/~1/reset/count": "3"}).answer == {"reset": {"count": 3}}
    reviewer.press("refresh", **{"b:": "0"})
    assert reviewer.send().answer == {"increment": {}}


def test_08_properties_of_the_first_branch_leave_with_it() -> None:
    """rjsf#2183, jdorn/json-editor#318, json-editor#1272"""
    schema = {
        "oneOf": [
            {**obj(kind={"const": "a"}, x={"type": "string"}), "additionalProperties": False},
            {**obj(kind={"const": "b"}, y={"type": "string"}), "additionalProperties": False},
        ]
    }
    reviewer = Reviewer.before(schema, {"kind": "a", "x": "1"})
    reviewer.press("refresh", **{"b:": "1"})
    reading = reviewer.send(**{"v:/~1/y": "2"})
    assert (reading.answer, reading.errors) == ({"kind": "b", "y": "2"}, ())


def test_10_the_constant_of_an_inner_branch_is_there_again_after_coming_back() -> None:
    """rjsf#4449"""
    schema = {"oneOf": [obj(kind={"const": "a"}, n={"const": 7}), obj(kind={"const": "b"})]}
    reviewer = Reviewer.before(schema, {"kind": "a", "n": 7})
    reviewer.press("refresh", **{"b:": "1"})
    reviewer.press("refresh", **{"b:": "0"})
    assert reviewer.send().answer == {"kind": "a", "n": 7}


def test_12_one_mistake_in_a_union_is_one_error() -> None:
    """rjsf#3466, #3828, #2584, #1768"""
    schema = {"oneOf": [obj(kind={"const": name}, n={"type": "integer", "minimum": 5}) for name in "abcde"]}
    reading = Reviewer.before(schema, {"kind": "c", "n": 1}).send()
    assert [(error.pointer, error.code) for error in reading.errors] == [("/n", "minimum")]


def test_13_a_tag_is_found_without_a_discriminator_keyword() -> None:
    """rjsf#2205, #3512"""
    schema = {
        "anyOf": [
            obj(kind={"const": "a"}, v={"type": "string"}),
            obj(kind={"const": "b"}, v={"type": "string"}),
        ]
    }
    assert untouched(schema, {"kind": "b", "v": ""}) == {"kind": "b", "v": ""}
    assert ">B</label>" in Reviewer.before(schema, {"kind": "b", "v": ""}).html


def test_14_15_existing_data_and_constants_decide_not_the_order() -> None:
    """jsonforms#1273, #2407"""
    schema = {"oneOf": [obj(type={"const": "Gitlab"}), obj(type={"const": "Github"})]}
    assert untouched(schema, {"type": "Github"}) == {"type": "Github"}


def test_16_defaults_of_another_branch_do_not_leak_in() -> None:
    """jsonforms#1634, #1400"""
    schema = {
        "oneOf": [
            obj([], kind={"const": "a"}, x={"type": "string", "default": "leak"}),
            obj(kind={"const": "b"}),
        ]
    }
    reviewer = Reviewer.before(schema, {"kind": "a"})
    reviewer.press("refresh", **{"b:": "1"})
    assert reviewer.send().answer == {"kind": "b"}


def test_17_data_that_is_not_valid_yet_still_picks_by_tag() -> None:
    """json-editor#815, jdorn/json-editor#414, #795, #709"""
    schema = {
        "oneOf": [
            obj(kind={"const": "a"}, n={"type": "integer"}),
            obj(kind={"const": "b"}, n={"type": "integer"}),
        ]
    }
    reviewer = Reviewer.before(schema, {"kind": "b"})
    assert "s:/~1/n" in controls(reviewer)
    reviewer.press("set:value:/~1/n")
    assert reviewer.send(**{"v:/~1/n": "4"}).answer == {"kind": "b", "n": 4}


def test_21_branches_of_one_type_can_be_chosen_and_null_too() -> None:
    """django-jsonform#181, #167"""
    schema = {
        "anyOf": [{"type": "string", "title": "Name"}, {"type": "string", "title": "Id"}, {"type": "null"}]
    }
    reviewer = Reviewer.before(schema, "x")
    reviewer.press("refresh", **{"b:": "1"})
    assert reviewer.send(**{"v:/~1": "y"}).answer == "y"
    assert reviewer.send(**{"s:": "null"}).answer is None


def test_22_the_tag_is_drawn_once() -> None:
    """estuary/ui#528, iii-hq/workers PR#271"""
    schema = {
        "oneOf": [obj(kind={"const": "a"}), obj(kind={"const": "b"})],
        "discriminator": {"propertyName": "kind"},
    }
    names = controls(Reviewer.before(schema, {"kind": "b"}))
    assert set(names) == {"b:"}


def test_23_the_mapping_of_a_discriminator_is_honoured() -> None:
    """estuary/ui#1002"""
    schema = {
        "$defs": {
            "A": obj([], kind={"type": "string"}, n={"type": "integer"}),
            "B": obj([], kind={"type": "string"}, n={"type": "integer"}),
        },
        "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {"one": "#/$defs/A", "two": "#/$defs/B", "deux": "#/$defs/B"},
        },
    }
    assert "v:/~1/kind" in controls(Reviewer.before(schema, {"kind": "deux", "n": 1}))


# Nullable, missing, empty, default

NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_24_a_nullable_string_is_one_field_with_a_switch() -> None:
    """rjsf#4843, django-pydantic-field#65, ngx-formly#4054"""
    reviewer = Reviewer.before(NULLABLE, "x")
    assert set(controls(reviewer)) == {"v:", "s:"}
    assert "Option 1" not in reviewer.html


def test_25_a_nullable_list_is_drawn() -> None:
    """koumoul vjsf#479"""
    schema = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    assert untouched(schema, ["a"]) == ["a"]
    assert untouched(schema, None) is None


@pytest.mark.parametrize(("value", "default"), [("", "x"), (0, 5), (False, True), (None, "x"), ([], ["x"])])
def test_27_a_default_never_replaces_a_value(value: Any, default: Any) -> None:
    """rjsf#471, #1370, PR#4745"""
    kinds = {"type": ["string", "integer", "boolean", "null"], "default": default}
    schema = (
        {"type": "array", "items": {"type": "string"}, "default": default}
        if isinstance(value, list)
        else kinds
    )
    assert untouched(obj(a=schema), {"a": value}) == {"a": value}
    assert untouched(obj([], a=schema), {}) == {}


def test_28_null_at_the_root_and_the_type_null() -> None:
    """rjsf#2469, #1232, jsonforms#2207"""
    assert untouched({"type": ["string", "null"], "default": "x"}, None) is None
    assert untouched({"type": "null"}, None) is None
    assert untouched(obj(a={"type": "null"}), {"a": None}) == {"a": None}


@pytest.mark.parametrize(
    "schema", [{"type": "number"}, {"type": "integer"}, {"type": "integer", "enum": [0, 1]}]
)
def test_30_an_empty_number_is_an_error_and_not_zero(schema: Any) -> None:
    """jdorn/json-editor#244, #519, json-editor#1175, django-jsonform#12"""
    reading = Reviewer.before(schema).send(**{"v:": ""} if "enum" not in schema else {})
    assert len(reading.errors) == 1


def test_32_a_default_of_null_on_a_number_is_no_error() -> None:
    """jedison#54"""
    schema = obj([], n={"anyOf": [{"type": "number"}, {"type": "null"}], "default": None})
    assert untouched(schema, {}) == {}
    assert untouched(schema, {"n": None}) == {"n": None}


def test_34_a_required_boolean_can_be_false_and_can_be_unset() -> None:
    """rjsf#338, #48, ui-schema#210, json-editor#1004"""
    reviewer = Reviewer.before(obj(ok={"type": "boolean"}))
    assert [error.code for error in reviewer.send().errors] == ["choose"]
    assert reviewer.send(**{"v:/ok": "1"}).answer == {"ok": False}


# Types, numbers, strings


def test_35_lists_booleans_and_numbers_stay_what_they_are_when_another_is_edited() -> None:
    """agent-inbox, inbox-item-input.tsx"""
    args = {"to": ["a"], "urgent": False, "n": 3, "text": "x"}
    schema = obj(
        to={"type": "array", "items": {"type": "string"}},
        urgent={"type": "boolean"},
        n={"type": "integer"},
        text={"type": "string"},
    )
    reading = Reviewer.at(tool_card(schema, args)).send(**{f"v:{AT}/text": "y", f"v:{AT}/n": "4"})
    assert reading.answer["edited_action"]["args"] == {"to": ["a"], "urgent": False, "n": 4, "text": "y"}


def test_36_a_plain_question_of_any_shape_is_a_card_with_an_answer() -> None:
    """agent-inbox-langgraph-example#1, agent-chat-ui#147, #85, deep-agents-ui#55, open_deep_research#66"""
    card = cards.build(cards.CardRequest("t", "", "Plain question?", {"type": "string"}))
    assert card.title == "Plain question?"
    reading = Reviewer.at(card, "answer").send(**{"v:": "{not json"})
    assert reading.answer == "{not json"
    unknown = cards.build(cards.CardRequest("t", "", {"x": [1]}, True))
    assert Reviewer.at(unknown, "answer").send(**{"v:/~0": '{"ok": 1.0}'}).answer == '{"ok": 1.0}'
    reviewer = Reviewer.at(unknown, "answer")
    reviewer.press("refresh", **{"b:": "1"})
    assert reviewer.send(**{"v:/~1": '{"ok": 1.0}'}).answer == {"ok": 1.0}


def test_38_integers_are_sent_as_integers_and_whole_floats_stay_floats() -> None:
    """mcp inspector#154, PR#1164, fastmcp#1159"""
    assert type(Reviewer.before({"type": "integer"}).send(**{"v:": "5"}).answer) is int
    assert repr(untouched({"type": "number"}, 1.0)) == "1.0"
    assert untouched({"type": "integer", "enum": [1, 2]}, 2) == 2


@pytest.mark.parametrize(("typed", "value"), [("2.0", 2.0), ("3.10", 3.1), ("0.001", 0.001), ("3.14", 3.14)])
def test_39_decimals_can_be_typed_and_are_numbers(typed: str, value: float) -> None:
    """rjsf#674, #433, #1106, #319, #61"""
    assert repr(Reviewer.before({"type": "number"}).send(**{"v:": typed}).answer) == repr(value)


def test_39_a_number_ending_in_a_point_is_an_error_and_not_a_guess() -> None:
    """electather/media-manager#664"""
    assert Reviewer.before({"type": "number"}).send(**{"v:": "1."}).errors


@pytest.mark.parametrize("value", ["a\nb", "\na", "a\n", "a\r\nb", "a\rb", "\r\n"])
def test_40_line_breaks_of_a_plain_string_survive(value: str) -> None:
    """json-editor#1217, jdorn/json-editor#150"""
    assert (
        untouched(obj(name={"type": "string"}, other={"type": "string"}), {"name": value, "other": ""})[
            "name"
        ]
        == value
    )


@pytest.mark.parametrize(
    "value", ["10:00", "10:00:00Z", "2026-01-01T10:00:00", "2026-01-01T10:00:00.123456+05:30"]
)
def test_42_times_keep_their_offset_or_its_absence(value: str) -> None:
    """rjsf#3930, #622, jsonform#407"""
    for form in ("time", "date-time"):
        assert untouched({"type": "string", "format": form}, value) == value


def test_42_a_date_that_is_no_date_is_still_shown() -> None:
    assert untouched({"type": "string", "format": "date"}, "tomorrow") == "tomorrow"


# Lists, maps, recursion, tuples


def test_43_44_deleting_edits_and_errors_follow_the_item() -> None:
    """rjsf#1046, #2385, #1487, #821, #195, react-json-form#69"""
    reviewer = Reviewer.before({"type": "array", "items": {"type": "integer"}}, [1, 2, 3])
    reviewer.press("del:/0", **{"v:/2": "33"})
    assert reviewer.send().answer == [2, 33]


def test_45_a_map_is_edited_without_losing_keys() -> None:
    """rjsf#1099, #4999, #5097, #4763, #1382, django-jsonform#183"""
    schema = {"type": "object", "additionalProperties": {"type": "string", "title": "Overrides nothing"}}
    reviewer = Reviewer.before(schema, {"a": "1", "b": "2"})
    reading = reviewer.send(**{"k:/0": ""})
    assert [error.code for error in reading.errors] == ["key-missing"]
    assert reading.answer == {"": "1", "b": "2"}
    assert reviewer.send(**{"k:/0": "length"}).answer == {"length": "1", "b": "2"}


def test_46_a_map_is_drawn() -> None:
    """jsonforms#2310, #2492"""
    assert "k:/0" in controls(
        Reviewer.before({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1})
    )


CATEGORY = {
    "$defs": {
        "Category": obj(
            ["name"],
            name={"type": "string"},
            parent={"anyOf": [{"$ref": "#/$defs/Category"}, {"type": "null"}]},
        )
    },
    "$ref": "#/$defs/Category",
}


def test_47_recursion_is_drawn_as_far_as_it_goes() -> None:
    """json-editor#754, #1615, #1256, jedison#45, jsonforms#2449, django-jsonform#101, react-json-form#91"""
    value = {"name": "a", "parent": {"name": "b", "parent": None}}
    assert untouched(CATEGORY, value) == value
    reviewer = Reviewer.before(CATEGORY, value)
    reviewer.press("refresh", **{"s:/parent/parent": "value"})
    assert reviewer.send(**{"v:/parent/parent/name": "c"}).answer == {
        "name": "a",
        "parent": {"name": "b", "parent": {"name": "c"}},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"oneOf": [{"$ref": "#"}, {"type": "string"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"type": "array", "items": {"$ref": "#"}},
        {"properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    ],
)
def test_47_a_schema_that_points_at_itself_never_hangs(schema: Any) -> None:
    values: tuple[Any, ...] = (None, "x", {"a": {"a": {}}}, [[[]]])
    for value in values:
        assert untouched_or_refused(schema, value) == value


def untouched_or_refused(schema: Any, value: Any) -> Any:
    return Reviewer.before(schema, value).send().answer


def test_49_what_stands_beside_a_reference_wins() -> None:
    """jsonforms#2570, pydantic-ai#6591, openapi-python-client#1432"""
    schema = {
        "$defs": {"Currency": {"enum": ["EUR", "USD"], "description": "Any currency"}},
        **obj([], currency={"$ref": "#/$defs/Currency", "default": "USD", "description": "Of the refund"}),
    }
    html = Reviewer.before(schema, {}).html
    assert "Of the refund" in html
    assert "Any currency" not in html
    assert "USD" in html


# Names, security, speech


@pytest.mark.parametrize(
    "key",
    [
        "a/b",
        "a.b",
        "a~b",
        "a[0]",
        "",
        " ",
        "__proto__",
        "constructor",
        "é\n",
        "\x00",
        "<b>",
        "v:",
        "~0",
        "~+",
    ],
)
def test_51_any_key_is_a_field_and_its_errors_are_shown(key: str) -> None:
    """jsonforms#1952, #1631, #1696, #2335, #2496, rjsf#3452, jsonform#439"""
    schema = obj(**{key: {"type": "integer", "minimum": 5}})
    reviewer = Reviewer.before(schema, {key: 1})
    reading = reviewer.send()
    assert reading.answer == {key: 1}
    assert [error.code for error in reading.errors] == ["minimum"]
    assert "Enter 5 or more" in reviewer.html.split('class="form"')[1]


def test_53_nothing_is_evaluated_and_nothing_is_inline() -> None:
    """rjsf#1464, #1121, #3543, #4618, #4012, ajv#2175: strict CSP"""
    html = Reviewer.before(obj(a={"type": "string", "description": "{{ 1 }}"}), {"a": "x"}).html
    assert "<script" not in html
    assert " style=" not in html
    assert " onclick" not in html


def test_54_errors_are_tied_to_their_controls() -> None:
    """rjsf#959, #1481, json-editor PR#1476"""
    reviewer = Reviewer.before(obj(n={"type": "integer"}), {"n": 1})
    reviewer.send(**{"v:/n": "x"})
    control = next(control for control in reviewer.page.controls if control.name == "v:/n")
    assert control.attrs["aria-describedby"] in reviewer.page.ids
    assert 'role="alert"' in reviewer.html


def test_55_a_swap_gives_the_focus_to_one_control_and_every_id_stands_once() -> None:
    """htmx#523, #75, #3659, #3329, #2905: what a button redraws says where the focus goes"""
    schema = {"type": "array", "items": obj(name={"type": "string"}, n={"type": "integer"})}
    reviewer = Reviewer.before(schema, [{"name": "a", "n": 1}, {"name": "b", "n": 2}])
    for button in ("add:", "up:/1", "down:/1", "raw:", "form:", "del:/0"):
        reviewer.press(button)
        focused = [control for control in reviewer.page.controls if "autofocus" in control.attrs]
        assert len(focused) == 1, button
        assert all(reviewer.page.ids)
        assert len(set(reviewer.page.ids)) == len(reviewer.page.ids)


def test_56_labels_in_the_place_of_a_type_check_do_not_hide_the_field() -> None:
    """pydantic#7500, #3947, #10850, #11043"""
    one = obj(kind={"const": "a"}, n={"type": "integer"})
    other = obj(kind={"const": "b"}, n={"type": "integer"})
    schema = {
        "$defs": {"One": one, "Other": other},
        **obj(pick={"anyOf": [{"$ref": "#/$defs/One"}, {"$ref": "#/$defs/Other"}]}),
    }
    form = cards.build_input_form(schema, form_id="f", initial={"pick": {"kind": "b", "n": 1}})
    for label in ("b", "Other"):
        problem = {"loc": ("pick", label, "n"), "msg": "too small", "type": "x"}
        assert [error.path for error in cards.place_errors(form, [problem])] == ["/pick/~1/n"]
    twice = {"loc": ("pick", "b", "n", "function-after[check(), int]"), "msg": "no", "type": "x"}
    (error,) = cards.place_errors(form, [twice])
    assert (error.path, error.message) == ("/pick/~1/n", "no (function-after[check(), int])")


def test_57_decisions_come_from_the_schema_and_not_from_a_list() -> None:
    """langchainjs#11356"""
    schema = {
        "oneOf": [obj(type={"const": "approve"}), obj(type={"const": "escalate"}, to={"type": "string"})]
    }
    card = cards.build(cards.CardRequest("t", "tool", {}, schema))
    assert [choice.verdict for choice in card.choices] == ["approve", "escalate"]
    assert Reviewer.at(card, "escalate").send(**{"v:/to": "Bo"}).answer == {"type": "escalate", "to": "Bo"}
    assert "Escalate" not in str(render.render_arguments(card))
