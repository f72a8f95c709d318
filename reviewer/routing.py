"""Where a request goes: the most specific policy that matches its agent and tool."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db.models import Q

from agents_runtime.canonical import storable
from agents_runtime.compiled import Compiled
from reviewer.clock import database_now
from reviewer.models import Policy, Queue
from reviewer.models.queues import Risk

DEFAULT_LABEL = "default v1"
AUTHOR_LABEL = "the agent's author"
_default = Compiled(lambda: Queue.objects.filter(is_default=True))
_policies = Compiled(
    lambda agent, tool: Policy.objects.select_related("queue").filter(
        Q(agent=agent) | Q(agent=""), Q(tool=tool) | Q(tool="")
    ),
    "some agent",
    "some tool",
)


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
    policy = _matching_policy(agent=agent, tool=tool)
    if policy is None:
        hinted = Queue.objects.filter(slug=queue).first() if queue else None
        return Route(
            queue=hinted or _default_queue(),
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


def _matching_policy(*, agent: str, tool: str) -> Policy | None:
    matching = _policies.rows(agent, storable(tool))
    # A policy for the tool says more than one for the agent; one for both says most.
    return max(matching, key=lambda policy: (policy.tool != "", policy.agent != ""), default=None)


def _default_queue() -> Queue:
    if known := _default.first():
        return known
    queue, _ = Queue.objects.get_or_create(
        is_default=True,
        defaults={"slug": "general", "name": "General", "description": "What no policy sends elsewhere"},
    )
    return queue


def _due(minutes: int | None) -> dt.datetime | None:
    return database_now() + dt.timedelta(minutes=minutes) if minutes else None
