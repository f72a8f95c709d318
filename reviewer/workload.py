"""How much work there is, who does it and how fast: figures counted by the database, nothing estimated.

Only of the queues a person leads (an administrator leads all). Time to decision runs from the moment a card
opened to the decision. Does not live here: how figures are drawn (``web.workload``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import (
    Aggregate,
    Case,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    Min,
    Q,
    QuerySet,
    When,
)
from django.db.models.functions import Now, TruncDate
from django.utils import timezone
from django.utils.translation import gettext as _

from reviewer import queries
from reviewer.accounts import permissions
from reviewer.accounts.models import Role, User
from reviewer.errors import NotAllowed
from reviewer.models import Decision, Queue, ReviewTask, TaskStatus, Verdict

WEEK = dt.timedelta(days=7)
FORTNIGHT = 14
SOON = dt.timedelta(minutes=15)


class Median(Aggregate):
    """The median of an expression, as PostgreSQL counts it."""

    function = "PERCENTILE_CONT"
    name = "Median"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    allow_distinct = False


@dataclass(frozen=True)
class Decided:
    """What was decided today and in seven days, and the median time it took in these."""

    today: int = 0
    week: int = 0
    median: dt.timedelta | None = None


@dataclass(frozen=True)
class QueueLoad:
    """One queue: what waits, and what was decided."""

    queue: Queue
    waiting: int
    oldest: dt.datetime | None
    claimed: int
    overdue: int
    due_soon: int
    decided: Decided
    people: Sequence[User]


@dataclass(frozen=True)
class PersonLoad:
    """One person: what they hold, and what they decided."""

    person: User
    claimed: int
    assigned: int
    share: int  # of the busiest person's open work, in per cent
    decided: Decided


@dataclass(frozen=True)
class Day:
    """One day's decisions by verdict; answers of every kind count as ``respond``."""

    date: dt.date
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """All decisions of the day."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Workload:
    """Everything the page shows."""

    queues: Sequence[QueueLoad]
    people: Sequence[PersonLoad]
    days: Sequence[Day]
    waiting: int
    oldest: ReviewTask | None
    median: dt.timedelta | None
    decided_today: int
    in_time_today: int

    @property
    def due_soon(self) -> int:
        """Open tasks whose time runs out soon, or ran out."""
        return sum(load.due_soon + load.overdue for load in self.queues)


def workload(user: User) -> Workload:
    """Return the figures of the queues this person leads; ``NotAllowed`` for anyone who leads none."""
    if not permissions.can_lead(user):
        raise NotAllowed(_("Only leads and administrators see the workload."))
    led = queries.led_queues(user)
    loads = _queue_loads(user, led)
    decisions = Decision.objects.filter(task__queue__in=led)
    today = decisions.filter(decided_at__date=timezone.localdate())
    return Workload(
        queues=loads,
        people=_person_loads(led),
        days=_days(decisions),
        waiting=sum(load.waiting for load in loads),
        oldest=ReviewTask.objects.open()
        .filter(queue__in=led)
        .select_related("queue")
        .order_by("created_at")
        .first(),
        median=_timed(_this_week(decisions)).aggregate(median=Median("took"))["median"],
        decided_today=today.count(),
        in_time_today=today.filter(
            Q(task__due_at__isnull=True) | Q(decided_at__lte=F("task__due_at"))
        ).count(),
    )


def _queue_loads(user: User, led: QuerySet[Queue]) -> list[QueueLoad]:
    waiting = Q(tasks__status=TaskStatus.OPEN)
    counted = led.annotate(
        waiting=Count("tasks", filter=waiting),
        oldest=Min("tasks__created_at", filter=waiting),
        claimed=Count("tasks", filter=waiting & Q(tasks__claimed_until__gt=Now())),
        overdue=Count("tasks", filter=waiting & Q(tasks__due_at__lte=Now())),
        due_soon=Count("tasks", filter=waiting & Q(tasks__due_at__gt=Now(), tasks__due_at__lte=Now() + SOON)),
    )
    decided = _decided(Decision.objects.filter(task__queue__in=led), by="task__queue")
    people = queries.members_by_queue(user)
    loads = [
        QueueLoad(
            queue=queue,
            waiting=queue.waiting,
            oldest=queue.oldest,
            claimed=queue.claimed,
            overdue=queue.overdue,
            due_soon=queue.due_soon,
            people=people.get(queue.pk, ()),
            decided=decided.get(queue.pk, Decided()),
        )
        for queue in counted
    ]
    return sorted(loads, key=lambda load: (load.oldest is None, load.oldest, load.queue.name))


def _person_loads(led: QuerySet[Queue]) -> list[PersonLoad]:
    open_tasks = ReviewTask.objects.open().filter(queue__in=led)
    held = _counts(open_tasks.filter(claimed_until__gt=Now()), "claimed_by")
    assigned = _counts(open_tasks, "assigned_to")
    carried = _carried(open_tasks)
    most = max(carried.values(), default=0)
    decided = _decided(Decision.objects.filter(task__queue__in=led), by="person")
    people = User.objects.filter(is_active=True, memberships__queue__in=led).exclude(role=Role.AUDITOR)
    loads = [
        PersonLoad(
            person=person,
            claimed=held.get(person.pk, 0),
            assigned=assigned.get(person.pk, 0),
            share=round(100 * carried.get(person.pk, 0) / most) if most else 0,
            decided=decided.get(person.pk, Decided()),
        )
        for person in people.distinct()
    ]
    return sorted(loads, key=lambda load: (-load.decided.week, load.person.username))


def _carried(open_tasks: QuerySet[ReviewTask]) -> dict[int, int]:
    """Return how many open tasks each person holds or was assigned; one that is both counts once."""
    found: dict[int, int] = {}
    live = Case(When(claimed_until__gt=Now(), then=F("claimed_by")), default=None)
    taken = open_tasks.annotate(holder=live).filter(Q(holder__isnull=False) | Q(assigned_to__isnull=False))
    for holder, assignee in taken.values_list("holder", "assigned_to"):
        for person in {holder, assignee} - {None}:
            found[person] = found.get(person, 0) + 1
    return found


def _decided(decisions: QuerySet[Decision], *, by: str) -> dict[int, Decided]:
    rows = (
        _timed(_this_week(decisions))
        .order_by()
        .values(by)
        .annotate(
            today=Count("pk", filter=Q(decided_at__date=timezone.localdate())),
            week=Count("pk"),
            median=Median("took"),
        )
    )
    return {row[by]: Decided(row["today"], row["week"], row["median"]) for row in rows}


def _days(decisions: QuerySet[Decision]) -> list[Day]:
    """Return the last fortnight, oldest day first, days without decisions too."""
    first = timezone.localdate() - dt.timedelta(days=FORTNIGHT - 1)
    rows = (
        decisions.annotate(day=TruncDate("decided_at"))
        .filter(day__gte=first)
        .order_by()
        .values("day", "verdict")
        .annotate(count=Count("pk"))
    )
    counts: dict[dt.date, dict[str, int]] = {}
    for row in rows:
        verdict = Verdict.RESPOND if row["verdict"] == Verdict.ANSWER else Verdict(row["verdict"])
        of_day = counts.setdefault(row["day"], {})
        of_day[verdict.value] = of_day.get(verdict.value, 0) + row["count"]
    days = (first + dt.timedelta(days=offset) for offset in range(FORTNIGHT))
    return [Day(date, counts.get(date, {})) for date in days]


def _this_week(decisions: QuerySet[Decision]) -> QuerySet[Decision]:
    return decisions.filter(decided_at__gte=timezone.now() - WEEK)


def _timed(decisions: QuerySet[Decision]) -> QuerySet[Decision]:
    took = ExpressionWrapper(F("decided_at") - F("task__created_at"), output_field=DurationField())
    return decisions.annotate(took=took)


def _counts(tasks: QuerySet[ReviewTask], field: str) -> dict[int, int]:
    rows = tasks.filter(**{f"{field}__isnull": False}).order_by().values(field).annotate(count=Count("pk"))
    return {row[field]: row["count"] for row in rows}
