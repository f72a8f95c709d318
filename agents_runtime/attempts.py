"""Reading and ending attempts from outside the gate: doubt, giving up, what is left of a batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import models

from agents_runtime.canonical import decode
from agents_runtime.compiled import SOME_ID, Compiled
from agents_runtime.desk import get_desk
from agents_runtime.direct import database_now
from agents_runtime.errors import Problem
from agents_runtime.models import Pause, Run, ToolExecution
from agents_runtime.payloads import allowed_arguments
from agents_runtime.states import ExecutionStatus, PauseStatus

HAPPENED = frozenset({ExecutionStatus.SUCCEEDED, ExecutionStatus.ASSERTED})
NOBODY_KNOWS = "The run ended while it ran; nobody knows whether it took effect."
_locked_started = Compiled(
    lambda run_id: ToolExecution.objects.select_for_update().filter(
        run=run_id, status=ExecutionStatus.STARTED
    ),
    SOME_ID,
)
_of_pause = Compiled(
    lambda pause_id: ToolExecution.objects.filter(pause=pause_id).only("position", "status"), SOME_ID
)
LOST = "The worker ended while the tool ran; nobody knows whether it took effect."


@dataclass(frozen=True)
class Doubts:
    """The attempts that wait for a person to say what happened, and those of them that nobody knew of yet."""

    all: Sequence[ToolExecution]
    new: Sequence[ToolExecution]


NO_DOUBTS = Doubts(all=(), new=())


def mark_doubts(run: Run) -> Doubts:
    """Mark attempts that were started and are run by nobody now; the caller holds the thread's lock."""
    started = _locked_started.rows(run.pk)
    lost = [execution for execution in started if execution.in_doubt_since is None]
    for execution in lost:
        execution.in_doubt_since = run.moment
        execution.save(update_fields=["in_doubt_since"])
        _doubt_pause(execution.pause)
    return Doubts(all=started, new=lost)


def are_in_doubt(run: Run) -> bool:
    """Say whether an attempt of the run waits for a person to say what happened."""
    return in_doubt(run).exists()


def in_doubt(run: Run) -> models.QuerySet[ToolExecution]:
    """Return the attempts that wait for a person to say what happened."""
    return ToolExecution.objects.filter(run=run, status=ExecutionStatus.STARTED, in_doubt_since__isnull=False)


def give_up(run: Run) -> None:
    """End the started attempts of a run that is over and that nobody runs."""
    for execution in ToolExecution.objects.select_for_update().filter(
        run=run, status__in=[ExecutionStatus.STARTED, ExecutionStatus.SUSPENDED]
    ):
        end(execution, ExecutionStatus.ABANDONED, error=NOBODY_KNOWS)


def end(execution: ToolExecution, status: ExecutionStatus, *, error: str = "") -> None:
    """Give a locked attempt its end and tell the desk."""
    execution.become(status)
    execution.error = error
    execution.finished_at = database_now()
    execution.save()
    get_desk().tool_finished(execution)


def have_open_positions(pause: Pause) -> bool:
    """Say whether a call that was allowed has not come to its end yet."""
    return _are_left(pause, HAPPENED)


def have_unrun_positions(pause: Pause) -> bool:
    """Say whether a call that was allowed was never tried, or is being tried; one that raised was."""
    return _are_left(pause, {*HAPPENED, ExecutionStatus.RAISED})


def _are_left(pause: Pause, ends: Collection[str]) -> bool:
    tried = _of_pause.rows(pause.pk) if pause.tried is None else pause.tried
    ended = {execution.position for execution in tried if execution.status in ends}
    answers = pause.answer_list
    return any(
        allowed_arguments(call, answer)[0] and position not in ended
        for position, (call, answer) in enumerate(zip(pause.call_list, answers, strict=False))
    )


def have_all_ended(pause: Pause) -> bool:
    """Say whether every call that was allowed has come to its end."""
    return not have_open_positions(pause)


def problems_of(pause: Pause) -> tuple[Problem, ...]:
    """Return why the agent refused the answers of a pause."""
    found = decode(pause.problems)
    return tuple(Problem(item["pointer"], item["message"]) for item in found)


def _doubt_pause(pause: Pause | None) -> None:
    if pause is None or pause.status not in {PauseStatus.DELIVERING, PauseStatus.FAILED}:
        return
    pause.become(PauseStatus.IN_DOUBT)
    pause.error = LOST
    pause.save(update_fields=["status", "error"])
    get_desk().pause_closed(pause)
