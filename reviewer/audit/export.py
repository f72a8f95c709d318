"""The trail as JSON Lines, oldest first: one event a line, with everything that is stored about it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from reviewer.models import AuditEvent

PART = 1_000


def lines() -> Iterator[str]:
    """Yield one line for each event, without its end; reads in parts, so that a long trail fits in memory."""
    for event in events():
        yield json.dumps(
            {
                "id": event.pk,
                "at": event.at.isoformat(),
                "type": event.type,
                "actor": event.actor_id,
                "actor_name": event.actor_name,
                "run": str(event.run_id) if event.run_id else None,
                "task": str(event.task_id) if event.task_id else None,
                "queue": event.queue_id,
                "agent": event.agent,
                "tool": event.tool,
                "outcome": event.outcome,
                "payload": event.payload,
            },
            sort_keys=True,
        )


def events() -> Iterator[AuditEvent]:
    """Yield every event, oldest first."""
    after = 0
    while part := list(AuditEvent.objects.filter(pk__gt=after).order_by("pk")[:PART]):
        yield from part
        after = part[-1].pk
