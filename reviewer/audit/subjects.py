"""Audit subjects made from the things that events are about."""

from __future__ import annotations

from uuid import UUID

from agents_runtime.compiled import SOME_ID, SOME_NUMBER, Compiled
from agents_runtime.models import Pause, Run, ToolExecution
from reviewer.audit.record import Fact, Subject
from reviewer.models import Queue, ReviewTask

_task_at = Compiled(
    lambda pause_id, position: ReviewTask.objects.filter(pause=pause_id, position=position).only("pk"),
    SOME_ID,
    SOME_NUMBER,
)
MOST_KNOWN = 1024
_known: dict[tuple[UUID, int], UUID] = {}


def of_task(task: ReviewTask, *, outcome: str = "", **facts: Fact) -> Subject:
    """Return the subject of an event about a task."""
    return Subject(
        run_id=task.run_id,
        task_id=task.pk,
        queue_id=task.queue_id,
        agent=task.agent,
        tool=task.tool,
        outcome=outcome,
        facts={"title": task.title, **facts},
    )


def of_run(run: Run, *, outcome: str = "", **facts: Fact) -> Subject:
    """Return the subject of an event about a run."""
    return Subject(run_id=run.pk, agent=run.agent.name, outcome=outcome, facts=facts)


def of_pause(pause: Pause, *, outcome: str = "", **facts: Fact) -> Subject:
    """Return the subject of an event about a pause."""
    return Subject(
        run_id=pause.run_id,
        agent=pause.run.agent.name,
        tool=pause.tool,
        outcome=outcome,
        facts={"interrupt": pause.interrupt_id, "round": pause.round, **facts},
    )


def of_execution(execution: ToolExecution, *, outcome: str = "", **facts: Fact) -> Subject:
    """Return the subject of an event about one attempt to run a tool."""
    return Subject(
        run_id=execution.run_id,
        task_id=_task_of(execution),
        agent=execution.run.agent.name,
        tool=execution.tool,
        outcome=outcome,
        facts={"attempt": execution.attempt, "arguments_digest": execution.arguments_digest, **facts},
    )


def of_queue(queue: Queue, **facts: Fact) -> Subject:
    """Return the subject of an event about a queue."""
    return Subject(queue_id=queue.pk, facts={"queue": queue.name, **facts})


def remember_task(task_id: UUID, *, pause_id: UUID, position: int) -> None:
    """Keep the key of a task that was just read: what is recorded next of its calls names it."""
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[pause_id, position] = task_id


def _task_of(execution: ToolExecution) -> UUID | None:
    """Return the key of the task of a call: both are written together, and no task goes to another pause."""
    if execution.pause_id is None:
        return None
    known = _known.get((execution.pause_id, execution.position))
    if known is not None:
        return known
    task = _task_at.first(execution.pause_id, execution.position)
    if task is None:
        return None
    remember_task(task.pk, pause_id=execution.pause_id, position=execution.position)
    return task.pk
