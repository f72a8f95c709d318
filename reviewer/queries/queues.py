"""Queues: what waits in them, who belongs to them and leads them, and which policies send to them.

Does not live here: what waits for one person, whatever queue it is in (``inboxes``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Min, Q, QuerySet
from django.utils.translation import gettext as _

from agents_runtime.canonical import storable
from reviewer.accounts.models import Role, User
from reviewer.errors import NotFound
from reviewer.models import Policy, Queue, QueueMembership, ReviewTask, TaskStatus
from reviewer.queries.sight import visible_queues, visible_tasks
from reviewer.queries.tasks import URGENT_FIRST


@dataclass(frozen=True)
class QueueCount:
    """A queue with what waits in it, as the rail shows it."""

    queue: Queue
    waiting: int
    oldest: dt.datetime | None


def queue_counts(user: User) -> Sequence[QueueCount]:
    """Return the queues this person may see with what waits in each."""
    waiting = Q(tasks__status=TaskStatus.OPEN)
    queues = Queue.objects.filter(pk__in=visible_queues(user).values("pk")).annotate(
        waiting=Count("tasks", filter=waiting), oldest=Min("tasks__created_at", filter=waiting)
    )
    return [QueueCount(queue=queue, waiting=queue.waiting, oldest=queue.oldest) for queue in queues]


def get_queue(user: User, slug: str) -> Queue:
    """Return one queue, or raise ``NotFound``."""
    queue = visible_queues(user).filter(slug=storable(slug)).first()
    if queue is None:
        raise NotFound(_("There is no such queue."))
    return queue


def led_queues(user: User) -> QuerySet[Queue]:
    """Return the queues that this person leads: the lead's pages are about these."""
    if user.role == Role.ADMIN:
        return Queue.objects.all()
    return Queue.objects.filter(memberships__user=user, memberships__leads=True)


def queue_tasks(user: User, queue: Queue) -> QuerySet[ReviewTask]:
    """Return what waits in a queue, most urgent first."""
    return visible_tasks(user).filter(queue=queue, status=TaskStatus.OPEN).order_by(*URGENT_FIRST)


def members(queue: Queue) -> QuerySet[QueueMembership]:
    """Return who belongs to a queue, its leads first."""
    return queue.memberships.select_related("user").order_by("-leads", "user__first_name", "user__username")


def members_by_queue(user: User) -> dict[int, list[User]]:
    """Return who belongs to each queue that this person may see."""
    found: dict[int, list[User]] = {}
    memberships = QueueMembership.objects.filter(queue__in=visible_queues(user)).select_related("user")
    for membership in memberships.order_by("-leads", "user__username"):
        found.setdefault(membership.queue_id, []).append(membership.user)
    return found


def addable_people(queue: Queue) -> QuerySet[User]:
    """Return who could become a member of a queue; auditors only read."""
    return User.objects.filter(is_active=True).exclude(role=Role.AUDITOR).exclude(memberships__queue=queue)


def policies(user: User) -> QuerySet[Policy]:
    """Return the policies that send something to a queue this person may see."""
    return Policy.objects.filter(queue__in=visible_queues(user)).select_related("queue")
