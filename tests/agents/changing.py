"""Agents whose code is another one after a deploy, which a test plays by a flag (see ``effects``)."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from tests.agents import effects
from tests.agents.graphs import State
from tests.agents.playbook import Playbook
from tests.agents.tools import GATED, drop, pay


def gatekeeper() -> Any:
    """Ask for each call; after the deploy in another mode, or nobody any more."""
    mode: Any = "batched" if effects.is_set("mode_switched") else "per_call"
    gates = {} if effects.is_set("gates_gone") else GATED
    gate = HumanInTheLoopMiddleware(interrupt_on=gates, interrupt_mode=mode)
    return create_agent(Playbook(), [pay, drop], middleware=[gate])


def mover() -> Any:
    """Ask two questions side by side; after the deploy one of their nodes, or both, have other names."""

    def ask(state: State) -> State:
        effects.happened("asked")
        return {"answers": [interrupt("which?")]}

    names = ["left", "right"]
    for place, name in enumerate(names):
        if effects.is_set(f"renamed_{name}"):
            names[place] = f"new_{name}"
    graph = StateGraph(State)
    for name in names:
        graph.add_node(name, ask)
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    return graph
