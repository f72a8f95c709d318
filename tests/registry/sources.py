"""Python sources of small agents, as authors write them."""

from __future__ import annotations

ECHO = """
from langgraph.graph import START, MessagesState, StateGraph


def answer(state: MessagesState) -> dict:
    return {"messages": [{"role": "assistant", "content": "hello"}]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
graph = builder.compile()


def make():
    return builder


def make_with_config(config):
    assert config == {"configurable": {}}
    return graph


def make_with_option(config=None):
    assert config is None
    return graph


async def make_later():
    return graph
"""

GATED = '''
from typing import Literal

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.tools import tool
from langgraph.prebuilt import ToolRuntime


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


@tool
def wipe(path: str, level: Literal["soft", "hard"], runtime: ToolRuntime) -> str:
    """Wipe a disk.

    Nothing is left.
    """
    return "wiped"


@tool
def look(path: str) -> str:
    """Look at a disk."""
    return "a disk"


wipe.metadata = {{"title": "Wipe {{path}}"}}
graph = create_agent(
    Model(messages=iter([])),
    tools=[wipe, look],
    middleware=[HumanInTheLoopMiddleware({gates}, interrupt_mode="{mode}")],
)
'''


def gated(gates: str = '{"wipe": True}', *, mode: str = "per_call") -> str:
    """Return an agent with a gated and an ungated tool."""
    return GATED.format(gates=gates, mode=mode)


ROOMS = """
import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict):
    answers: Annotated[list, operator.add]


def ask(state: State) -> State:
    return {"answers": [interrupt("one?")]}


inner = StateGraph(State)
inner.add_node("inner_ask", ask)
inner.add_edge(START, "inner_ask")

outer = StateGraph(State)
outer.add_node("rooms", inner.compile())
outer.add_node("outer_ask", ask)
outer.add_edge(START, "rooms")
outer.add_edge("rooms", "outer_ask")
graph = outer.compile(interrupt_before=["outer_ask"], interrupt_after=["rooms"])
"""
"""A graph with a subgraph and breakpoints: a thread of it can wait in four ways."""

TEAM = '''
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.tools import tool


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


@tool
def wipe(path: str) -> str:
    """Wipe a disk."""
    return "wiped"


inner_gate = HumanInTheLoopMiddleware({"wipe": True}, interrupt_mode="per_call")
outer_gate = HumanInTheLoopMiddleware({"wipe": True}, interrupt_mode="per_call")
worker = create_agent(Model(messages=iter([])), tools=[wipe], middleware=[inner_gate])


@tool
def delegate(task: str) -> str:
    """Let the worker do it."""
    return str(worker.invoke({"messages": [("user", task)]}))


graph = create_agent(Model(messages=iter([])), tools=[wipe, delegate], middleware=[outer_gate])
'''
"""An agent and its subagent that gate the same tool."""
