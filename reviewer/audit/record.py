"""The only writer of the audit trail.

Every function that changes state calls ``record`` in its own transaction: event and change commit
together, or neither does. The payload is RFC 8785 text that holds strings, booleans and small integers;
an agent's values go in as their canonical text, so their bytes stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

import rfc8785
from django.db import connection

from agents_runtime.canonical import Json, storable
from agents_runtime.compiled import insert
from reviewer.accounts.models import User
from reviewer.models import AuditEvent

SYSTEM = "Countersign"
PAYLOAD_VERSION = 1
MAX_SAFE_INTEGER = 2**53 - 1
Fact = str | bool | int | None


@dataclass(frozen=True)
class Subject:
    """What an event is about, for finding it again."""

    run_id: UUID | None = None
    task_id: UUID | None = None
    queue_id: int | None = None
    agent: str = ""
    tool: str = ""
    outcome: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


def record(type: str, *, actor: User | None = None, subject: Subject) -> AuditEvent:
    """Write one event in the current transaction and return it. ``actor`` None: the product itself."""
    if not connection.in_atomic_block:
        raise RuntimeError("An audit event is written only inside the transaction of the change it tells of.")
    payload: Json = {
        "v": PAYLOAD_VERSION,
        "type": type,
        "actor": _actor(actor),
        "run": str(subject.run_id) if subject.run_id else None,
        "task": str(subject.task_id) if subject.task_id else None,
        "queue": subject.queue_id,
        "agent": subject.agent,
        "tool": storable(subject.tool),
        "outcome": subject.outcome,
        "facts": {name: _safe(value) for name, value in subject.facts.items()},
    }
    event = AuditEvent(
        type=type,
        payload=rfc8785.dumps(payload).decode("utf-8"),
        actor=actor,
        actor_name=actor.display_name if actor else SYSTEM,
        run_id=subject.run_id,
        task_id=subject.task_id,
        queue_id=subject.queue_id,
        agent=subject.agent,
        tool=storable(subject.tool),
        outcome=subject.outcome,
    )
    return insert(event)


def _actor(actor: User | None) -> dict[str, object]:
    if actor is None:
        return {"id": None, "name": SYSTEM, "role": "system"}
    return {"id": actor.pk, "name": actor.display_name, "username": actor.username, "role": actor.role}


def _safe(value: Fact) -> Fact:
    """Make a value fit for the database and RFC 8785: no NUL, no lone surrogate, no integer past 2**53."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    return storable(value)
