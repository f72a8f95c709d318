"""Questions of every shape, in plain graphs and beside tools; in sync nodes and in async ones."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import operator
import threading
import time
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.agents import effects


class Parcel(BaseModel):
    """A Pydantic object."""

    weight: float = Field(gt=0)
    to: str


class Slip(TypedDict):
    """A typed mapping."""

    number: int
    note: str


@dataclasses.dataclass
class Stamp:
    """A dataclass."""

    cents: int
    colour: Literal["red", "blue"] = "red"


class Colour(enum.Enum):
    """An enumeration."""

    RED = "red"


class Handle:
    """What no store takes: it has no form but its name."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class State(TypedDict, total=False):
    """What the graphs remember."""

    ask: str
    answers: Annotated[list[Any], operator.add]


VALUES: dict[str, Callable[[], Any]] = {
    "text": lambda: "Is it late?",
    "empty text": lambda: "",
    "list": lambda: [1, "two", [3.5, None]],
    "empty list": list,
    "mapping": lambda: {"deep": {"er": [True, False]}},
    "empty mapping": dict,
    "mapping with other keys": lambda: {1: "one", (2, 3): "two"},
    "none": lambda: None,
    "whole number": lambda: 7,
    "huge number": lambda: 10**40,
    "fraction": lambda: 0.1,
    "truth": lambda: True,
    "nan": lambda: float("nan"),
    "infinity": lambda: float("-inf"),
    "decimal": lambda: Decimal("1.50"),
    "bytes": lambda: b"\x00\xff",
    "date": lambda: dt.date(2026, 11, 30),
    "moment": lambda: dt.datetime(2026, 11, 30, 12, 55, tzinfo=dt.UTC),
    "time": lambda: dt.time(12, 55),
    "span": lambda: dt.timedelta(days=1, microseconds=1),
    "uuid": lambda: uuid.UUID(int=7),
    "path": lambda: PurePosixPath("/a/b"),
    "set": lambda: {"b", "a"},
    "enumeration": lambda: Colour.RED,
    "pydantic": lambda: Parcel(weight=1.5, to="Ann"),
    "dataclass": lambda: Stamp(cents=90),
    "message": lambda: HumanMessage("hello"),
    "half a character": lambda: "\ud800 and NUL \x00",
    "unseen": lambda: {"type": "approval_v9", "ui": {"widget": "slider"}, "payload": [{"op": "wipe"}]},
    "handle": Handle,
}
SCHEMAS: dict[str, Any] = {
    "pydantic": Parcel,
    "typed mapping": Slip,
    "dataclass": Stamp,
    "literal": Literal["yes", "no"],
    "whole number": int,
    "list of objects": list[Parcel],
    "schema": {
        "type": "object",
        "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 10}},
        "required": ["score"],
        "additionalProperties": False,
    },
}


def _one_node(function: Any, state: Any = State) -> Any:
    graph = StateGraph(state)
    graph.add_node("ask", function)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph


def _shown(state: State) -> State:
    return {"answers": [interrupt(VALUES[state["ask"]]())]}


def _typed(state: State) -> State:
    answer = interrupt({"fill in": state["ask"]}, response_schema=SCHEMAS[state["ask"]])
    effects.happened("answered", type=type(answer).__name__, answer=repr(answer))
    return {"answers": [repr(answer)]}


def shower() -> Any:
    """Ask with the value that has the name it is given."""
    return _one_node(_shown)


def typed() -> Any:
    """Ask for an answer of the type that has the name it is given."""
    return _one_node(_typed)


def typed_on_a_loop() -> Any:
    """Ask the same in an async node."""

    async def ask(state: State) -> State:
        return _typed(state)

    return _one_node(ask)


def asker_on_a_loop() -> Any:
    """Ask twice in one async node, and once more in a loop until the answer is a number."""

    async def ask(state: State) -> State:
        first, second = interrupt("one"), interrupt("two")
        number, turn = None, 0
        while not isinstance(number, int):
            number, turn = interrupt(f"a number ({turn})"), turn + 1
        return {"answers": [first, second, number]}

    return _one_node(ask)


def crowd_on_a_loop() -> Any:
    """Ask one question for each of many, side by side, in async nodes."""

    def spread(state: State) -> list[Send]:
        return [Send("ask", {"ask": str(number)}) for number in range(int(state["ask"]))]

    async def ask(state: State) -> State:
        return {"answers": [interrupt({"number": state["ask"]})]}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_conditional_edges(START, spread, ["ask"])
    graph.add_edge("ask", END)
    return graph


def breakpoints_on_a_loop() -> Any:
    """Stop before and after an async node."""

    async def act(state: State) -> State:
        effects.happened("act")
        return {"answers": ["acted"]}

    async def report(state: State) -> State:
        return {"answers": ["reported"]}

    graph = StateGraph(State)
    graph.add_node("act", act)
    graph.add_node("report", report)
    graph.add_edge(START, "act")
    graph.add_edge("act", "report")
    graph.add_edge("report", END)
    return graph.compile(interrupt_before=["act"], interrupt_after=["act"])


def stops_inside() -> Any:
    """Stop before and after a node of a subgraph, whose root graph shows nothing of it."""

    def act(state: State) -> State:
        effects.happened("act")
        return {"answers": ["acted"]}

    return _with_stops_inside(act)


def stops_inside_on_a_loop() -> Any:
    """Stop before and after an async node of a subgraph."""

    async def act(state: State) -> State:
        effects.happened("act")
        return {"answers": ["acted"]}

    return _with_stops_inside(act)


def _with_stops_inside(act: Any) -> Any:
    def report(state: State) -> State:
        return {"answers": ["reported"]}

    rooms = StateGraph(State)
    rooms.add_node("act", act)
    rooms.add_node("report", report)
    rooms.add_edge(START, "act")
    rooms.add_edge("act", "report")
    rooms.add_edge("report", END)
    graph = StateGraph(State)
    graph.add_node("rooms", rooms.compile(interrupt_before=["act"], interrupt_after=["act"]))
    graph.add_edge(START, "rooms")
    graph.add_edge("rooms", END)
    return graph


def house() -> Any:
    """Ask in two nodes of a subgraph, after a node with an effect and before one outside."""

    def enter(state: State) -> State:
        effects.happened("enter")
        return {"answers": ["entered"]}

    def first(state: State) -> State:
        effects.happened("first_began")
        return {"answers": [interrupt("first?")]}

    def second(state: State) -> State:
        return {"answers": [interrupt("second?")]}

    def leave(state: State) -> State:
        return {"answers": [interrupt("leave?")]}

    rooms = StateGraph(State)
    rooms.add_node("enter", enter)
    rooms.add_node("first", first)
    rooms.add_node("second", second)
    rooms.add_edge(START, "enter")
    rooms.add_edge("enter", "first")
    rooms.add_edge("first", "second")
    rooms.add_edge("second", END)

    class House(TypedDict, total=False):
        ask: str
        answers: list[Any]

    def gather(state: House) -> House:
        return {"answers": [*state["answers"], *leave({})["answers"]]}

    graph = StateGraph(House)
    graph.add_node("rooms", rooms.compile())
    graph.add_node("leave", gather)
    graph.add_edge(START, "rooms")
    graph.add_edge("rooms", "leave")
    graph.add_edge("leave", END)
    return graph


def old_hand() -> Any:
    """Ask in the legacy way: what may be done is told by four flags, and a list answers a list."""

    def ask(state: State) -> State:
        allowed = state["ask"].split()
        names = ("accept", "edit", "respond", "ignore")
        config = {f"allow_{name}": name in allowed for name in names}
        action = {"action": "file_report", "args": {"title": "Q3"}}
        (answer,) = interrupt([{"action_request": action, "config": config, "description": "A report"}])
        effects.happened(answer["type"], args=answer["args"])
        return {"answers": [answer]}

    return _one_node(ask)


def stops_beside_a_question() -> Any:
    """Stop inside a subgraph in one branch, and ask in another one, at once."""

    def ask(state: State) -> State:
        return {"answers": [interrupt("which?")]}

    return _with_a_stop_beside(ask)


def stops_beside_a_question_on_a_loop() -> Any:
    """Stop inside a subgraph in one branch, and ask in another one that is async, at once."""

    async def ask(state: State) -> State:
        return {"answers": [interrupt("which?")]}

    return _with_a_stop_beside(ask)


def stops_beside_a_question_deeper() -> Any:
    """Stop and ask at once, both within one node."""
    graph = StateGraph(State)
    graph.add_node("house", stops_beside_a_question().compile())
    graph.add_edge(START, "house")
    graph.add_edge("house", END)
    return graph


def stops_beside_trouble() -> Any:
    """Stop inside a subgraph in one branch, and fail in another one while the flag is set."""

    def attempt(state: State) -> State:
        time.sleep(0.2)  # the other branch is at its stop by then
        if effects.is_set("fail_node"):
            raise RuntimeError("the node does not work today")
        return {"answers": ["tried"]}

    return _with_a_stop_beside(attempt)


def _with_a_stop_beside(beside: Any) -> Any:
    def act(state: State) -> State:
        effects.happened("act")
        return {"answers": ["acted"]}

    rooms = StateGraph(State)
    rooms.add_node("act", act)
    rooms.add_edge(START, "act")
    rooms.add_edge("act", END)
    graph = StateGraph(State)
    graph.add_node("rooms", rooms.compile(interrupt_before=["act"]))
    graph.add_node("beside", beside)
    for name in ("rooms", "beside"):
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    return graph
