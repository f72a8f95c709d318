"""The only writer of the audit trail.

Every function that changes state calls ``record`` in its own transaction, or makes its change by one
statement with the event: both commit together, or neither does. The payload is RFC 8785 text that holds
strings, booleans and small integers; an agent's values go in as their canonical text, so their bytes stay as
they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from uuid import UUID

from django.db import connection

from agents_runtime.canonical import Json, storable
from agents_runtime.writing import Write, write, write_rows
from reviewer.accounts.models import User

SYSTEM = "Countersign"
PAYLOAD_VERSION = 1
MAX_SAFE_INTEGER = 2**53 - 1
Fact = str | bool | int | None
_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_GIVEN = (
    "type", "payload", "actor_id", "actor_name", "run_id", "task_id", "queue_id", "agent", "tool", "outcome",
)  # fmt: skip
_EVENT = Write(
    sql=f"INSERT INTO reviewer_auditevent ({', '.join(_GIVEN)}) VALUES ",  # noqa: S608  no value
    row=f"({', '.join(['%s'] * len(_GIVEN))})",
    tables=frozenset({"reviewer_auditevent"}),
)


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


def record(type: str, *, actor: User | None = None, subject: Subject) -> None:
    """Write one event in the current transaction. ``actor`` None: the product itself."""
    record_all([(type, subject)], actor=actor)


def record_all(events: Sequence[tuple[str, Subject]], *, actor: User | None = None) -> None:
    """Write events in this order, at one time, as ``record`` does."""
    _check_transaction()
    write_rows(_EVENT, [_row(type, actor, subject) for type, subject in events])


def record_if(
    type: str, *, actor: User | None = None, subject: Subject, change: Write, values: Sequence[object]
) -> None:
    """Make a change, and write one event for each row that it returns, by one statement with it.

    Being one statement, it commits as a whole also where no transaction was begun.
    """
    write(_event_if(change), *values, *_row(type, actor, subject))


def _check_transaction() -> None:
    if not connection.in_atomic_block:
        raise RuntimeError("An audit event is written only inside the transaction of the change it tells of.")


@cache
def _event_if(change: Write) -> Write:
    columns, places = ", ".join(_GIVEN), ", ".join(["%s"] * len(_GIVEN))
    return Write(
        before=f"change AS ({change.sql})",
        sql=f"INSERT INTO reviewer_auditevent ({columns}) SELECT {places} FROM change",  # noqa: S608  no value
        tables=_EVENT.tables | change.tables,
    )


def _row(type: str, actor: User | None, subject: Subject) -> tuple[object, ...]:
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
    return (
        type,
        canonical(payload),
        actor.pk if actor else None,
        actor.display_name if actor else SYSTEM,
        subject.run_id,
        subject.task_id,
        subject.queue_id,
        subject.agent,
        payload["tool"],
        subject.outcome,
    )


def canonical(payload: Json) -> str:
    """Return the RFC 8785 text of a payload: it holds no float, and its keys are the code's own names."""
    return _encoder.encode(payload)


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
