"""What is wrong is said at the right field, all at once, in words that mend it; nothing typed is lost."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from reviewer import cards
from tests.cards.making import SAMPLES, Reviewer, card_of, tool_card

AT = "/edited_action/args"


def told(reading: cards.Reading) -> dict[str, str]:
    return {error.pointer: error.message for error in reading.errors}


def test_all_errors_come_at_once_with_what_to_do() -> None:
    schema = {
        "type": "object",
        "properties": {
            "delay": {"type": "integer", "minimum": 0, "maximum": 120},
            "rate": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01},
            "subject": {"type": "string", "minLength": 3, "maxLength": 5},
            "code": {"type": "string", "pattern": "^A"},
            "to": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "ok": {"type": "boolean"},
            "half": {"type": "integer"},
        },
        "required": ["delay", "rate", "subject", "code", "to", "ok", "half"],
    }
    reading = Reviewer.before(schema).send(
        **{"v:/delay": "180", "v:/rate": "-1", "v:/subject": "too long", "v:/code": "B", "v:/half": "1.5"}
    )
    assert told(reading) == {
        "/delay": "Enter 120 or less",
        "/rate": "Enter more than 0",
        "/subject": "Enter 5 characters or fewer",
        "/code": "This must match the pattern ^A",
        "/to": "Add an item",
        "/ok": "Choose one",
        "/half": "Enter a whole number in digits",
    }


def test_the_summary_links_to_every_field_and_the_field_says_it_again() -> None:
    reviewer = Reviewer.at(card_of(SAMPLES["03_meeting_nested_arrays"]))
    reviewer.send(**{f"v:{AT}/duration": "9995", f"v:{AT}/attendees/1/name": ""})
    page = reviewer.page
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a" and "link" in (attrs.get("class") or "")]
    assert len(links) == 2
    assert all((link or "").removeprefix("#") in page.ids for link in links)
    assert "Attendees 2 › Name: Enter some text" in reviewer.html
    invalid = [control.name for control in page.controls if control.attrs.get("aria-invalid") == "true"]
    assert invalid == [f"v:{AT}/duration", f"v:{AT}/attendees/1/name"]
    for control in page.controls:
        if control.attrs.get("aria-invalid"):
            assert set((control.attrs["aria-describedby"] or "").split()) <= set(page.ids)


def test_errors_of_a_union_are_those_of_the_chosen_kind_only() -> None:
    reviewer = Reviewer.at(card_of(SAMPLES["06_pay_nested_discriminator"]))
    reading = reviewer.send(**{f"v:{AT}/split/0/~0/cvc": "x", f"v:{AT}/split/0/~0/number": "1"})
    assert set(told(reading)) == {f"{AT}/split/0/cvc", f"{AT}/split/0/number"}


def test_the_api_gets_pointers_into_the_answer() -> None:
    schema = card_of(SAMPLES["06_pay_nested_discriminator"]).request.response_schema
    args = {
        "amount": 1,
        "method": {"kind": "iban", "bic": None},
        "split": [{"kind": "card", "number": "1", "cvc": "123"}],
    }
    answer = {"type": "edit", "edited_action": {"name": "pay", "args": args}}
    errors = cards.validate(answer, schema)
    assert [error.pointer for error in errors] == [f"{AT}/method/iban", f"{AT}/split/0/number"]
    assert errors[0].to_json()["message"] == "“iban” is missing"


@pytest.mark.parametrize(
    ("answer", "pointers"),
    [
        ({"type": "approve"}, []),
        ({"type": "reject"}, []),
        ({"type": "reject", "message": None}, ["/message"]),
        ({"type": "respond"}, ["/message"]),
        ({"type": "edit", "edited_action": {"name": "other", "args": {}}}, ["/edited_action/name"]),
        ({"type": "nonsense"}, [""]),
        ("approve", [""]),
        (None, [""]),
        ([], [""]),
        ({}, ["/type"]),
    ],
)
def test_an_answer_that_is_no_decision_is_told_where_it_fails(answer: Any, pointers: list[str]) -> None:
    schema = card_of(SAMPLES["02_refund_decimal_enum"]).request.response_schema
    found = [error.pointer for error in cards.validate(answer, schema)]
    assert found[: len(pointers)] == pointers if pointers else found == []


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("", "integer"),
        ("1.0", "integer"),
        ("1e3", "integer"),
        ("٣", "integer"),
        ("0x10", "integer"),
        ("1_000", "integer"),
        ("9" * 401, "integer"),
        ("--1", "integer"),
        ("NaN", "integer"),
    ],
)
def test_what_is_not_a_whole_number_is_an_error_and_kept(typed: str, code: str) -> None:
    reviewer = Reviewer.before({"type": "integer"})
    reading = reviewer.send(**{"v:": typed})
    assert [error.code for error in reading.errors] == [code]
    assert f'value="{typed}"' in reviewer.html


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("12", 12),
        ("-0.5", -0.5),
        ("1e5", 1e5),
        ("0.1", 0.1),
        ("1.0", 1.0),
        ("3.10", 3.1),
        ("9007199254740993", 2**53 + 1),
    ],
)
def test_a_number_is_read_as_it_is_written(typed: str, value: float) -> None:
    reading = Reviewer.before({"type": "number"}).send(**{"v:": f" {typed} "})
    assert reading.errors == ()
    assert repr(reading.answer) == repr(value)


@pytest.mark.parametrize(
    "typed", ["", "1,5", "NaN", "Infinity", "1e999", ".5", "5.", "0x1", "1 2", "٣", "01"]
)
def test_what_is_not_a_number_is_an_error(typed: str) -> None:
    assert [error.code for error in Reviewer.before({"type": "number"}).send(**{"v:": typed}).errors] == [
        "number"
    ]


def test_a_number_that_would_be_rounded_is_refused_with_what_would_be_sent() -> None:
    reading = Reviewer.before({"type": "number"}).send(**{"v:": "0.12345678901234567890123"})
    assert [error.message for error in reading.errors] == [
        "Enter a number with fewer digits; this one would be rounded to 0.12345678901234568"
    ]


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("", "json-empty"),
        ("{", "json"),
        ('{"a": 1, "a": 2}', "json-duplicate"),
        ("[NaN]", "json-constant"),
        ("[Infinity]", "json-constant"),
        ("[" * 5000, "json-deep"),
        ("[" * 200 + "]" * 200, "json-deep"),
        ("1" * 5000, "number"),
        ("{'a': 1}", "json"),
        ("[1e999]", "number"),
        ('{"a": 0.12345678901234567890123}', "digits"),
    ],
)
def test_json_is_read_strictly(typed: str, code: str) -> None:
    assert [error.code for error in Reviewer.before(True).send(**{"v:": typed}).errors] == [code]


def test_a_schema_the_engine_cannot_read_still_takes_an_answer() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(["}}, "required": ["a"]}
    reading = Reviewer.before(schema).send(**{"v:/a": "x"})
    assert reading.errors == ()
    assert reading.answer == {"a": "x"}


def test_a_slow_pattern_is_checked_at_once() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    assert [error.code for error in cards.validate("a" * 40 + "!", schema)] == ["pattern"]


class Card(BaseModel):
    kind: Literal["card"]
    number: Annotated[str, Field(min_length=12)]


class Iban(BaseModel):
    kind: Literal["iban"]
    iban: Annotated[str, Field(min_length=4)]


class Place(BaseModel):
    city: Annotated[str, Field(min_length=2)]


class Meeting(BaseModel):
    tagged: Annotated[Card | Iban, Field(discriminator="kind")]
    untagged: Card | Iban
    value: int | str
    place: Place | None = None
    replicas: dict[str, int]
    people: Annotated[list[Place], Field(max_length=1)]


ANSWER: dict[str, Any] = {
    "tagged": {"kind": "iban", "iban": "x"},
    "untagged": {"kind": "card", "number": "1"},
    "value": [],
    "place": {"city": "U"},
    "replicas": {"eu": "x"},
    "people": [{"city": "Ulm"}, {"city": "B"}],
}


def pydantic_errors(model: Any, answer: Any) -> list[dict[str, Any]]:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(model).validate_python(answer)
    return [
        dict(error)
        for error in caught.value.errors(include_url=False, include_context=False, include_input=False)
    ]


def test_errors_of_the_agents_own_check_land_on_the_fields_a_reviewer_sees() -> None:
    form = cards.build_input_form(Meeting.model_json_schema(), form_id="f", initial=ANSWER)
    problems = pydantic_errors(Meeting, ANSWER)
    placed = cards.place_errors(form, problems)
    assert {error.path for error in placed} == {
        "/tagged/~1/iban",
        "/untagged/~0/number",
        "/value",
        "/place/city",
        "/replicas/0",
        "/people",
    }
    assert {error.pointer for error in placed} == {
        "/tagged/iban",
        "/untagged/number",
        "/value",
        "/place/city",
        "/replicas/eu",
        "/people",
    }


def test_errors_of_a_kind_nobody_chose_are_dropped_while_the_chosen_one_has_its_own() -> None:
    form = cards.build_input_form(Meeting.model_json_schema(), form_id="f", initial=ANSWER)
    problems = [problem for problem in pydantic_errors(Meeting, ANSWER) if problem["loc"][0] == "untagged"]
    assert len(problems) > 1
    assert [error.path for error in cards.place_errors(form, problems)] == ["/untagged/~0/number"]


@pytest.mark.parametrize(
    "problem",
    [
        {"loc": ("nowhere", 3, "deep"), "msg": "m", "type": "t"},
        {"loc": (), "msg": "m", "type": "t"},
        {"loc": None, "msg": "m", "type": "t"},
        {"loc": ["place", "city", "function-after[check(), str]"], "msg": "m", "type": "t"},
        {"msg": "m"},
    ],
)
def test_no_error_of_the_agent_is_ever_lost(problem: dict[str, Any]) -> None:
    form = cards.build_input_form(Meeting.model_json_schema(), form_id="f", initial=ANSWER)
    placed = cards.place_errors(form, [problem])
    assert len(placed) == 1
    assert placed[0].message.startswith("m")


def test_an_error_at_a_key_of_digits_is_told_at_that_key_however_it_is_written() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "number"}}
    form = cards.build_input_form(schema, form_id="f", initial={"7": 1.5, "x": 2})
    for key in (7, "7"):
        problem = {"loc": (key,), "msg": "no", "type": "x"}
        assert [error.path for error in cards.place_errors(form, [problem])] == ["/0"]


def test_keys_that_are_not_allowed_are_told_where_they_can_be_removed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    reviewer = Reviewer.before(schema, {"a": "x", "b": 1})
    assert [(error.code, error.path) for error in reviewer.send().errors] == [("additionalProperties", "/~+")]
    assert reviewer.send(**{"v:/~+": "{}"}).answer == {"a": "x"}


def test_a_refused_edit_is_reopened_with_the_errors_at_its_arguments() -> None:
    card = card_of(SAMPLES["02_refund_decimal_enum"])
    refused = {
        "type": "edit",
        "edited_action": {"name": "refund", "args": {**card.request.args, "amount": "1.23456"}},
    }
    form = card.open("edit", draft=refused)
    problem = {
        "loc": ("edit", "edited_action", "args", "amount"),
        "msg": "no more than 2 decimal places",
        "type": "x",
    }
    placed = cards.place_errors(form, [problem])
    assert [(error.pointer, error.path) for error in placed] == [(f"{AT}/amount", f"{AT}/amount")]
    other = {"loc": ("edited_action", "args", "amount"), "msg": "no", "type": "x"}
    assert [error.pointer for error in cards.place_errors(form, [other])] == [f"{AT}/amount"]


def test_arguments_of_a_known_tool_are_told_by_name() -> None:
    schema = {
        "type": "object",
        "properties": {"order_id": {"type": "string", "title": "Order Id"}},
        "required": ["order_id"],
    }
    reviewer = Reviewer.at(tool_card(schema, {}))
    reviewer.press(f"set:value:{AT}/order_id")
    reading = reviewer.send(**{f"v:{AT}/order_id": "x"})
    assert reading.errors == ()
    assert ">Order id<" in reviewer.html
