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
