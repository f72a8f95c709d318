"""Locking and saving runs and pauses, in the one order that every room keeps: run, pauses, tasks."""

from __future__ import annotations

from uuid import UUID

from agents_runtime.direct import database_now
from agents_runtime.errors import NotFound, StaleEpoch
from agents_runtime.models import Pause, Run
from agents_runtime.states import OPEN_PAUSE

TABLE = Run._meta.db_table  # noqa: SLF001  Django documents it as public


def lock_run(run_id: UUID, epoch: int | None = None) -> Run:
    """Lock a run; raise ``NotFound``, or ``StaleEpoch`` if its epoch is not the one given."""
    run = Run.objects.select_for_update(of=("self",)).select_related("agent").filter(pk=run_id).first()
    if run is None:
        raise NotFound("There is no such run.")
    if epoch is not None and run.epoch != epoch:
        raise StaleEpoch(f"{run.short_id} is in epoch {run.epoch}, not {epoch}.")
    return run


def open_pauses(run: Run) -> list[Pause]:
    """Lock the open pauses of a locked run, oldest first; each carries that run."""
    pauses = list(Pause.objects.select_for_update().filter(run=run, status__in=OPEN_PAUSE))
    for pause in pauses:
        pause.run = run
    return pauses


def save_run(run: Run, *fields: str) -> None:
    """Save the named fields and the time of the change."""
    run.updated_at = database_now()
    run.save(update_fields=[*fields, "updated_at"])
