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
from typing import Any
from uuid import UUID

from django.db import connection

from agents_runtime.canonical import Json, storable
from agents_runtime.compiled import ask, tell
from reviewer.accounts.models import User

SYSTEM = "Countersign"
PAYLOAD_VERSION = 1
MAX_SAFE_INTEGER = 2**53 - 1
MOST_AT_ONCE = 20
"""Rows of one statement: each number makes another one, which every session prepares."""
Fact = str | bool | int | None
_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_GIVEN = (
    "type", "payload", "actor_id", "actor_name", "run_id", "task_id", "queue_id", "agent", "tool", "outcome",
)  # fmt: skip


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
    rows = [_row(type, actor, subject) for type, subject in events]
    for start in range(0, len(rows), MOST_AT_ONCE):
        part = rows[start : start + MOST_AT_ONCE]
        tell(_insertion(len(part)), *(value for row in part for value in row))


def record_with(
    type: str, *, actor: User | None = None, subject: Subject, statement: str, values: Sequence[object]
) -> list[Any]:
    """Write one event as ``record`` does, by one statement with another, and return what that other returns.

    ``statement`` is what would follow ``WITH``.
    """
    _check_transaction()
    sql = f"WITH event AS ({_insertion(1)}), {statement}"
    return ask(sql, *_row(type, actor, subject), *values)


def record_if(
    type: str, *, actor: User | None = None, subject: Subject, statement: str, values: Sequence[object]
) -> None:
    """Write one event for each row that a change returns, by one statement with it, as ``record`` does.

    Being one statement, it commits as a whole also where no transaction was begun.
    """
    tell(_insertion_if(statement), *values, *_row(type, actor, subject))


def _check_transaction() -> None:
    if not connection.in_atomic_block:
        raise RuntimeError("An audit event is written only inside the transaction of the change it tells of.")


@cache
def _insertion(count: int) -> str:
    row = f"({', '.join(['%s'] * len(_GIVEN))})"
    columns, rows = ", ".join(_GIVEN), ", ".join([row] * count)
    return f"INSERT INTO reviewer_auditevent ({columns}) VALUES {rows}"  # noqa: S608  no value


@cache
def _insertion_if(statement: str) -> str:
    columns, places = ", ".join(_GIVEN), ", ".join(["%s"] * len(_GIVEN))
    event = f"INSERT INTO reviewer_auditevent ({columns}) SELECT {places} FROM change"  # noqa: S608  no value
    return f"WITH change AS ({statement}) {event}"


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
