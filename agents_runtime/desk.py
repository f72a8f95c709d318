"""The desk: what the agents' side tells the humans' side, and in which shape.

The humans' side implements ``Desk`` and names its class in ``settings.COUNTERSIGN_DESK`` as a dotted
path, as Django names its storages. Except ``run_progressed``, every method is called inside the
transaction that makes the change it tells of: if it raises, the change does not happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from agents_runtime.canonical import Json
from agents_runtime.errors import Problem
from agents_runtime.models import Pause, Run, ToolExecution


@dataclass(frozen=True)
class ReviewRequest:
    """One thing to decide at a pause.

    ``response_schema`` is always a JSON Schema (``True`` where anything goes); an answer that fits it is what
    ``runs.answer`` takes for this ``position``. ``arguments`` is what will happen for a tool call, or the raw
    interrupt value for anything else. ``said`` is the agent's own text around the request: untrusted.
    ``risk``, ``queue``, ``expires_after`` (seconds) and ``on_expiry`` are hints of the agent's author, empty
    where there are none (see ``listings.Hints``).
    """

    position: int
    kind: str  # tool_call | question | continue
    arguments: Json
    response_schema: Json
    tool: str = ""
    tool_call_id: str = ""
    description: str = ""
    said: str = ""
    title_template: str = ""
    args_schema: Json = None
    risk: str = ""
    queue: str = ""
    expires_after: int | None = None
    on_expiry: str = ""
    refused_answer: Json = None
    refusal: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class OpenedPause:
    """A new pause with everything it asks, in order of position."""

    pause: Pause
    requests: Sequence[ReviewRequest]


@dataclass(frozen=True)
class Progress:
    """What a run produced since the last report: new text tokens by message, and steps that finished."""

    tokens: Sequence[tuple[str, str]] = ()  # (message id, text that was added)
    steps: Sequence[str] = field(default=())  # keys of the steps that finished since


class Desk(Protocol):
    """What the humans' side does when something happens to a run."""

    def run_started(self, run: Run) -> None:
        """A run was accepted and queued."""

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """A run did something worth showing; best effort, outside any transaction, at most ten a second."""

    def run_paused(self, run: Run, opened: Sequence[OpenedPause]) -> None:
        """The run waits at new interrupts; every request becomes a review task."""

    def pause_closed(self, pause: Pause) -> None:
        """A pause was delivered, refused, superseded, withdrawn, or failed; its status says which."""

    def delivery_started(self, pause: Pause) -> None:
        """An answer is on its way to the agent and can no longer be changed."""

    def tool_started(self, execution: ToolExecution) -> None:
        """A gated tool is about to run."""

    def tool_finished(self, execution: ToolExecution) -> None:
        """A gated tool ended: succeeded, raised, suspended, asserted or abandoned."""

    def run_in_doubt(self, run: Run, executions: Sequence[ToolExecution]) -> None:
        """A worker died while these gated tools ran: nobody knows whether they took effect."""

    def run_resumed(self, run: Run) -> None:
        """A run that waited, failed or was in doubt works again."""

    def run_finished(self, run: Run) -> None:
        """The run came to its end."""

    def run_failed(self, run: Run) -> None:
        """The run stopped with an error; ``run.error`` says why."""

    def run_cancelled(self, run: Run) -> None:
        """Somebody cancelled the run; its open pauses were withdrawn."""

    def tool_refused(self, run: Run, tool: str, reason: str) -> None:
        """The gate stopped a gated tool that had no decision for exactly this call."""

    def thread_deleted(self, run: Run) -> None:
        """The checkpoints of a run that is over were deleted; ``run.thread_deleted_by`` says by whom."""

    def time_passed(self) -> int:
        """The scheduler's tick, outside any transaction: do what is due by the clock; return how much was."""


@cache
def get_desk() -> Desk:
    """Return the desk that ``settings.COUNTERSIGN_DESK`` names."""
    return cast(Desk, import_string(settings.COUNTERSIGN_DESK)())
