"""What a thread's checkpoint says, what may be handed to its graph, and what came of that: in our own words.

Lives here: plain values that ``engine`` makes and ``steps`` and ``settling`` read. No LangGraph, and nothing
that asks the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from agents_runtime.canonical import Json
from agents_runtime.errors import Problem
from agents_runtime.messages import plain
from agents_runtime.models import RunStep


@dataclass(frozen=True)
class RaisedInterrupt:
    """An interrupt that waits for an answer now, as the graph raised it.

    ``namespace`` names the task of the root graph that shows it. ``was_answered`` says that the library has
    stored an answer and that the task raised an error afterwards: it still looks pending, but is not.
    """

    id: str
    value: object
    response_schema: Json
    namespace: str
    was_answered: bool = False


@dataclass(frozen=True)
class ThreadState:
    """One reading of a thread. ``tasks`` names those of the current step, the ones that are done included.

    A worker that dies just before it stores the next checkpoint leaves a step whose tasks are all done and
    whose next is empty: that thread is not finished, it has only to go on.
    """

    exists: bool
    checkpoint_id: str = ""
    values: object = None
    next: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    interrupts: tuple[RaisedInterrupt, ...] = ()
    errors: tuple[str, ...] = ()
    breakpoint_id: str = ""

    @cached_property
    def plain_values(self) -> Json:
        """The values as JSON; they may be many."""
        return plain(self.values)

    @property
    def is_at_breakpoint(self) -> bool:
        """Say whether a static breakpoint holds the thread; its id names the place where it does."""
        return bool(self.breakpoint_id)

    @property
    def is_finished(self) -> bool:
        """Say whether nothing is left to do: no next alone does not mean that."""
        return self.exists and not self.tasks and not self.next

    @property
    def pending(self) -> dict[str, RaisedInterrupt]:
        """The interrupts by id."""
        return {raised.id: raised for raised in self.interrupts}


@dataclass(frozen=True)
class Delivery:
    """What one step hands to the graph."""


@dataclass(frozen=True)
class GiveInput(Delivery):
    """A new turn."""

    value: Json


@dataclass(frozen=True)
class GiveAnswer(Delivery):
    """The answer to one pending interrupt."""

    pause_id: UUID
    interrupt_id: str
    value: Json


@dataclass(frozen=True)
class GoOn(Delivery):
    """Nothing new: run the tasks that are left."""

    pause_id: UUID | None = None


@dataclass(frozen=True)
class AskAgain(Delivery):
    """The agent refused a batch of answers and would refuse every other one: let it ask anew."""


@dataclass(frozen=True)
class CloseReviews(Delivery):
    """End what the thread waits for, and answer the model's unanswered calls, so that input can follow."""


@dataclass(frozen=True)
class GateStop:
    """The gate stopped a call. ``kind``: refused | held | in_doubt | cancelled | stale."""

    kind: str
    tool: str
    reason: str
    pause_id: UUID | None = None


@dataclass(frozen=True)
class Outcome:
    """How a step ended: in an error, with an answer that the agent's own check refused, or well.

    ``steps`` are those for the timeline that were not told while it went on.
    """

    error: str = ""
    refusal: tuple[Problem, ...] = ()
    refusal_detail: Sequence[Json] = ()
    stops: tuple[GateStop, ...] = ()
    steps: Sequence[RunStep] = ()


@dataclass(frozen=True)
class Step:
    """A step that was taken, counted within the epoch; the last try must not leave things as they were."""

    delivery: Delivery
    outcome: Outcome
    number: int = 0
    is_last_try: bool = False
