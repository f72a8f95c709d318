"""What a form sends is accepted by the type it was made from, as the agent checks it at resume."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from langchain.agents.middleware.human_in_the_loop import (
    ApproveDecision,
    EditDecision,
    RejectDecision,
    RespondDecision,
)
from pydantic import BaseModel, Field, HttpUrl, TypeAdapter

from reviewer import cards
from tests.cards.making import Reviewer, tool_card

AT = "/edited_action/args"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Person(BaseModel):
    name: str
    email: str | None = None


class ByCard(BaseModel):
    kind: Literal["card"]
    number: str


class ByIban(BaseModel):
    kind: Literal["iban"]
    iban: str


class Everything(BaseModel):
    amount: Decimal
    level: Level
    due: dt.date
    at: dt.datetime
    took: dt.timedelta
    id: uuid.UUID
    url: HttpUrl | None
    people: list[Person]
    by_name: dict[str, Person]
    point: tuple[int, float]
    tags: set[Literal["a", "b", "c"]]
    pay: Annotated[ByCard | ByIban, Field(discriminator="kind")]
    either: int | str
    free: dict[str, Any]
    maybe: bool | None = None


VALUE: dict[str, Any] = {
    "amount": "19.90",
    "level": 2,
    "due": "2026-12-01",
    "at": "2026-12-01T10:00:00+01:00",
    "took": "PT1H",
    "id": "7b0a1d9e-3f7f-4b7b-9a3a-0f2f9c8e5a11",
    "url": "https://example.org/",
    "people": [{"name": "Ann", "email": None}],
    "by_name": {"x/y": {"name": "Bo"}},
    "point": [1, 2.0],
    "tags": ["b"],
    "pay": {"kind": "iban", "iban": "DE00"},
    "either": "42",
    "free": {"a": [1, 1.0, None]},
    "maybe": False,
}


def test_a_value_of_every_type_goes_through_the_form_and_the_agents_check() -> None:
    card = tool_card(Everything.model_json_schema(), VALUE)
    reviewer = Reviewer.at(card)
    reviewer.press(f"add:{AT}/people")
    reading = reviewer.send(
        **{
            f"v:{AT}/people/n1/name": "Cy",
            f"v:{AT}/tags": "2",
            f"v:{AT}/level": "0",
            f"v:{AT}/point/1": "2.5",
            f"s:{AT}/maybe": "null",
            f"s:{AT}/url": "null",
        }
    )
    assert reading.errors == ()
    args = reading.answer["edited_action"]["args"]
    assert args == {
        **VALUE,
        "people": [{"name": "Ann", "email": None}, {"name": "Cy"}],
        "tags": ["c"],
        "level": 1,
        "point": [1, 2.5],
        "maybe": None,
        "url": None,
    }
    accepted = TypeAdapter(Everything).validate_python(args)
    assert accepted.amount == Decimal("19.90")
    assert accepted.either == "42"


def test_a_number_in_place_of_text_is_a_choice_and_never_a_conversion() -> None:
    card = tool_card(Everything.model_json_schema(), VALUE)
    reviewer = Reviewer.at(card)
    reviewer.press("refresh", **{f"b:{AT}/either": "0"})
    args = reviewer.send(**{f"v:{AT}/either/~0": "42"}).answer["edited_action"]["args"]
    assert args["either"] == 42
    assert TypeAdapter(Everything).validate_python(args).either == 42


@pytest.mark.parametrize(
    ("verdict", "model", "typed"),
    [
        ("approve", ApproveDecision, {}),
        ("edit", EditDecision, {f"v:{AT}/n": "2"}),
        ("reject", RejectDecision, {"v:/message": "no"}),
        ("reject", RejectDecision, {}),
        ("respond", RespondDecision, {"v:/message": "yes"}),
    ],
)
def test_every_decision_is_what_the_library_calls_one(
    verdict: str, model: Any, typed: dict[str, str]
) -> None:
    args_schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    reading = Reviewer.at(tool_card(args_schema, {"n": 1}), verdict).send(**typed)
    assert reading.errors == ()
    assert TypeAdapter(model).validate_python(reading.answer) == reading.answer


def test_what_the_agents_check_refuses_comes_back_to_the_field() -> None:
    class Strict(BaseModel):
        amount: Annotated[Decimal, Field(decimal_places=2)]

    answer = {"amount": "1.23456"}
    assert cards.validate(answer, Strict.model_json_schema()) == ()
    form = cards.build_input_form(Strict.model_json_schema(), form_id="f", initial=answer)
    with pytest.raises(ValueError) as caught:
        TypeAdapter(Strict).validate_python(answer)
    problems = caught.value.errors(include_url=False, include_context=False)  # type: ignore[attr-defined]
    assert [error.path for error in cards.place_errors(form, problems)] == ["/amount"]
