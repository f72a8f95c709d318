"""Retention: what is left of the threads of runs that are over, and for how long.

Once a run has been over for a while, only its latest checkpoint is kept: it can still take new input. After
``COUNTERSIGN_CHECKPOINT_DAYS`` its checkpoints are deleted, and the run keeps a tombstone: when, and by what.
Pauses, decisions, the ledger and the trail are evidence and are never deleted.
Lives here: which runs are due, and the guards. Does not live here: the deleting (``threads``).
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Q, QuerySet, When
from django.db.models.functions import Now
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from agents_runtime import enqueue
from agents_runtime.errors import WrongState
from agents_runtime.models import Run
from agents_runtime.recovery import ago
from agents_runtime.states import RunStatus

OVER = (RunStatus.FINISHED, RunStatus.CANCELLED)
PRUNE_AFTER = timedelta(minutes=10)
MOST_AT_ONCE = 200


def kept_for() -> timedelta | None:
    """Return how long the checkpoints of a run that is over are kept, or None for ever."""
    days = settings.COUNTERSIGN_CHECKPOINT_DAYS
    return timedelta(days=days) if days is not None else None


def due(*, keep: timedelta | None) -> QuerySet[Run]:
    """Return the runs whose threads are to be pruned or deleted now, those that ended first coming first."""
    too_long = Q(finished_at__lte=ago(PRUNE_AFTER), pruned_at__isnull=True)
    if keep is not None:
        too_long |= Q(finished_at__lte=ago(keep))
    over = Run.objects.filter(status__in=OVER, thread_deleted_at__isnull=True, finished_at__isnull=False)
    return over.filter(too_long).order_by("finished_at")


def is_to_delete(run: Run, *, keep: timedelta | None) -> bool:
    """Say whether the run's thread has been kept long enough, by the database's clock."""
    if keep is None:
        return False
    return due(keep=keep).filter(pk=run.pk, finished_at__lte=ago(keep)).exists()


def ask_workers() -> int:
    """Ask workers to tidy the threads that are due; return how many. Asking twice does no harm."""
    found: list[UUID] = list(due(keep=kept_for()).values_list("pk", flat=True)[:MOST_AT_ONCE])
    if not found:
        return 0
    with transaction.atomic():
        for run_id in found:
            enqueue.tidy_thread(run_id)
    return len(found)


def guard_has_thread(run: Run) -> None:
    """Raise ``WrongState`` if the run's checkpoints were deleted: nothing can go on without them."""
    if run.thread_deleted_at is None:
        return
    message = _("The checkpoints of this run were deleted on %(when)s by %(who)s, so it cannot go on.")
    when = date_format(localtime(run.thread_deleted_at), "j M Y, H:i")
    raise WrongState(message % {"when": when, "who": run.thread_deleted_by})


def mark_pruned(run: Run, epoch: int) -> None:
    """Note that nothing is left to prune; the epoch that did it has come to its end.

    A run that was given new input meanwhile is not over any more: its next turn is pruned in its time.
    """
    is_over = When(status__in=OVER, then=Now())
    Run.objects.filter(pk=run.pk).update(pruned_at=Case(is_over, default=None), settled_epoch=epoch)
