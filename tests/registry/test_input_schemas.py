"""The input of any graph becomes something that a person can fill in, and that the graph then takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NotRequired

import jsonschema_rs
import pytest
from langchain_core.messages import AnyMessage
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agents_runtime.input_schemas import MESSAGES, for_people
from agents_runtime.listings import SHIPPED, read
from agents_runtime.loading import Graph, load

Talk = Callable[..., Any]


class Address(BaseModel):
    """Where."""

    city: str


class Order(TypedDict):
    """An input of its own."""

    order_id: Annotated[str, Field(description="The order.")]
    address: Address
    messages: NotRequired[Annotated[list[AnyMessage], add_messages]]


class OrderState(Order):
    """The state behind it."""

    summary: str


class Chat(BaseModel):
    """A state given as a model."""

    topic: str
    messages: Annotated[list[AnyMessage], add_messages] = []


class Noted(MessagesState):
    """A chat with a result."""

    summary: str


def _graph(state: type[Any], **more: Any) -> Graph:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state, **more)
    builder.add_node("node", lambda _: {})
    builder.add_edge(START, "node")
    return builder.compile()


def _schema(graph: Graph, *, is_whole_state: bool) -> Any:
    return for_people(graph.get_input_jsonschema(), is_whole_state=is_whole_state)


def test_a_conversation_asks_for_a_role_and_a_text() -> None:
    schema = _schema(_graph(MessagesState), is_whole_state=True)
    assert schema == {"type": "object", "properties": {"messages": MESSAGES}, "required": ["messages"]}
    assert len(json.dumps(schema)) < 500


def test_what_the_schema_of_a_conversation_lets_through_the_graph_takes() -> None:
    graph = _graph(MessagesState)
    given = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]}
    assert jsonschema_rs.is_valid(_schema(graph, is_whole_state=True), given)
    assert [message.text for message in graph.invoke(given)["messages"]] == ["hi", "yes?"]


def test_of_a_whole_state_no_single_field_is_asked_for() -> None:
    schema = _schema(_graph(Noted), is_whole_state=True)
    assert set(schema["properties"]) == {"messages", "summary"}
    assert "required" not in schema
    assert schema["minProperties"] == 1


def test_an_input_schema_of_its_own_is_kept_and_its_own_conversation_hidden() -> None:
    schema = _schema(_graph(OrderState, input_schema=Order), is_whole_state=False)
    assert list(schema["properties"]) == ["order_id", "address"]
    assert schema["required"] == ["order_id", "address"]
    assert schema["properties"]["order_id"]["description"] == "The order."
    assert set(schema["$defs"]) == {"Address"}


def test_a_model_as_state_is_reduced_as_well() -> None:
    schema = _schema(_graph(Chat), is_whole_state=False)
    assert list(schema["properties"]) == ["topic"]
    assert "$defs" not in schema


@pytest.mark.parametrize("schema", [True, {}, {"type": "integer"}, {"$ref": "#/$defs/A", "$defs": {"A": {}}}])
def test_an_input_that_is_no_object_of_fields_stays_as_it_is(schema: Any) -> None:
    assert for_people(schema, is_whole_state=True) == schema


def test_definitions_that_refer_to_each_other_are_kept() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}, "leaf": {"$ref": "#/$defs/Leaf"}},
    }
    definitions = {"Node": node, "Leaf": {"type": "string"}, "Unused": {"type": "null"}}
    schema = for_people(
        {"properties": {"tree": {"$ref": "#/$defs/Node"}}, "required": ["tree"], "$defs": definitions},
        is_whole_state=False,
    )
    assert set(schema["$defs"]) == {"Node", "Leaf"}


def test_an_argument_named_ref_is_no_reference() -> None:
    schema = {"properties": {"$ref": {"type": "string"}, "x": {"type": "string"}}, "required": ["x"]}
    assert set(for_people(schema, is_whole_state=False)["properties"]) == {"$ref", "x"}


@pytest.mark.parametrize("name", [entry.name for entry in read(SHIPPED).entries])
def test_every_shipped_agent_comes_with_an_example_that_fits(name: str) -> None:
    entry = next(one for one in read(SHIPPED).entries if one.name == name)
    schema = _schema(load(entry), is_whole_state=False)
    assert "messages" not in schema["properties"]
    jsonschema_rs.validate(schema, entry.example_input)


def test_the_shipped_forms_keep_the_authors_order(tmp_path: Path) -> None:
    entry = next(one for one in read(SHIPPED).entries if one.name == "refunds")
    assert list(_schema(load(entry), is_whole_state=False)["properties"]) == ["order_id", "complaint"]
