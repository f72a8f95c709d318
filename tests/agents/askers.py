"""Agents that ask again: a node that says what was wrong, a tool that takes less than its schema says."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from pydantic import Field

from tests.agents import effects
from tests.agents.graphs import State
from tests.agents.playbook import Playbook

AGE: Any = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


def asker_again() -> Any:
    """Ask for an age until it is one, and say apart what was wrong."""

    def ask(state: State) -> State:
        question: dict[str, Any] = {"question": "How old?"}
        while True:
            answer = interrupt(question, response_schema=AGE)
            if answer["age"] >= 0:
                return {"answers": [answer]}
            question = {"question": "How old?", "error": "The **age** must be 0 or more."}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph


@tool
def transfer(
    to: str, amount: Annotated[Decimal, Field(max_digits=8, decimal_places=2)], days: list[int]
) -> str:
    """Transfer money on some days."""
    effects.happened("transfer", to=to, amount=str(amount), days=days)
    return f"transferred {amount} to {to}"


def exacting() -> Any:
    """Its tool takes cents and no less; no JSON Schema says so."""
    allowed: Any = {"transfer": {"allowed_decisions": ["approve", "edit", "reject"]}}
    gate = HumanInTheLoopMiddleware(interrupt_on=allowed, interrupt_mode="per_call")
    return create_agent(Playbook(), [transfer], middleware=[gate])
