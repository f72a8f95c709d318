"""Plain graphs: questions with and without a schema, several in one node, loops, a breakpoint, a subgraph."""

from __future__ import annotations

import json
import operator
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel, Field, field_validator

from tests.agents import effects


class Verdict(BaseModel):
    """What the inspector wants to know."""

    verdict: Literal["pass", "fail"]
    score: int = Field(ge=0, le=10)


class Receipt(BaseModel):
    """A number whose rule no JSON Schema tells."""

    number: int

    @field_validator("number")
    @classmethod
    def is_even(cls, number: int) -> int:
        """Refuse odd numbers."""
        if number % 2:
            raise ValueError("receipts have even numbers")
        return number


class State(TypedDict, total=False):
    """What the graphs remember."""

    ask: str
    answers: Annotated[list[Any], operator.add]


def inspector() -> Any:
    """Ask one typed question."""

    def inspect(state: State) -> State:
        verdict = interrupt({"question": state.get("ask", "?")}, response_schema=Verdict)
        return {"answers": [verdict.model_dump()]}

    return _one_node(inspect)


def picky() -> Any:
    """Ask for a number, and refuse some that fit the schema."""

    def ask(state: State) -> State:
        receipt = interrupt("Which receipt?", response_schema=Receipt)
        return {"answers": [receipt.number]}

    return _one_node(ask)


def asker() -> Any:
    """Ask two untyped questions in one node, with values that are no JSON."""

    def ask(state: State) -> State:
        first = interrupt({"price": Decimal("1.50"), "raw": b"\x00\xff", "nan": float("nan")})
        effects.happened("asked", first=first)
        return {"answers": [first, interrupt("and then?")]}

    return _one_node(ask)


def parrot() -> Any:
    """Ask whatever JSON it is given, in whatever shape."""

    def ask(state: State) -> State:
        return {"answers": [interrupt(json.loads(state["ask"]))]}

    return _one_node(ask)


def stubborn() -> Any:
    """Ask until the answer is a number."""

    def ask(state: State) -> State:
        prompt = "How many?"
        while True:
            answer = interrupt(prompt)
            if isinstance(answer, int):
                return {"answers": [answer]}
            prompt = f"{answer!r} is no number. How many?"

    return _one_node(ask)


def breakpoint_before() -> Any:
    """Stop before the second node."""

    def prepare(state: State) -> State:
        return {"answers": ["prepared"]}

    def act(state: State) -> State:
        effects.happened("act")
        return {"answers": ["acted"]}

    graph = StateGraph(State)
    graph.add_node("prepare", prepare)
    graph.add_node("act", act)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "act")
    graph.add_edge("act", END)
    return graph.compile(interrupt_before=["act"])


def breakpoint_after() -> Any:
    """Stop after the first node."""

    def prepare(state: State) -> State:
        return {"answers": ["prepared"]}

    def act(state: State) -> State:
        effects.happened("act")
        if effects.is_set("fail_node"):
            raise RuntimeError("the node does not work today")
        return {"answers": ["acted"]}

    graph = StateGraph(State)
    graph.add_node("prepare", prepare)
    graph.add_node("act", act)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "act")
    graph.add_edge("act", END)
    return graph.compile(interrupt_after=["prepare"])


def crowd() -> Any:
    """Ask one question for each of many, side by side."""

    def spread(state: State) -> list[Send]:
        return [Send("ask", {"ask": str(number)}) for number in range(int(state["ask"]))]

    def ask(state: State) -> State:
        return {"answers": [interrupt({"number": state["ask"]})]}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_conditional_edges(START, spread, ["ask"])
    graph.add_edge("ask", END)
    return graph


def failing() -> Any:
    """Raise while the flag is set, after an answer."""

    def ask(state: State) -> State:
        answer = interrupt("Go on?")
        if effects.is_set("fail_node"):
            raise RuntimeError("the node does not work today")
        effects.happened("node")
        return {"answers": [answer]}

    return _one_node(ask)


def _one_node(function: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("ask", function)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph
