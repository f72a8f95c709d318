"""Input classes as people write them have a schema, on every Python version."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, Required

import pytest
from langchain_core.messages import AnyMessage
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph, add_messages
from langgraph.managed import RemainingSteps
from pydantic import BaseModel, Field

from agents_runtime.input_schemas import MESSAGES, for_people
from agents_runtime.loading import Graph
from agents_runtime.typed_inputs import input_schema


class Thing:
    """Has no JSON form."""


class Line(typing.TypedDict):
    """Part of an order; its price may be left out."""

    article: Literal["lamp", "pot"]
    price: NotRequired[Annotated[str, Field(pattern=r"^\d+\.\d\d$")]]


class Person(BaseModel):
    """A model among typed dictionaries."""

    name: str


class Order(typing.TypedDict, total=False):
    """As the standard library writes it."""

    order_id: Required[Annotated[str, Field(description="The order.")]]
    lines: list[Line]
    by_day: dict[str, Line | None]
    customer: Person
    messages: Annotated[list[AnyMessage], add_messages]
    steps: RemainingSteps


class Tree(typing.TypedDict):
    """Holds itself."""

    name: str
    children: list[Tree]


class Strange(typing.TypedDict):
    """One field of it has no JSON form."""

    name: str
    thing: Thing


@dataclass
class Form:
    """A dataclass with a typed dictionary in it."""

    line: Line
    things: list[Thing] = field(default_factory=list)
    note: str = ""


def _graph(state: type) -> Graph:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state)
    builder.add_node("node", lambda _: {})
    builder.add_edge(START, "node")
    return builder.compile()


def test_a_typed_dictionary_of_the_standard_library_has_a_schema() -> None:
    schema, formless = input_schema(_graph(Order))
    assert formless == ()
    assert schema["required"] == ["order_id"]
    assert schema["properties"]["order_id"]["description"] == "The order."
    assert "steps" not in schema["properties"]


def test_typed_dictionaries_inside_one_keep_their_fields() -> None:
    schema, _ = input_schema(_graph(Order))
    line = schema["$defs"]["Line"]
    assert schema["properties"]["lines"]["items"] == {"$ref": "#/$defs/Line"}
    assert {"$ref": "#/$defs/Line"} in schema["properties"]["by_day"]["additionalProperties"]["anyOf"]
    assert line["required"] == ["article"]
    assert line["properties"]["article"]["enum"] == ["lamp", "pot"]
    assert line["properties"]["price"]["pattern"] == r"^\d+\.\d\d$"


def test_its_conversation_is_still_known_as_one() -> None:
    schema, _ = input_schema(_graph(Order))
    reduced = for_people(schema, is_whole_state=True)
    assert reduced["properties"]["messages"] == MESSAGES
    assert set(reduced["$defs"]) == {"Line", "Person"}


def test_a_typed_dictionary_that_holds_itself_ends_somewhere() -> None:
    schema, formless = input_schema(_graph(Tree))
    assert formless == ()
    assert schema["properties"]["name"]["type"] == "string"


@pytest.mark.parametrize(("state", "name"), [(Strange, "thing"), (Form, "things")])
def test_a_field_without_a_json_form_takes_anything_and_the_others_are_kept(state: type, name: str) -> None:
    schema, formless = input_schema(_graph(state))
    assert formless == (name,)
    assert "type" not in schema["properties"][name]
    assert len(schema["properties"]) > 1


def test_the_defaults_of_a_dataclass_need_not_be_given() -> None:
    assert input_schema(_graph(Form))[0]["required"] == ["line"]


def test_a_function_of_the_functional_api_has_its_own_schema() -> None:
    @entrypoint()
    def double(given: dict[str, int]) -> int:
        return given["n"] * 2

    assert input_schema(double)[1] == ()
