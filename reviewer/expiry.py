"""Expiry: what becomes of a task that nobody decided in time: it is held or rejected, and never approved.

Called by the scheduler. The database's clock alone counts. Each task has a transaction of its own, in the one
lock order, and looks again once it is locked: with two schedulers at once each thing happens once.
"""

from __future__ import annotations

from uuid import UUID

import structlog
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from agents_runtime import runs
from agents_runtime.canonical import Json, digest, encode
from agents_runtime.errors import RuntimeProblem
from agents_runtime.models import Pause
from agents_runtime.states import PauseStatus
from reviewer import live
from reviewer.audit.record import record
from reviewer.audit.subjects import of_task
from reviewer.clock import database_now
from reviewer.deadlines import is_over, rejection_of
from reviewer.decisions import answer_when_complete
from reviewer.errors import ReviewProblem
from reviewer.models import Outcome, ReviewTask, TaskStatus, Verdict
from reviewer.models.queues import OnExpiry

log = structlog.get_logger(__name__)
MOST_AT_ONCE = 200
CANNOT_REJECT = "It has no way to be rejected, so it stays open."


def expire_due() -> int:
    """Hold or reject every task whose time is over; return how many."""
    due = ReviewTask.objects.open().filter(due_at__lte=Now(), overdue_at__isnull=True).order_by("due_at")
    found = list(due.values_list("pk", "pause_id")[:MOST_AT_ONCE])
    return sum(_expire_alone(task_id, pause_id) for task_id, pause_id in found)


def _expire_alone(task_id: UUID, pause_id: UUID) -> bool:
    """One card that cannot be closed must not keep the others from being closed."""
    try:
        return _expire(task_id, pause_id)
    except (RuntimeProblem, ReviewProblem, IntegrityError):
        log.exception("card_not_expired", task=str(task_id))
        return False


@transaction.atomic
def _expire(task_id: UUID, pause_id: UUID) -> bool:
    pause = runs.lock_pause(pause_id)
    ReviewTask.objects.select_for_update().only("pk").get(pk=task_id)
    task = ReviewTask.objects.select_related("queue", "run", "run__agent").get(pk=task_id)
    if not task.is_open or task.overdue_at is not None or not is_over(task):
        return False
    answer = rejection_of(task) if pause.status == PauseStatus.PENDING and pause.run.is_live else None
    task.overdue_at = database_now()
    task.version += 1
    if answer is None:
        _hold(task)
    else:
        _reject(task, pause, answer)
    live.task_changed(task)
    live.run_changed(task.run_id)
    return True


def _hold(task: ReviewTask) -> None:
    task.save(update_fields=["overdue_at", "version"])
    reason = CANNOT_REJECT if task.on_expiry == OnExpiry.REJECT else ""
    record(
        "task.overdue",
        subject=of_task(task, outcome="overdue", policy=task.expiry_label, due=_due(task), reason=reason),
    )


def _reject(task: ReviewTask, pause: Pause, answer: Json) -> None:
    """Reject on behalf of the rule that set the deadline; nobody decided, so there is no decision."""
    Outcome.objects.create(task=task, verdict=Verdict.REJECT, answer=encode(answer))
    task.status, task.closed_at = TaskStatus.EXPIRED, task.overdue_at
    task.claimed_by = task.claimed_until = None
    task.save()
    record(
        "task.expired",
        subject=of_task(
            task,
            outcome=TaskStatus.EXPIRED,
            policy=task.expiry_label,
            due=_due(task),
            digest=task.digest,
            answer=encode(answer),
            answer_digest=digest(answer),
        ),
    )
    answer_when_complete(pause)


def _due(task: ReviewTask) -> str:
    return task.due_at.isoformat() if task.due_at else ""
