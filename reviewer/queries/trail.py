"""The trail: its events, one event with the story around it, and the events of one run."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from agents_runtime.models import Run
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.errors import NotAllowed, NotFound
from reviewer.models import AuditEvent, ReviewTask
from reviewer.queries.agent_runs import get_run

RUN_FRAME = ("run.started", "run.finished", "run.failed", "run.cancelled")


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
