"""Runs, what they have asked and how they get on; and the agents that can be run.

Does not live here: a run's tasks (``tasks``) and its events (``trail``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from agents_runtime import runs as front_door
from agents_runtime.compiled import SOME_ID, Compiled
from agents_runtime.models import AgentSpec, Pause, RegistrationProblem, Run, ToolExecution
from agents_runtime.states import OPEN_PAUSE, ExecutionStatus, PauseStatus, RunStatus
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.errors import NotAllowed, NotFound
from reviewer.models import ReviewTask, TaskStatus
from reviewer.queries.sight import BySight, visible_runs

SHORTEST_ID = 6
ID_SIGNS = frozenset("0123456789abcdef-")


@dataclass(frozen=True)
class RunFilter:
    """What part of the runs to show; empty fields do not filter."""

    status: str = ""
    agent: str = ""
    mine: bool = False


@dataclass(frozen=True)
class Asked:
    """A pause of a run with the keys of its tasks, in order."""

    pause: Pause
    tasks: Sequence[UUID]


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
_run = BySight(lambda user, run_id: visible_runs(user).filter(pk=run_id).annotate(**_STARTED))


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
