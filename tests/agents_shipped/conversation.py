"""Drives one shipped agent through a run, as a worker does: start, look at the pauses, answer one by one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt

from agents_runtime.agents.effects import FILE_NAME
from agents_runtime.loading import Graph
from agents_runtime.reviewed import rehearsal


class Conversation:
    """A run of a graph on a checkpointer of its own; ``is_async`` runs it on an event loop."""

    def __init__(self, graph: Graph, *, home: Path, is_async: bool = False) -> None:
        self._graph = graph.copy(update={"checkpointer": InMemorySaver()})
        self._config: Any = {"configurable": {"thread_id": "a-thread"}}
        self._home = home
        self._is_async = is_async

    def give(self, value: Any) -> None:
        """Give an input or a ``Command`` and run until the graph waits or ends."""
        with rehearsal():
            if self._is_async:
                asyncio.run(self._graph.ainvoke(value, self._config))
            else:
                self._graph.invoke(value, self._config)

    def answer(self, tool: str, decision: dict[str, Any]) -> None:
        """Answer the pause of one tool, keyed by its id."""
        self.give(Command(resume={self.pauses[tool].id: decision}))

    def approve(self, tool: str) -> None:
        """Approve what is proposed."""
        self.answer(tool, {"type": "approve"})

    def reject(self, tool: str, message: str | None = None) -> None:
        """Refuse, with a reason or without."""
        self.answer(tool, {"type": "reject"} | ({} if message is None else {"message": message}))

    def edit(self, tool: str, **changes: Any) -> None:
        """Approve with some arguments changed."""
        arguments = self.proposed(tool) | changes
        self.answer(tool, {"type": "edit", "edited_action": {"name": tool, "args": arguments}})

    @property
    def pauses(self) -> dict[str, Interrupt]:
        """The pauses that wait for an answer, by tool."""
        return {pause.value["name"]: pause for pause in self._graph.get_state(self._config).interrupts}

    def proposed(self, tool: str) -> dict[str, Any]:
        """Return the arguments that the agent proposes."""
        arguments: dict[str, Any] = self.pauses[tool].value["args"]
        return arguments

    @property
    def is_over(self) -> bool:
        """Say whether nothing is left to do."""
        state = self._graph.get_state(self._config)
        return not state.next and not state.tasks

    @property
    def said(self) -> str:
        """The last thing the agent said."""
        messages = self._graph.get_state(self._config).values["messages"]
        return next(one.text for one in reversed(messages) if isinstance(one, AIMessage))

    @property
    def effects(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools that really ran, with the arguments they ran with."""
        file = self._home / FILE_NAME
        lines = file.read_text().splitlines() if file.exists() else []
        return [(line["tool"], line["arguments"]) for line in map(json.loads, lines)]
