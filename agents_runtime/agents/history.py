"""What a script reads from the messages so far: the task, and what came of each call.

It sees only what a real model would see: the text of tool messages. Does not live here: what a script says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

# How LangChain's middleware tells the model of a decision.
EDITED = re.compile(r"Executed instead: \S+ with arguments ")
REJECTED = "User rejected the tool call for "
REASON = re.compile(r"with reason: (.*)", re.DOTALL)
RESULT_AFTER_EDIT = "Tool response:"


@dataclass(frozen=True)
class Outcome:
    """One call and what came of it.

    ``ran`` are the arguments that were used, None if a person refused the call; ``reason``: why, without its
    full stop, for it becomes part of a sentence. ``text`` is what the tool returned, or the person who
    answered in its place.
    """

    tool: str
    proposed: Mapping[str, Any]
    text: str
    ran: Mapping[str, Any] | None
    reason: str = ""

    @property
    def was_rejected(self) -> bool:
        """Say whether a person refused the call."""
        return self.ran is None

    @property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Return the arguments that a person changed: name -> (proposed, used)."""
        ran = self.ran if self.ran is not None else self.proposed
        names = [name for name in {**self.proposed, **ran} if self.proposed.get(name) != ran.get(name)]
        return {name: (self.proposed.get(name), ran.get(name)) for name in names}

    @property
    def result(self) -> dict[str, Any]:
        """Return the tool's result; empty if it is no JSON object, as when a person stated it in words."""
        try:
            found = json.loads(self.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Turn:
    """Everything since the last message of a person."""

    task: str
    outcomes: tuple[Outcome, ...]

    @classmethod
    def read(cls, messages: Sequence[BaseMessage]) -> Turn:
        """Read the turn that the messages end with."""
        start = max((place for place, one in enumerate(messages) if isinstance(one, HumanMessage)), default=0)
        here = messages[start:]
        answers = {one.tool_call_id: one for one in here if isinstance(one, ToolMessage)}
        outcomes = [
            _outcome(call["name"], call["args"], answers[call["id"] or ""])
            for one in here
            if isinstance(one, AIMessage)
            for call in one.tool_calls
            if call["id"] in answers
        ]
        task = here[0].text if here else ""
        return cls(task, tuple(outcomes))

    def field(self, name: str) -> str:
        """Return what stands after ``name:`` in the task, or "" if it is not there."""
        found = re.search(rf"^{re.escape(name)}: *(.*)$", self.task, re.MULTILINE)
        return found[1].strip() if found else ""

    def last(self, tool: str) -> Outcome | None:
        """Return the latest outcome of a tool, or None if it was not called in this turn."""
        return next((outcome for outcome in reversed(self.outcomes) if outcome.tool == tool), None)

    def all(self, tool: str) -> tuple[Outcome, ...]:
        """Return every outcome of a tool in this turn."""
        return tuple(outcome for outcome in self.outcomes if outcome.tool == tool)


def _outcome(tool: str, proposed: Mapping[str, Any], answer: ToolMessage) -> Outcome:
    text = answer.text
    if answer.status == "error" and text.startswith(REJECTED):
        reason = REASON.search(text)
        return Outcome(
            tool, proposed, text, ran=None, reason=reason[1].strip().removesuffix(".") if reason else ""
        )
    edited = EDITED.search(text)
    if not edited:
        return Outcome(tool, proposed, text, ran=proposed)
    ran, _ = json.JSONDecoder().raw_decode(text, edited.end())
    return Outcome(tool, proposed, text.partition(RESULT_AFTER_EDIT)[2].strip(), ran=ran)
