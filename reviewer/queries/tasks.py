"""Tasks: one, alone or locked with its run and its pause; lists of them; and the decision on one.

Does not live here: what waits for a person (``inboxes``) or in a queue (``queues``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

from django.db.models import F, IntegerField, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from agents_runtime.compiled import SOME_ID, SOME_NUMBER, Compiled, rows_of_all
from agents_runtime.models import Pause, Run
from reviewer.accounts import permissions
from reviewer.accounts.models import Role, User
from reviewer.errors import NotFound
from reviewer.models import Decision, QueueMembership, ReviewTask
from reviewer.queries.sight import BySight, visible_tasks

URGENT_FIRST = (F("due_at").asc(nulls_last=True), "created_at", "pause__place", "position", "pk")
_task = BySight(lambda user, task_id: visible_tasks(user).filter(pk=task_id))


def get_task(user: User, task_id: UUID) -> ReviewTask:
    """Return one task, or raise ``NotFound``."""
    return _existing_task(_task.first(user, task_id))


def _all_but(model: type[Model], path: str, *names: str) -> list[str]:
    fields = model._meta.concrete_fields  # noqa: SLF001  Django documents it as public
    return [f"{path}__{field.name}" for field in fields if field.name not in names and not field.primary_key]


_STANDING = (
    *_all_but(Run, "run", "status", "requested_by", "fed_by"),
    *_all_but(Pause, "pause", "run", "status", "kind", "tool", "interrupt_id", "calls"),
)
"""All of a task's run and pause but how they stand, and what was asked."""


def _cards(user: User) -> QuerySet[ReviewTask]:
    people = ("claimed_by", "assigned_to")
    return (
        visible_tasks(user)
        .select_related(None)
        .select_related("queue", "run", "pause", *people)
        .defer(*_STANDING)
        .annotate(reader=_member(user, "queue"))
    )


def _member(user: User, queue: str) -> Coalesce:
    """Return the key of this person where they belong to the queue of a row, else 0."""
    memberships = QueueMembership.objects.filter(user=user.pk, queue=OuterRef(queue)).order_by()
    return Coalesce(Subquery(memberships.values("user_id")), 0, output_field=IntegerField())


_card = BySight(lambda user, task_id: _cards(user).filter(pk=task_id))


def get_card(user: User, task_id: UUID) -> ReviewTask:
    """Return one task as programs get it: of its run and its pause only how they stand; or ``NotFound``."""
    task = _existing_task(_card.first(user, task_id))
    task.member = vars(task).pop("reader")
    return task


def _locked_whole(tasks: QuerySet[ReviewTask]) -> QuerySet[ReviewTask]:
    """Lock run, pause and task, in the one order; a row that was waited for is read as it is then.

    Nothing else is joined: rows joined to a lock that had to wait are those from before the wait.
    """
    joined = tasks.select_related(None).select_related("run", "pause").defer(*_STANDING)
    return joined.select_for_update(of=("run", "pause", "self")).annotate(moment=Now())


_locked_task = BySight(lambda user, task_id: _locked_whole(visible_tasks(user).filter(pk=task_id)))
_memberships = Compiled(
    lambda user_id, task_id: (
        QueueMembership.objects.filter(user=user_id, queue__tasks=task_id).only("pk").order_by()
    ),
    SOME_NUMBER,
    SOME_ID,
)


def lock_whole(user: User, task_id: UUID) -> ReviewTask:
    """Lock one task with its run and its pause, or raise ``NotFound``; its run's ``moment`` says when.

    Whether this person belongs to its queue is looked at after that, by its own statement: as it is then.
    """
    tasks, memberships = rows_of_all(_locked_task.asked(user, task_id), (_memberships, (user.pk, task_id)))
    task = _existing_task(next(iter(tasks), None))
    task.pause.run, task.run.moment = task.run, vars(task).pop("moment")
    task.member = user.pk if memberships else 0
    return task


def _existing_task(task: ReviewTask | None) -> ReviewTask:
    if task is None:
        raise NotFound(_("There is no such task."))
    return task


@lru_cache(maxsize=128)
def _listing(
    sees_all: bool, status: str, names: tuple[str, ...], limit: int, offset: int
) -> Compiled[ReviewTask]:
    """Return the query for one part of a list; each status has its own, for few of all tasks are open."""

    def make(user_id: int, _: str, *values: object) -> QuerySet[ReviewTask]:
        user = User(role=Role.AUDITOR) if sees_all else User(pk=user_id)
        found = visible_tasks(user).filter(**dict(zip(names, values, strict=True)))
        found = found.filter(status=status) if status else found
        return found.order_by(*URGENT_FIRST)[offset : offset + limit]

    examples = (SOME_ID if name == "run_id" else f"some {name}" for name in names)
    return Compiled(make, SOME_NUMBER, User(pk=SOME_NUMBER).reference, *examples)


def list_tasks(
    user: User,
    *,
    limit: int,
    offset: int = 0,
    status: str = "",
    queue: str = "",
    run: UUID | None = None,
) -> tuple[Sequence[ReviewTask], int]:
    """Return a part of the tasks this person may see that fit, most urgent first, and how many there are.

    ``queue`` is a slug; what is empty does not filter.
    """
    asked = {"queue__slug": queue, "run_id": run}
    conditions = {name: value for name, value in asked.items() if value}
    listing = _listing(permissions.sees_all_queues(user), status, tuple(conditions), limit, offset)
    part = listing.rows(user.pk, user.reference, *conditions.values())
    if len(part) < limit and (part or not offset):
        return part, offset + len(part)
    if status:
        conditions["status"] = status
    return part, visible_tasks(user).filter(**conditions).count()


def run_tasks(user: User, run: Run) -> Sequence[ReviewTask]:
    """Return the run's tasks that this person may see, in the order they were asked, with their decisions."""
    return list(
        visible_tasks(user)
        .filter(run=run)
        .prefetch_related("decisions__person")
        .order_by("created_at", "pause__place", "position", "pk")
    )


def open_tasks_of_run(run: Run) -> QuerySet[ReviewTask]:
    """Return what the run asks people now, seen or not: only to count it, and to close it."""
    return ReviewTask.objects.open().filter(run=run)


def _last_decision(user: User, task_id: UUID) -> QuerySet[Decision]:
    """Return the decision on a task that this person may see; of its run and pause only how they stand."""
    task = ReviewTask.objects.filter(permissions.visible_tasks(user), pk=task_id)
    standing = ("status", "requested_by", "fed_by")
    return (
        Decision.objects.filter(task__in=task.values("pk"))
        .select_related("showing", "task__pause", "task__run")
        .defer(*_all_but(Run, "task__run", *standing), *_all_but(Pause, "task__pause", "status"))
        .annotate(reader=_member(user, "task__queue"))
        .order_by("-decided_at")[:1]
    )


_decision = BySight(_last_decision)


def get_decision(user: User, task_id: UUID) -> Decision:
    """Return the decision on a task, with the task; ``NotFound`` also while nobody has decided."""
    decision = _decision.first(user, task_id)
    if decision is None:
        get_task(user, task_id)
        raise NotFound(_("Nobody has decided this task."))
    decision.task.pause.run = decision.task.run
    decision.task.member = vars(decision).pop("reader")
    return decision
