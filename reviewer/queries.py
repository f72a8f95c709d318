"""Every read of the humans' side, with the permission inside: what is not visible does not exist.

Pages, fragments, API and sockets all read through these functions, so no door can show more than another.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, F, IntegerField, Min, Model, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils.timezone import localdate
from django.utils.translation import gettext as _

from agents_runtime import runs as front_door
from agents_runtime.canonical import storable
from agents_runtime.compiled import SOME_ID, SOME_NUMBER, Compiled, Row, rows_of_all
from agents_runtime.models import LONG_TEXTS_OF_RUN, AgentSpec, Pause, RegistrationProblem, Run, ToolExecution
from agents_runtime.states import OPEN_PAUSE, ExecutionStatus, PauseStatus, RunStatus
from reviewer.accounts import permissions
from reviewer.accounts.models import Role, User
from reviewer.errors import NotAllowed, NotFound
from reviewer.models import AuditEvent, Decision, Policy, Queue, QueueMembership, ReviewTask, TaskStatus

RUN_FRAME = ("run.started", "run.finished", "run.failed", "run.cancelled")
SHORTEST_ID = 6
ID_SIGNS = frozenset("0123456789abcdef-")
URGENT_FIRST = (F("due_at").asc(nulls_last=True), "created_at", "pause__place", "position", "pk")


@dataclass(frozen=True)
class QueueCount:
    """A queue with what waits in it, as the rail shows it."""

    queue: Queue
    waiting: int
    oldest: dt.datetime | None


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


@dataclass(frozen=True)
class RunFilter:
    """What part of the runs to show; empty fields do not filter."""

    status: str = ""
    agent: str = ""
    mine: bool = False


@dataclass(frozen=True)
class AuditFilter:
    """What part of the trail to show; empty fields do not filter."""

    person: int | None = None
    agent: str = ""
    tool: str = ""
    queue: int | None = None
    outcome: str = ""
    type: str = ""
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    run: UUID | None = None
    task: UUID | None = None


@dataclass(frozen=True)
class Asked:
    """A pause of a run with the keys of its tasks, in order."""

    pause: Pause
    tasks: Sequence[UUID]


class _BySight(Generic[Row]):
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


# Tasks


def visible_tasks(user: User) -> QuerySet[ReviewTask]:
    """Return the tasks this person may see, each once; of their runs without the long texts."""
    visible = ReviewTask.objects.filter(permissions.visible_tasks(user)).values("pk")
    return (
        ReviewTask.objects.filter(pk__in=visible)
        .select_related("queue", "run", "run__agent", "pause", "policy", "claimed_by", "assigned_to")
        .defer("pause__value", *(f"run__{name}" for name in LONG_TEXTS_OF_RUN))
    )


_task = _BySight(lambda user, task_id: visible_tasks(user).filter(pk=task_id))


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


_card = _BySight(lambda user, task_id: _cards(user).filter(pk=task_id))


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


_locked_task = _BySight(lambda user, task_id: _locked_whole(visible_tasks(user).filter(pk=task_id)))
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


def queue_counts(user: User) -> Sequence[QueueCount]:
    """Return the queues this person may see with what waits in each."""
    waiting = Q(tasks__status=TaskStatus.OPEN)
    queues = Queue.objects.filter(pk__in=visible_queues(user).values("pk")).annotate(
        waiting=Count("tasks", filter=waiting), oldest=Min("tasks__created_at", filter=waiting)
    )
    return [QueueCount(queue=queue, waiting=queue.waiting, oldest=queue.oldest) for queue in queues]


def work_counts(user: User) -> WorkCounts:
    """Return this person's own numbers."""
    waiting = inbox(user, InboxFilter()).order_by().aggregate(count=Count("pk"), oldest=Min("created_at"))
    return WorkCounts(
        waiting=waiting["count"],
        oldest=waiting["oldest"],
        claimed=ReviewTask.objects.held_by(user).count(),
        decided_today=user.decisions.filter(decided_at__date=localdate()).count(),
    )


# Queues


def visible_queues(user: User) -> QuerySet[Queue]:
    """Return the queues this person may see."""
    return Queue.objects.filter(permissions.visible_queues(user)).distinct()


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


# Runs and agents


def visible_runs(user: User) -> QuerySet[Run]:
    """Return the runs this person may see, newest first."""
    visible = Run.objects.filter(permissions.visible_runs(user)).values("pk")
    return Run.objects.filter(pk__in=visible).select_related("agent").order_by("-created_at")


def runs(user: User, wanted: RunFilter) -> QuerySet[Run]:
    """Return one view of the runs, newest first; ``open_tasks`` counts the decisions that each waits for."""
    found = visible_runs(user)
    if wanted.status:
        found = found.filter(status=wanted.status)
    if wanted.agent:
        found = found.filter(agent__name=wanted.agent)
    if wanted.mine:
        found = found.filter(requested_by=user.reference)
    return found.annotate(open_tasks=Count("tasks", filter=Q(tasks__status=TaskStatus.OPEN)))


def stuck_runs(user: User) -> QuerySet[Run]:
    """Return the runs of this person's queues that may be stuck, longest first; 403 for who leads nothing."""
    if not permissions.can_see_stuck(user):
        raise NotAllowed(_("Only leads, administrators and auditors see the runs that are stuck."))
    watched = Run.objects.filter(permissions.watched_runs(user)).values("pk")
    return front_door.find_stuck(Run.objects.filter(pk__in=watched))


def find_run(user: User, text: str) -> Run | None:
    """Return the one visible run whose id is, or starts with, this text (``r-1a2b3c4d`` or a whole id)."""
    start = text.strip().lower().removeprefix("r-")
    if len(start) < SHORTEST_ID or not set(start) <= ID_SIGNS:
        return None
    found = list(visible_runs(user).filter(pk__startswith=start)[:2])
    return found[0] if len(found) == 1 else None


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


def tools_under_way(run: Run) -> set[str]:
    """Return the gated tools of the run that have started and whose end nobody has recorded."""
    return set(run.executions.filter(status=ExecutionStatus.STARTED).values_list("tool", flat=True))


def requesters(runs: Iterable[Run]) -> dict[str, User]:
    """Return the people behind the runs' opaque references."""
    keys = {reference.removeprefix("user:") for reference in (run.requested_by for run in runs)}
    return {
        user.reference: user for user in User.objects.filter(pk__in=[key for key in keys if key.isdigit()])
    }


_STARTED = {
    "has_started": Exists(ToolExecution.objects.filter(run=OuterRef("pk"), status=ExecutionStatus.STARTED))
}
_run = _BySight(lambda user, run_id: visible_runs(user).filter(pk=run_id).annotate(**_STARTED))


def get_run(user: User, run_id: UUID) -> Run:
    """Return one run, which knows whether it ``has_started`` what may not have ended; or ``NotFound``."""
    run = _run.first(user, run_id)
    if run is None:
        raise NotFound(_("There is no such run."))
    return run


def _pauses_with_tasks(run_id: UUID) -> QuerySet[Pause]:
    tasks = ReviewTask.objects.filter(pause=OuterRef("pk")).order_by("position", "pk")
    pauses = Pause.objects.filter(run=run_id).order_by("created_at", "place", "pk")
    return pauses.annotate(task_ids=ArraySubquery(tasks.values("pk")))


_pauses_in_run = Compiled(_pauses_with_tasks, SOME_ID)


def asked_by(run: Run) -> Sequence[Asked]:
    """Return all that a run which one may see has asked, in order, whoever may see its tasks."""
    if run.status == RunStatus.QUEUED:  # no worker has had it
        return ()
    return [Asked(pause, vars(pause).pop("task_ids")) for pause in _pauses_in_run.rows(run.pk)]


ON_ITS_WAY = frozenset({PauseStatus.ANSWERED, PauseStatus.DELIVERING})
MAY_WORK = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING})


def is_at_work(run: Run, asked: Sequence[Asked]) -> bool:
    """Say whether a worker has the run or will have it without anybody doing anything."""
    if run.status == RunStatus.WAITING:
        open_now = {one.pause.status for one in asked} & OPEN_PAUSE
        # With none open, a worker closed the last one after this run was read.
        return open_now <= ON_ITS_WAY if open_now else not run.error
    return run.status in {RunStatus.QUEUED, RunStatus.RUNNING}


def is_on_its_way(pause: Pause) -> bool:
    """Say whether what was decided at a pause will take effect without anybody doing anything."""
    return pause.status in ON_ITS_WAY and pause.run.status in MAY_WORK


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


_decision = _BySight(_last_decision)


def get_decision(user: User, task_id: UUID) -> Decision:
    """Return the decision on a task, with the task; ``NotFound`` also while nobody has decided."""
    decision = _decision.first(user, task_id)
    if decision is None:
        get_task(user, task_id)
        raise NotFound(_("Nobody has decided this task."))
    decision.task.pause.run = decision.task.run
    decision.task.member = vars(decision).pop("reader")
    return decision


def agents(_user: User) -> QuerySet[AgentSpec]:
    """Return the agents; everyone who is signed in may know which there are."""
    return AgentSpec.objects.all()


def get_agent(user: User, name: str) -> AgentSpec:
    """Return one agent, or raise ``NotFound``."""
    agent = agents(user).filter(name=name).first()
    if agent is None:
        raise NotFound(_("There is no such agent."))
    return agent


def registration_problems(_user: User) -> QuerySet[RegistrationProblem]:
    """Return what could not be registered."""
    return RegistrationProblem.objects.all()


# The trail


def audit_events(user: User, wanted: AuditFilter) -> QuerySet[AuditEvent]:
    """Return the trail, newest first; ``NotAllowed`` for anyone but admins and auditors."""
    if not permissions.can_audit(user):
        raise NotAllowed(_("Only administrators and auditors can read the audit trail."))
    exact = {
        "actor_id": wanted.person,
        "agent": wanted.agent,
        "tool": wanted.tool,
        "queue_id": wanted.queue,
        "outcome": wanted.outcome,
        "type": wanted.type,
        "run_id": wanted.run,
        "task_id": wanted.task,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    filters = {name: value for name, value in exact.items() if value not in (None, "")}
    return AuditEvent.objects.filter(**filters).select_related("actor").order_by("-pk")


def get_audit_event(user: User, event_id: int) -> AuditEvent:
    """Return one event, or raise ``NotFound``."""
    event = audit_events(user, AuditFilter()).filter(pk=event_id).first()
    if event is None:
        raise NotFound(_("There is no such event."))
    return event


def related_events(user: User, event: AuditEvent) -> QuerySet[AuditEvent]:
    """Return the story around an event, oldest first: of its card, else of its run, else of its queue."""
    trail = audit_events(user, AuditFilter()).order_by("pk")
    if event.task_id is not None:
        return trail.filter(_story_of_card(event.task_id, event.run_id))
    if event.run_id is not None:
        return trail.filter(run_id=event.run_id)
    if event.queue_id is not None:
        return trail.filter(queue_id=event.queue_id, run_id__isnull=True)
    return trail.filter(pk=event.pk)


def _story_of_card(task_id: UUID, run_id: UUID | None) -> Q:
    """Return the condition for a card's own events, those of its pause, and how its run began and ended."""
    of_card = Q(task_id=task_id) | Q(run_id=run_id, type__in=RUN_FRAME)
    task = ReviewTask.objects.filter(pk=task_id).select_related("pause").first()
    if task is None:
        return of_card
    named = f'"interrupt":{json.dumps(task.pause.interrupt_id)}'
    return of_card | Q(run_id=run_id, task_id__isnull=True, payload__contains=named)


def run_events(user: User, run: Run) -> QuerySet[AuditEvent]:
    """Return the events of a run that this person may see, oldest first, for its timeline."""
    get_run(user, run.pk)
    return AuditEvent.objects.filter(run_id=run.pk).select_related("actor").order_by("pk")
