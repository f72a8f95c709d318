"""Who holds a task: claim, release, extend, claim the next one; and a lead's assign and move.

A claim is a lease by the database's clock. ``claim_version`` is its fence: it rises with every new claim, so
whoever comes back after their lease ran out, and somebody else took the task, is told so.
"""

from __future__ import annotations

import datetime as dt
from typing import cast
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from agents_runtime.compiled import SOME_ID, Compiled
from reviewer import live, queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.audit.record import record
from reviewer.audit.subjects import of_task
from reviewer.clock import database_now
from reviewer.errors import Conflict, Invalid, NotAllowed
from reviewer.models import Queue, ReviewTask

_locked = Compiled(
    lambda task_id: ReviewTask.objects.select_for_update().filter(pk=task_id).only("pk"), SOME_ID
)
_whole = Compiled(
    lambda task_id: ReviewTask.objects.select_related(
        "queue", "run", "run__agent", "claimed_by", "assigned_to"
    ).filter(pk=task_id),
    SOME_ID,
)


@transaction.atomic
def claim(task_id: UUID, *, by: User) -> ReviewTask:
    """Take the task, or extend one's own claim; ``Conflict`` (taken) says who holds it until when."""
    task = lock(task_id, by=by)
    guard_may_decide(task, by=by)
    guard_open(task)
    guard_not_taken(task, by=by)
    hold(task, by=by)
    record("task.claimed", actor=by, subject=of_task(task, claim_version=task.claim_version))
    return _publish(task)


@transaction.atomic
def release(task_id: UUID, *, by: User) -> ReviewTask:
    """Give the task back; a lead may give back anybody's."""
    task = lock(task_id, by=by)
    guard_open(task)
    if task.claimed_by_id is None:
        return task
    if task.claimed_by_id != by.pk and not permissions.leads_queue(by, task.queue_id):
        raise NotAllowed(_("Only the person who claimed this task, or a lead of its queue, can release it."))
    task.claimed_by = task.claimed_until = None
    record("task.released", actor=by, subject=of_task(task))
    return _publish(task)


@transaction.atomic
def claim_next(queue_slug: str, *, by: User) -> ReviewTask | None:
    """Take the most urgent free task of a queue that this person may decide, or return None if there is none.

    ``SKIP LOCKED``: fifty people who ask at once each get a different task.
    """
    queue = queries.get_queue(by, queue_slug)
    if not permissions.is_member(by, queue.pk):
        raise NotAllowed(_("Only members of %(queue)s can claim its tasks.") % {"queue": queue.name})
    task = (
        ReviewTask.objects.free()
        .filter(Q(assigned_to__isnull=True) | Q(assigned_to=by), queue=queue)
        .exclude(permissions.directed_tasks(by))
        .select_for_update(of=("self",), skip_locked=True)
        .order_by("due_at", "created_at", "pk")
        .first()
    )
    if task is None:
        return None
    hold(task, by=by)
    record("task.claimed", actor=by, subject=of_task(task, claim_version=task.claim_version, next=True))
    return _publish(task)


@transaction.atomic
def assign(task_id: UUID, *, to: User | None, by: User) -> ReviewTask:
    """Give the task to a member of its queue, or to nobody in particular."""
    task = lock(task_id, by=by)
    _guard_leads(task, by=by)
    guard_open(task)
    if to is not None:
        guard_may_decide(task, by=to, subject=to.display_name)
    task.assigned_to = to
    if task.claimed_by_id is not None and (to is None or task.claimed_by_id != to.pk):
        task.claimed_by = task.claimed_until = None
    record("task.assigned", actor=by, subject=of_task(task, to=to.display_name if to else None))
    return _publish(task)


@transaction.atomic
def move(task_id: UUID, *, queue: Queue, by: User) -> ReviewTask:
    """Put the task into another queue; claim and assignment end where the person is no member there."""
    task = lock(task_id, by=by)
    _guard_leads(task, by=by)
    guard_open(task)
    if task.queue_id == queue.pk:
        raise Invalid(_("The task is already in %(queue)s.") % {"queue": queue.name})
    left, task.queue = task.queue, queue
    task.claimed_by = task.claimed_until = None
    if task.assigned_to and not permissions.is_member(task.assigned_to, queue.pk):
        task.assigned_to = None
    record("task.moved", actor=by, subject=of_task(task, left=left.name, to=queue.name))
    return _publish(task, left_queue=left.pk)


def lock(task_id: UUID, *, by: User) -> ReviewTask:
    """Lock the task's row for the rest of the transaction; ``NotFound`` unless this person may see it."""
    return lock_seen(queries.get_task(by, task_id))


def lock_seen(task: ReviewTask) -> ReviewTask:
    """Lock the row of a task that this person was just seen to see, and read it again."""
    # Locked alone, then read: rows joined to a lock that had to wait are those from before the wait.
    _locked.rows(task.pk)
    (locked,) = _whole.rows(task.pk)
    return locked


def hold(task: ReviewTask, *, by: User, now: dt.datetime | None = None) -> None:
    """Make the locked task this person's for a full lease; a new holder raises the fence."""
    now = now or database_now()
    is_extension = task.claimed_by_id == by.pk and task.claimed_until is not None and task.claimed_until > now
    if not is_extension:
        task.claim_version += 1
    task.claimed_by = by
    task.claimed_until = now + dt.timedelta(seconds=settings.COUNTERSIGN_CLAIM_SECONDS)


def guard_may_decide(task: ReviewTask, *, by: User, subject: str = "") -> None:
    """Raise ``NotAllowed`` unless the person is a member of the queue and did not tell the run what to do."""
    if task.run.requested_by == by.reference:
        raise NotAllowed(_("Whoever started a run cannot decide its tasks."))
    if task.run.is_directed_by(by.reference):
        raise NotAllowed(_("Whoever gave a run input cannot decide its tasks."))
    if permissions.is_member(by, task.queue_id, found=None if subject else task.member):
        return
    if subject:
        raise NotAllowed(
            _("%(person)s is not a member of %(queue)s.") % {"person": subject, "queue": task.queue.name}
        )
    raise NotAllowed(_("Only members of %(queue)s can decide its tasks.") % {"queue": task.queue.name})


def guard_open(task: ReviewTask) -> None:
    """Raise ``Conflict`` with who decided and when, or what closed it, unless the task is open."""
    if task.is_open:
        return
    decision = task.decisions.order_by("-decided_at").first()
    if decision is None or task.status != "decided":
        raise Conflict(
            _("This task is closed: %(status)s.") % {"status": task.get_status_display().lower()},
            code="closed",
            when=task.closed_at,
            task=task,
        )
    raise Conflict(
        _("%(person)s already decided this task: %(verdict)s.")
        % {"person": decision.person_name, "verdict": decision.get_verdict_display().lower()},
        code="decided",
        who=decision.person_name,
        when=decision.decided_at,
        task=task,
    )


def guard_not_taken(task: ReviewTask, *, by: User) -> None:
    """Raise ``Conflict`` while somebody else's lease runs."""
    if task.claimed_by_id in {None, by.pk} or task.claimed_until is None:
        return
    if task.claimed_until <= database_now():
        return
    holder = cast(User, task.claimed_by)
    raise Conflict(
        _("%(person)s has claimed this task.") % {"person": holder.display_name},
        code="taken",
        who=holder.display_name,
        when=task.claimed_until,
        task=task,
    )


def _guard_leads(task: ReviewTask, *, by: User) -> None:
    if not permissions.leads_queue(by, task.queue_id):
        raise NotAllowed(_("Only a lead of %(queue)s can do this.") % {"queue": task.queue.name})


def _publish(task: ReviewTask, *, left_queue: int | None = None) -> ReviewTask:
    task.version += 1
    task.save()
    live.task_changed(task, left_queue=left_queue)
    return task
