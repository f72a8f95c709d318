"""Plain graphs whose nodes guard their effects with ``once``. Flags (``effects``) make them fail or die."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from agents_runtime.models import Run
from agents_runtime.once import once
from tests.agents import effects
from tests.agents.graphs import State


def _pay(amount: Any, key: str) -> dict[str, Any]:
    effects.happened("once_began", key=key)
    if effects.is_set("fail_once"):
        raise RuntimeError("the bank does not answer")
    if effects.is_set("exit_once"):
        raise SystemExit("torn down")
    effects.happened("once", amount=amount)
    if effects.is_set("die_once"):
        effects.flag("die_once").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"receipt": amount}


def _work(state: State) -> State:
    if effects.is_set("read_in_node"):
        effects.happened("read_in_node", runs=Run.objects.count())
    amount = interrupt("How much?")
    args = {"amount": "more" if effects.is_set("other_args") else amount}
    with once("invoice-7781", args) as effect:
        if not effect.done:
            if effects.is_set("ask_inside"):
                interrupt("Really?")
            effect.result(_pay(amount, effect.key))
    return {"answers": [effect.value, interrupt("And now?")]}


def payer() -> Any:
    """Ask, pay once, and ask again in the same node, which then runs once more."""
    return _one_node(_work)


def payer_on_a_loop() -> Any:
    """Do the same on an event loop."""

    async def work(state: State) -> State:
        await asyncio.sleep(0)
        return _work(state)

    return _one_node(work)


def twins() -> Any:
    """Two tasks, side by side, do the same thing under one key."""

    def spread(state: State) -> list[Send]:
        return [Send("work", {"ask": "1"}), Send("work", {"ask": "2"})]

    def work(state: State) -> State:
        with once("the same", None) as effect:
            if not effect.done:
                effects.happened("once")
        return {"answers": [effect.value]}

    graph = StateGraph(State)
    graph.add_node("work", work)
    graph.add_conditional_edges(START, spread, ["work"])
    graph.add_edge("work", END)
    return graph


def _one_node(function: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("work", function)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph
