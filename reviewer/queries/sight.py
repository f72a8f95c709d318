"""What a person may see at all: the tasks, queues and runs from which every other read begins.

Does not live here: the conditions for that (``accounts.permissions``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic
from uuid import UUID

from django.db.models import QuerySet

from agents_runtime.compiled import SOME_ID, SOME_NUMBER, Compiled, Row
from agents_runtime.models import LONG_TEXTS_OF_RUN, Run
from reviewer.accounts import permissions
from reviewer.accounts.models import Role, User
from reviewer.models import Queue, ReviewTask


class BySight(Generic[Row]):
    """A read of what belongs to one key, as a person may see it: ``make`` gets both.

    It is made once for those who see all queues, whose memberships need no look, and once for all others.
    """

    def __init__(self, make: Callable[[User, UUID], QuerySet[Row]]) -> None:
        keys = (SOME_ID, SOME_NUMBER, User(pk=SOME_NUMBER).reference)
        self._any = Compiled(lambda key, user_id, _: make(User(pk=user_id, role=Role.AUDITOR), key), *keys)
        self._seen = Compiled(lambda key, user_id, _: make(User(pk=user_id), key), *keys)

    def first(self, user: User, key: UUID) -> Row | None:
        """Return it, if there is any that this person may see."""
        query, values = self.asked(user, key)
        return query.first(*values)

    def asked(self, user: User, key: UUID) -> tuple[Compiled[Row], Sequence[object]]:
        """Return the query for this person, and its values."""
        read = self._any if permissions.sees_all_queues(user) else self._seen
        return read, (key, user.pk, user.reference)


def visible_tasks(user: User) -> QuerySet[ReviewTask]:
    """Return the tasks this person may see, each once; of their runs without the long texts."""
    visible = ReviewTask.objects.filter(permissions.visible_tasks(user)).values("pk")
    return (
        ReviewTask.objects.filter(pk__in=visible)
        .select_related("queue", "run", "run__agent", "pause", "policy", "claimed_by", "assigned_to")
        .defer("pause__value", *(f"run__{name}" for name in LONG_TEXTS_OF_RUN))
    )


_ids_in_run = {
    True: Compiled(
        lambda run_id, *_: (
            visible_tasks(User(role=Role.AUDITOR)).select_related(None).filter(run=run_id).only("pk")
        ),
        SOME_ID,
    ),
    False: Compiled(
        lambda run_id, user_id, _: (
            visible_tasks(User(pk=user_id)).select_related(None).filter(run=run_id).only("pk")
        ),
        SOME_ID,
        SOME_NUMBER,
        User(pk=SOME_NUMBER).reference,
    ),
}


def sees_all_of_run(user: User, run: Run) -> bool:
    """Say whether this person may see every task of a run that they may see, whatever queue it is in."""
    return permissions.sees_all_queues(user) or run.requested_by == user.reference


def visible_in_run(user: User, run: Run) -> set[UUID]:
    """Return the keys of a run's tasks that this person may see."""
    found = _ids_in_run[permissions.sees_all_queues(user)].rows(run.pk, user.pk, user.reference)
    return {task.pk for task in found}


def visible_queues(user: User) -> QuerySet[Queue]:
    """Return the queues this person may see."""
    return Queue.objects.filter(permissions.visible_queues(user)).distinct()


def visible_runs(user: User) -> QuerySet[Run]:
    """Return the runs this person may see, newest first."""
    visible = Run.objects.filter(permissions.visible_runs(user)).values("pk")
    return Run.objects.filter(pk__in=visible).select_related("agent").order_by("-created_at")
