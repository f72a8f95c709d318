"""Deadlines: until when a task should be decided, what happens then, and whether its time is over.

A deadline comes from the policy that routed the request, else from its queue, else from a hint of the agent's
author. What happens then is one of two things: the task is held, or it is rejected. Nothing here approves.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.utils.translation import gettext as _

from agents_runtime.canonical import Json
from agents_runtime.desk import ReviewRequest
from reviewer.cards import Card
from reviewer.clock import database_now
from reviewer.models import Queue, ReviewTask, Verdict
from reviewer.models.queues import OnExpiry
from reviewer.routing import Route
from reviewer.shown import card_of

NO_DECISION = "Rejected: no decision in time."
MAX_SECONDS = 366 * 24 * 3600


@dataclass(frozen=True)
class Deadline:
    """``at``: the moment, by the database's clock, or None for no deadline; ``label``: whose rule it is."""

    at: dt.datetime | None = None
    on_expiry: str = OnExpiry.HOLD
    label: str = ""


def deadline_of(request: ReviewRequest, where: Route, *, queue: Queue) -> Deadline:
    """Return the deadline of a request that opens now in ``queue``."""
    if where.due_at is not None and where.policy is not None:
        return Deadline(where.due_at, where.policy.on_expiry, where.label)
    if queue.minutes_to_decide:
        label = _("queue %(name)s") % {"name": queue.name}
        return Deadline(_after(queue.minutes_to_decide * 60), queue.on_expiry, label)
    if request.expires_after is None or not 0 < request.expires_after <= MAX_SECONDS:
        return Deadline()
    wanted = request.on_expiry if request.on_expiry in OnExpiry.values else OnExpiry.HOLD
    return Deadline(_after(request.expires_after), wanted, _("the agent’s author"))


def is_over(task: ReviewTask, now: dt.datetime | None = None) -> bool:
    """Say whether the task's deadline has passed, by the database's clock; ``now`` is what that says."""
    return task.due_at is not None and task.due_at <= (now or database_now())


def ends_in_rejection(task: ReviewTask, card: Card) -> bool:
    """Say whether the task, whose card this is, will be rejected when its time is over, and not held."""
    return (
        task.on_expiry == OnExpiry.REJECT
        and task.kind == ReviewTask.Kind.TOOL_CALL
        and any(choice.verdict == Verdict.REJECT for choice in card.choices)
    )


def rejection_of(task: ReviewTask) -> Json:
    """Return the rejection that ends a task for want of a decision, or None if it can only be held.

    Only a tool call with a branch to reject it can be rejected: an answer to a question would be a made-up
    one, and to go on from a breakpoint would be an approval.
    """
    if task.on_expiry != OnExpiry.REJECT:
        return None
    card = card_of(task)
    if not ends_in_rejection(task, card):
        return None
    told = f"{NO_DECISION} Nobody decided by the deadline of {task.expiry_label}."
    candidates: tuple[Json, ...] = (
        {"type": "reject", "message": told},
        {"type": "reject", "message": NO_DECISION},
        {"type": "reject"},
    )
    return next((answer for answer in candidates if not card.validate(answer)), None)


def _after(seconds: int) -> dt.datetime:
    return database_now() + dt.timedelta(seconds=seconds)
