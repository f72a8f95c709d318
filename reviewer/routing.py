"""Where a request goes: the most specific policy that matches its agent and tool."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DEFAULT_DB_ALIAS
from django.db.models import F, FilteredRelation, Q, QuerySet

from agents_runtime.canonical import storable
from agents_runtime.compiled import Compiled
from reviewer.clock import database_now
from reviewer.models import Policy, Queue
from reviewer.models.queues import Risk

DEFAULT_LABEL = "default v1"
AUTHOR_LABEL = "the agent's author"
_POLICY = ("id", "name", "version", "agent", "tool", "queue_id", "risk", "minutes_to_decide", "on_expiry")
"""What is read of a policy, in the order of its columns."""


def _candidates(agent: str, tool: str) -> QuerySet[Queue]:
    """Return the queues of matching policies, each with its policy's columns, and the default queue."""
    matches = Q(policies__agent__in=["", agent], policies__tool__in=["", tool])
    queues = Queue.objects.annotate(match=FilteredRelation("policies", condition=matches))
    wanted = queues.filter(Q(is_default=True) | Q(match__isnull=False))
    return wanted.annotate(**{f"match_{name}": F(f"match__{name}") for name in _POLICY})


_queues = Compiled(_candidates, "some agent", "some tool")


@dataclass(frozen=True)
class Route:
    """A queue, how risky the request is, under which policy, and until when it should be decided."""

    queue: Queue
    risk: str
    policy: Policy | None
    label: str
    due_at: dt.datetime | None


def route(*, agent: str, tool: str, risk: str = "", queue: str = "") -> Route:
    """Return the route of a request; whatever no policy matches goes to the default queue at medium risk.

    ``risk`` and ``queue`` are hints of the agent's author. They count where no policy matches; beside a
    policy they can only raise the risk, so that no agent talks its way past the organisation's rules.
    """
    queues = _queues.rows(agent, storable(tool))
    policy = _matching_policy(queues)
    if policy is None:
        hinted = Queue.objects.filter(slug=queue).first() if queue else None
        return Route(
            queue=hinted or _default_queue(queues),
            risk=risk or Risk.MEDIUM,
            policy=None,
            label=AUTHOR_LABEL if risk or hinted else DEFAULT_LABEL,
            due_at=None,
        )
    return Route(
        queue=policy.queue,
        risk=max(policy.risk, risk or Risk.LOW, key=Risk.values.index),
        policy=policy,
        label=policy.label,
        due_at=_due(policy.minutes_to_decide),
    )


def _matching_policy(queues: Sequence[Queue]) -> Policy | None:
    matching = [policy for queue in queues if (policy := _policy_of(queue))]
    # A policy for the tool says more than one for the agent; one for both says most.
    return max(matching, key=lambda policy: (policy.tool != "", policy.agent != ""), default=None)


def _policy_of(queue: Queue) -> Policy | None:
    columns = [vars(queue)[f"match_{name}"] for name in _POLICY]
    if columns[0] is None:
        return None
    policy = Policy.from_db(DEFAULT_DB_ALIAS, _POLICY, columns)
    policy.queue = queue
    return policy


def _default_queue(queues: Sequence[Queue]) -> Queue:
    if known := next((queue for queue in queues if queue.is_default), None):
        return known
    queue, _ = Queue.objects.get_or_create(
        is_default=True,
        defaults={"slug": "general", "name": "General", "description": "What no policy sends elsewhere"},
    )
    return queue


def _due(minutes: int | None) -> dt.datetime | None:
    return database_now() + dt.timedelta(minutes=minutes) if minutes else None
