"""Locking and saving runs and pauses, in the one order that every room keeps: run, pauses, tasks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from agents_runtime.canonical import storable
from agents_runtime.compiled import SOME_ID, Compiled, rows_of_all
from agents_runtime.errors import NotFound, StaleEpoch
from agents_runtime.models import LONG_TEXTS_OF_RUN, Pause, Run, ToolExecution
from agents_runtime.states import OPEN_PAUSE, ExecutionStatus, PauseStatus
from agents_runtime.writing import update

TABLE = Run._meta.db_table  # noqa: SLF001  Django documents it as public

MAX_NAME = 200
CHANGEABLE = (
    "status",
    "pending_input",
    "closes_reviews",
    "state",
    "output",
    "error",
    "trouble",
    "retry_granted",
    "settled_epoch",
    "started_at",
    "finished_at",
)
_NOT_FOR_A_STEP = sorted({*LONG_TEXTS_OF_RUN} - {"state", "agent__gates", "agent__tools"})
_HAS_PAUSES = {"has_pauses": Exists(Pause.objects.filter(run=OuterRef("pk")))}
_run = Compiled(
    lambda run_id: (
        Run.objects.select_related("agent").defer(*_NOT_FOR_A_STEP).annotate(**_HAS_PAUSES).filter(pk=run_id)
    ),
    SOME_ID,
)
# In mappings, because the types' plugin knows no annotation that a model declares.
_SEEN_WITH_A_LOCK = {"moment": Now()}


def _locked(run_id: UUID) -> QuerySet[Run]:
    return Run.objects.select_for_update(of=("self",)).annotate(**_SEEN_WITH_A_LOCK).filter(pk=run_id)


_locked_run = Compiled(lambda run_id: _locked(run_id).select_related("agent"), SOME_ID)
_SEEN_IN_A_TURN = _HAS_PAUSES | {
    "has_started": Exists(ToolExecution.objects.filter(run=OuterRef("pk"), status=ExecutionStatus.STARTED)),
}
_locked_for_turn = Compiled(lambda run_id: _locked(run_id).annotate(**_SEEN_IN_A_TURN), SOME_ID)
_locked_open_pauses = Compiled(
    lambda run_id: Pause.objects.select_for_update().filter(run=run_id, status__in=OPEN_PAUSE), SOME_ID
)
MAY_BE_TRIED = (PauseStatus.DELIVERING, PauseStatus.FAILED)
"""Pauses of which it is asked how far their calls have come."""
_tried = Compiled(
    lambda run_id: ToolExecution.objects.filter(pause__run=run_id, pause__status__in=MAY_BE_TRIED).only(
        "pause", "position", "status"
    ),
    SOME_ID,
)
_locked_pause = Compiled(lambda pause_id: Pause.objects.select_for_update().filter(pk=pause_id), SOME_ID)


def as_name(text: str) -> str:
    """Return an agent's name for something as a column of names holds it."""
    return storable(text)[:MAX_NAME]


def read_run(run_id: UUID) -> Run:
    """Return a run as it is now, not locked, with what a step of it takes; raise ``NotFound``."""
    return _existing(_run.first(run_id))


def lock_run(run_id: UUID, epoch: int | None = None) -> Run:
    """Lock a run; raise ``NotFound``, or ``StaleEpoch`` if its epoch is not the one given.

    Its ``moment`` is the time of this transaction by the database's clock.
    """
    run = _existing(_locked_run.first(run_id))
    return run if epoch is None else _in_epoch(run, epoch)


def lock_for_turn(seen: Run, epoch: int) -> tuple[Run, list[Pause]]:
    """Lock a run of this epoch and its open pauses; see whether it has attempts that were started.

    Its agent is the one that it was seen with: the step runs as that says, too.
    Only the worker that holds the run in its present epoch adds any, so what is seen before the row is locked
    is so still: that worker is the one who asks, and the gate of its step lets nothing begin any more.
    """
    if not seen.has_pauses:
        run = _in_epoch(_existing(_locked_for_turn.first(seen.pk)), epoch)
        run.agent = seen.agent
        return run, open_pauses(run) if run.has_pauses else []
    of_run = [seen.pk]
    runs, pauses, executions = rows_of_all(
        (_locked_for_turn, of_run), (_locked_open_pauses, of_run), (_tried, of_run)
    )
    run = _in_epoch(_existing(next(iter(runs), None)), epoch)
    run.agent = seen.agent
    for pause in pauses:
        pause.run = run
        if pause.status in MAY_BE_TRIED:
            pause.tried = [execution for execution in executions if execution.pause_id == pause.pk]
    return run, pauses


def _in_epoch(run: Run, epoch: int) -> Run:
    if run.epoch != epoch:
        raise StaleEpoch(f"{run.short_id} is in epoch {run.epoch}, not {epoch}.")
    return run


def _existing(run: Run | None) -> Run:
    if run is None:
        raise NotFound("There is no such run.")
    return run


def open_pauses(run: Run) -> list[Pause]:
    """Lock the open pauses of a locked run, oldest first; each carries that run."""
    pauses = _locked_open_pauses.rows(run.pk)
    for pause in pauses:
        pause.run = run
    return pauses


def lock_pause(run: Run, pause_id: UUID) -> Pause:
    """Lock a pause of a locked run; it carries that run."""
    (pause,) = _locked_pause.rows(pause_id)
    pause.run = run
    return pause


def save_run(run: Run, *fields: str) -> None:
    """Save the named fields and the time of the change."""
    update(run, *fields, now=["updated_at"])


def changeable(run: Run) -> dict[str, Any]:
    """Return what a worker may change of a run, as it is now."""
    return {name: getattr(run, name) for name in CHANGEABLE}


def save_changes(run: Run, before: dict[str, Any]) -> None:
    """Save what differs from ``before``; large texts that stayed as they were are not written again."""
    changed = [name for name in CHANGEABLE if getattr(run, name) != before[name]]
    if changed:
        save_run(run, *changed)
