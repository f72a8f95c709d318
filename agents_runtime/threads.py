"""Tidying threads: pruning and deleting the checkpoints of runs that are over, under the thread's lock.

The tombstone, its audit event and the deletion commit together, since the checkpoints lie in the same
database. Which runs are due is said in ``retention``.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from django.db import transaction

from agents_runtime import checkpointer, retention, thread_lock
from agents_runtime.desk import get_desk
from agents_runtime.direct import database_now
from agents_runtime.errors import NotFound, WrongState
from agents_runtime.models import Run
from agents_runtime.records import lock_run, save_run

log = logging.getLogger(__name__)


def tidy(run_id: UUID, *, keep: timedelta | None) -> None:
    """Prune a thread, or delete it once it was kept for ``keep``; do nothing while a worker holds it."""
    with thread_lock.hold(run_id) as epoch:
        run = Run.objects.filter(pk=run_id).first()
        if epoch is None or run is None or not retention.due(keep=keep).filter(pk=run_id).exists():
            return
        if retention.is_to_delete(run, keep=keep):
            assert keep is not None
            _delete(run_id, epoch, by=f"retention after {keep.days} days")
            return
        if not checkpointer.prune_thread(run.thread_id):
            log.info("a thread cannot be pruned; it is kept whole until it is deleted", extra={"run": run_id})
        retention.mark_pruned(run, epoch)


def delete(run_id: UUID, *, by: str) -> None:
    """Delete the thread of a run that is over, on somebody's word; raise ``WrongState`` unless it is over."""
    with thread_lock.hold(run_id) as epoch:
        if not Run.objects.filter(pk=run_id).exists():
            raise NotFound("There is no such run.")
        if epoch is None:
            raise WrongState("A worker holds this run now.")
        _delete(run_id, epoch, by=by)


@transaction.atomic
def _delete(run_id: UUID, epoch: int, *, by: str) -> None:
    run = lock_run(run_id, epoch)
    retention.guard_has_thread(run)
    if run.status not in retention.OVER:
        raise WrongState(f"{run.short_id} is {run.get_status_display().lower()}; it may still go on.")
    run.thread_deleted_at, run.thread_deleted_by, run.settled_epoch = database_now(), by[:150], epoch
    save_run(run, "thread_deleted_at", "thread_deleted_by", "settled_epoch")
    checkpointer.delete_thread_here(run.thread_id)
    get_desk().thread_deleted(run)
