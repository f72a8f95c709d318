"""Recovery: which runs have something to do that nobody is doing, whatever became of their messages.

The database alone decides, by its own clock: a run has work, its thread's lock is free, and it has been quiet
for a moment, or its worker is dead. Sweeping twice, or in two processes at once, only sends messages that
find nothing to do.

From a SIGKILL to work again: the server frees a dead worker's locks as soon as its socket closes. The message
of a child that died alone comes back at once, from its parent. That of a whole worker is lost with it: the
next sweep sends another while the worker starts again, and a worker that is ready has everything swept once
more, so that no lost message is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import DurationField, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Now

from agents_runtime import enqueue, thread_lock
from agents_runtime.compiled import SOME_ID, Compiled
from agents_runtime.models import Pause, Run, ToolExecution
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus

QUIET = timedelta(seconds=2)
"""A change this fresh has its own message on the way."""
NUDGE_AGAIN = timedelta(seconds=6)
"""A message sent this long ago, with nothing to show for it, was lost or waits in a queue."""
ORPHAN_AGAIN = timedelta(seconds=3)
"""The same for a run whose worker is dead; there are few of them, and people wait."""
MAX_NUDGES = 500


def with_work() -> QuerySet[Run]:
    """Return the runs that a worker could bring forward now."""
    pauses = Pause.objects.filter(run=OuterRef("pk"))
    answered = pauses.filter(status=PauseStatus.ANSWERED)
    held = pauses.filter(kind=Pause.Kind.STATIC, status=PauseStatus.PENDING)
    holding = pauses.filter(status__in=[PauseStatus.PENDING, PauseStatus.FAILED])
    left = ToolExecution.objects.filter(run=OuterRef("pk"), status=ExecutionStatus.STARTED)
    return Run.objects.filter(
        Q(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
        | (Q(status=RunStatus.WAITING) & ((Exists(answered) & ~Exists(held)) | ~Exists(holding)))
        | (Q(status=RunStatus.CANCELLED) & Exists(left))
    )


_work_of = Compiled(lambda run_id: with_work().filter(pk=run_id).only("pk"), SOME_ID)


def has_work(run_id: UUID) -> bool:
    """Say whether a worker could bring this run forward now."""
    return bool(_work_of.rows(run_id))


def sweep() -> int:
    """Wake a worker for each run that is stuck; return how many. Runs that only wait cost it nothing."""
    return _wake(_left(_is_quiet() | _is_orphan()))


def sweep_after_start() -> int:
    """Do the same for a worker that has just started, whatever was sent to the one before it."""
    return _wake(_left(_has_settled_down() | _has_no_worker()))


def sweep_waiting() -> int:
    """Wake a worker for each run that waits for people although it asks nobody; return how many.

    No verb leaves a run so; somebody who went round the product may. It looks at every waiting run, so it is
    done now and then.
    """
    holding = Pause.objects.filter(run=OuterRef("pk"), status__in=[PauseStatus.PENDING, PauseStatus.FAILED])
    forgotten = Run.objects.filter(~Exists(holding), status=RunStatus.WAITING).filter(_is_quiet())
    return _wake(list(forgotten.order_by("updated_at").values_list("pk", flat=True)[:MAX_NUDGES]))


def _wake(quiet: Sequence[UUID]) -> int:
    held = thread_lock.held_keys() if quiet else set()
    stuck = [run_id for run_id in quiet if thread_lock.lock_key(run_id) not in held]
    if not stuck:
        return 0
    with transaction.atomic():
        Run.objects.filter(pk__in=stuck).update(nudged_at=Now())
        for run_id in stuck:
            enqueue.start_run(run_id)
    return len(stuck)


def _left(condition: Q) -> list[UUID]:
    """Start from what is at work, from answers and from attempts: no run that only waits is looked at."""
    active = Run.objects.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
    named = {
        *Pause.objects.filter(status=PauseStatus.ANSWERED).order_by().values_list("run_id", flat=True),
        *ToolExecution.objects.filter(status=ExecutionStatus.STARTED)
        .order_by()
        .values_list("run_id", flat=True),
    }
    parts = [active, with_work().filter(pk__in=named)] if named else [active]
    found = {
        run_id: changed
        for part in parts
        for run_id, changed in part.filter(condition)
        .order_by("updated_at")
        .values_list("pk", "updated_at")[:MAX_NUDGES]
    }
    return sorted(found, key=lambda run_id: found[run_id])[:MAX_NUDGES]


def _is_quiet() -> Q:
    return _has_settled_down() & _was_not_nudged_for(NUDGE_AGAIN)


def _is_orphan() -> Q:
    return _has_no_worker() & _was_not_nudged_for(ORPHAN_AGAIN)


def _has_settled_down() -> Q:
    return Q(updated_at__lte=ago(QUIET))


def _has_no_worker() -> Q:
    """An epoch was begun that came to no end; with the lock free as well, whoever began it is dead."""
    return Q(epoch__gt=F("settled_epoch"))


def _was_not_nudged_for(span: timedelta) -> Q:
    return Q(nudged_at__isnull=True) | Q(nudged_at__lte=ago(span))


def ago(span: timedelta) -> F:
    """Return the moment that lies so far back, by the database's clock."""
    return Now() - Value(span, output_field=DurationField())  # type: ignore[return-value]
