"""The fate of a pause: what a reading of the thread, and the step before it, mean for one open pause.

Pure: it reads a pause and a thread, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents_runtime.attempts import have_all_ended, have_open_positions, have_unrun_positions
from agents_runtime.canonical import Json
from agents_runtime.models import Pause
from agents_runtime.states import PauseStatus
from agents_runtime.thread_state import Step, ThreadState

WENT_ON = "The agent went on without this answer."
NOT_TAKEN = "The agent was given the answer, but did not take it."
NOT_RUN = "The agent took the answer and went on, but it did not run every call that was allowed."
BRICKED = (
    "The agent's own code refused this batch of answers and will refuse any other one: {error} "
    "It cannot be asked anew without doing something twice. The run can only be cancelled."
)
ASKS_OF_CALLS = frozenset({Pause.Kind.PER_CALL, Pause.Kind.BATCHED})


@dataclass(frozen=True)
class Fate:
    """A new status and why."""

    status: PauseStatus
    error: str = ""
    problems: Json = ()


def fate_of(pause: Pause, state: ThreadState, step: Step | None) -> Fate | None:
    """Return what became of an open pause, or None if it stays as it is."""
    if pause.status == PauseStatus.IN_DOUBT:
        return None
    if not _is_pending(pause, state):
        return _vanished(pause, state, step)
    if pause.status != PauseStatus.DELIVERING:
        return None
    return _still_there(pause, state, step)


def _is_pending(pause: Pause, state: ThreadState) -> bool:
    if pause.kind == Pause.Kind.STATIC:
        return pause.interrupt_id == state.breakpoint_id
    return pause.interrupt_id in state.pending


def _vanished(pause: Pause, state: ThreadState, step: Step | None) -> Fate | None:
    """The thread no longer waits for it: it was answered, or the thread went another way."""
    if pause.status in {PauseStatus.PENDING, PauseStatus.ANSWERED}:
        return Fate(PauseStatus.SUPERSEDED, WENT_ON)
    if pause.status == PauseStatus.FAILED and not have_all_ended(pause):
        return None if state.tasks else Fate(PauseStatus.SUPERSEDED, WENT_ON)
    if pause.kind == Pause.Kind.BATCHED and state.tasks and have_open_positions(pause):
        if error := _error_for(pause, step):
            return Fate(PauseStatus.FAILED, error)
        if not _was_last_try(pause, step):
            return None
    if pause.kind in ASKS_OF_CALLS and have_unrun_positions(pause):
        return Fate(PauseStatus.SUPERSEDED, NOT_RUN)
    return Fate(PauseStatus.DELIVERED)


def _was_last_try(pause: Pause, step: Step | None) -> bool:
    """Say whether the agent was given this answer often enough without moving: it may ask otherwise now."""
    return step is not None and step.is_last_try and getattr(step.delivery, "pause_id", None) == pause.pk


def _still_there(pause: Pause, state: ThreadState, step: Step | None) -> Fate | None:
    """Its answer was on its way, and the thread shows it still."""
    raised = state.pending.get(pause.interrupt_id)
    was_answered = raised is not None and raised.was_answered
    if was_answered and state.errors and can_ask_again(pause, state):
        told = "; ".join(state.errors)
        return Fate(PauseStatus.REFUSED, told, [{"pointer": "", "message": told}])
    if step is None or getattr(step.delivery, "pause_id", None) != pause.pk:
        return Fate(PauseStatus.FAILED, "; ".join(state.errors) or NOT_TAKEN) if was_answered else None
    outcome = step.outcome
    if outcome.refusal:
        problems = [
            {"pointer": problem.pointer, "message": problem.message, **detail}
            for problem, detail in zip(outcome.refusal, outcome.refusal_detail, strict=True)
        ]
        told = "; ".join(problem.message for problem in outcome.refusal)
        return Fate(PauseStatus.REFUSED, told, problems)
    error = _error_for(pause, step)
    if error and was_answered and pause.kind == Pause.Kind.BATCHED:
        error = BRICKED.format(error=error)
    if error or was_answered or step.is_last_try:
        return Fate(PauseStatus.FAILED, error or NOT_TAKEN)
    return None


def can_ask_again(pause: Pause, state: ThreadState) -> bool:
    """Say whether a batch whose answers the agent refused can be asked anew without running anything twice.

    The task that asks must be alone in its step, since what its neighbours did would be done again, and no
    call of the batch may have started.
    """
    return pause.kind == Pause.Kind.BATCHED and len(state.tasks) == 1 and not pause.executions.exists()


def _error_for(pause: Pause, step: Step | None) -> str:
    if step is None:
        return ""
    stops = step.outcome.stops
    own = (stop.reason for stop in stops if stop.pause_id == pause.pk)
    beside = (stop.reason for stop in stops if stop.kind == "refused" and stop.pause_id is None)
    return next(own, "") or step.outcome.error or next(beside, "")
