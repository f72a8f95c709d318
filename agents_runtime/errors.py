"""Errors of the agents' side. Doors map them to answers: NotFound 404, WrongState 409, InvalidInput 422."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input: where (a JSON pointer, "" for the whole) and what, in plain words."""

    pointer: str
    message: str


class RuntimeProblem(Exception):
    """Base of every error that the runtime raises on purpose; its text is fit for a reader."""


class NotFound(RuntimeProblem):
    """No such agent, run, pause or execution."""


class WrongState(RuntimeProblem):
    """The thing has moved on: it exists, but what was asked is not possible now."""


class InvalidInput(RuntimeProblem):
    """The input does not fit; ``problems`` says where and why."""

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems or (Problem("", message),)


class AgentUnavailable(WrongState):
    """The agent is known, but its code does not import or is no longer listed."""


class StaleEpoch(RuntimeProblem):
    """A worker that lost its lock tried to write; nothing was written."""
