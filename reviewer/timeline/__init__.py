"""The story of one run, as its page tells it: audit events, ledger rows and the run's own steps in one order.

Lives here: which of them are told, in which words, and how long people and the agent took. Does not live
here: drawing, or who may see a run (``queries``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils import timezone

from agents_runtime.models import Pause, Run, ToolExecution
from agents_runtime.states import PauseStatus, RunStatus
from reviewer import queries
from reviewer.accounts.models import User
from reviewer.models import Decision, ReviewTask
from reviewer.timeline.entries import Entry, Source, source_of
from reviewer.timeline.from_events import from_event
from reviewer.timeline.from_work import from_execution, from_step, is_in_doubt, still_to_come

__all__ = ["Entry", "Story", "tell"]

MOST_ENTRIES = 400


@dataclass(frozen=True)
class Story:
    """A run with everything its page shows of it to one reader."""

    run: Run
    reader: User
    entries: Sequence[Entry]
    left_out: int
    tasks: Sequence[ReviewTask]
    decisions: Sequence[Decision]
    doubts: Sequence[ToolExecution]
    failed: Sequence[Pause]
    waited: dt.timedelta
    worked: dt.timedelta | None

    @property
    def open_tasks(self) -> Sequence[ReviewTask]:
        """The cards that wait for a decision and that the reader may see."""
        return [task for task in self.tasks if task.is_open]


def tell(reader: User, run: Run) -> Story:
    """Return the story of a run that the reader may see."""
    tasks = queries.run_tasks(reader, run)
    executions = list(run.executions.all())
    pauses = list(run.pauses.all())
    source = source_of(run, reader, tasks, executions)
    entries = _in_order(source, executions)
    waited = waited_for_people(pauses)
    return Story(
        run=run,
        reader=reader,
        entries=[*entries[-MOST_ENTRIES:], *still_to_come(run, tasks)],
        left_out=max(0, len(entries) - MOST_ENTRIES),
        tasks=tasks,
        decisions=sorted(
            (decision for task in tasks for decision in task.decisions.all()),
            key=lambda made: made.decided_at,
        ),
        doubts=[execution for execution in executions if is_in_doubt(execution)],
        failed=[pause for pause in pauses if pause.status == PauseStatus.FAILED],
        waited=waited,
        worked=_worked(run, waited),
    )


def waited_for_people(pauses: Iterable[Pause]) -> dt.timedelta:
    """Return how long a run waited for people; pauses that were open at the same time count once."""
    now = timezone.now()
    spans = sorted((pause.created_at, pause.answered_at or pause.closed_at or now) for pause in pauses)
    total, reached = dt.timedelta(), None
    for start, end in spans:
        begin = start if reached is None else max(start, reached)
        if end > begin:
            total += end - begin
        reached = end if reached is None else max(reached, end)
    return total


def _worked(run: Run, waited: dt.timedelta) -> dt.timedelta | None:
    if run.started_at is None:
        return None
    is_over = run.finished_at is not None or run.status == RunStatus.FAILED
    end = (run.finished_at or run.updated_at) if is_over else timezone.now()
    return max(dt.timedelta(), end - run.started_at - waited)


def _in_order(source: Source, executions: Sequence[ToolExecution]) -> list[Entry]:
    # In the order of cause and effect: what was written by one statement has one time.
    told = [from_step(source, step) for step in source.run.steps.all()]
    told += [from_execution(execution) for execution in executions]
    told += [from_event(source, event) for event in queries.run_events(source.reader, source.run)]
    entries = [entry for entry in told if entry is not None]
    return list(_said_once(sorted(entries, key=lambda entry: entry.at or timezone.now())))


def _said_once(entries: Sequence[Entry]) -> Iterable[Entry]:
    """Tell an error once: the tool, the step and the run all end with the same one."""
    before = ""
    for entry in entries:
        is_error = entry.tone == "danger" and bool(entry.said)
        if not is_error or entry.said != before:
            yield entry
        elif not entry.key.startswith("step-"):
            yield replace(entry, said="")
        before = entry.said if is_error else ""
