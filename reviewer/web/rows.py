"""Rows of the inbox list: in which group a task stands, in which order, and who has it.

The page, the socket and the answer to a form all draw rows made here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils import timezone
from django.utils.translation import gettext as _

from reviewer.accounts.models import User
from reviewer.models import Decision, ReviewTask

SOON = dt.timedelta(minutes=15)
NO_DEADLINE = 10_000_000_000  # seconds; sorts after every deadline, by age


@dataclass(frozen=True)
class Row:
    """One task as the list shows it to one reader."""

    task: ReviewTask
    group: str  # overdue | soon | later | held | done
    order: int
    holder: User | None
    mine: bool
    decision: Decision | None = None
    current: bool = False


@dataclass(frozen=True)
class Group:
    """Rows under one heading."""

    key: str
    title: str
    rows: Sequence[Row]


def row_of(task: ReviewTask, reader: User, *, current: bool = False) -> Row:
    """Return the row of one task; a closed task's row says who decided."""
    now = timezone.now()
    holder = holder_of(task, now=now)
    mine = holder is not None and holder.pk == reader.pk
    return Row(
        task=task,
        group=_group(task, now=now, held=holder is not None and not mine),
        order=int(task.due_at.timestamp()) if task.due_at else NO_DEADLINE + int(task.created_at.timestamp()),
        holder=holder,
        mine=mine,
        decision=None if task.is_open else last_decision(task),
        current=current,
    )


def groups_of(tasks: Iterable[ReviewTask], reader: User, *, current: ReviewTask | None) -> list[Group]:
    """Return the list's groups, each in the order of its tasks; empty ones stay, to receive pushed rows."""
    rows = [row_of(task, reader, current=current is not None and task.pk == current.pk) for task in tasks]
    overdue = [row for row in rows if row.group == "overdue"]
    soon = [row for row in rows if row.group == "soon"]
    return [
        Group("overdue", _("Overdue"), overdue),
        Group("soon", _("Due in 15 minutes"), soon),
        Group(
            "later",
            _("Later") if soon or overdue else _("Waiting"),
            [row for row in rows if row.group == "later"],
        ),
        Group("held", _("Claimed by others"), [row for row in rows if row.group == "held"]),
    ]


def holder_of(task: ReviewTask, *, now: dt.datetime | None = None) -> User | None:
    """Return who holds the open task now, or None."""
    if not task.is_open or task.claimed_by is None or task.claimed_until is None:
        return None
    return task.claimed_by if task.claimed_until > (now or timezone.now()) else None


def last_decision(task: ReviewTask) -> Decision | None:
    """Return the newest decision on the task with its person, or None."""
    return task.decisions.select_related("person").order_by("-decided_at", "-pk").first()


def _group(task: ReviewTask, *, now: dt.datetime, held: bool) -> str:
    if not task.is_open:
        return "done"
    if held:
        return "held"
    if task.overdue_at is not None:
        return "overdue"
    return "soon" if task.due_at is not None and task.due_at - now < SOON else "later"
