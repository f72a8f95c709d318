"""Each person's inbox: what waits for them, what they hold and have decided; its numbers in the rail."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Now
from django.utils.timezone import localdate

from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.models import ReviewTask, TaskStatus
from reviewer.queries.sight import visible_tasks
from reviewer.queries.tasks import URGENT_FIRST


@dataclass(frozen=True)
class WorkCounts:
    """A person's own numbers for the rail."""

    waiting: int
    oldest: dt.datetime | None
    claimed: int
    decided_today: int


@dataclass(frozen=True)
class InboxFilter:
    """What part of the inbox to show."""

    scope: str = "waiting"  # waiting | claimed | decided
    queue: str = ""
    text: str = ""
    risk: str = ""


def inbox(user: User, wanted: InboxFilter) -> QuerySet[ReviewTask]:
    """Return the tasks of one view of the inbox, most urgent first; decided ones newest first."""
    tasks = visible_tasks(user)
    if wanted.queue:
        tasks = tasks.filter(queue__slug=wanted.queue)
    if wanted.risk:
        tasks = tasks.filter(risk=wanted.risk)
    if wanted.text:
        tasks = tasks.filter(_matches(wanted.text))
    if wanted.scope == "decided":
        return tasks.filter(decisions__person=user).order_by("-closed_at", "pk")
    if wanted.scope == "claimed":
        return tasks.filter(status=TaskStatus.OPEN, claimed_by=user, claimed_until__gt=Now()).order_by(
            *URGENT_FIRST
        )
    return (
        tasks.filter(status=TaskStatus.OPEN)
        .filter(_in_own_queues(user) | Q(assigned_to=user))
        .order_by(*URGENT_FIRST)
    )


def _matches(text: str) -> Q:
    return (
        Q(title__icontains=text)
        | Q(tool__icontains=text)
        | Q(agent__icontains=text)
        | Q(run__id__startswith=text.removeprefix("r-"))
    )


def _in_own_queues(user: User) -> Q:
    return Q() if permissions.sees_all_queues(user) else Q(queue__in=user.queues.all())


def work_counts(user: User) -> WorkCounts:
    """Return this person's own numbers."""
    waiting = inbox(user, InboxFilter()).order_by().aggregate(count=Count("pk"), oldest=Min("created_at"))
    return WorkCounts(
        waiting=waiting["count"],
        oldest=waiting["oldest"],
        claimed=ReviewTask.objects.held_by(user).count(),
        decided_today=user.decisions.filter(decided_at__date=localdate()).count(),
    )
