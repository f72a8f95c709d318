"""Does the trail agree with itself and with the decisions it tells of?

What it finds: events whose payload and columns differ, or whose payload is not in its canonical form;
decisions without their event, or whose event says something else; kept cards whose HTML changed;
append-only triggers that are missing or switched off. What it cannot find: events that somebody with the
database owner's rights removed or rewrote as a whole. That takes a seal outside the database, which does not
exist yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import rfc8785
from django.db import connection

from agents_runtime.canonical import decode, digest
from reviewer.audit.export import events
from reviewer.models import AuditEvent, Decision, Snapshot
from reviewer.models.showings import Sha256

GUARDS = {
    "reviewer_auditevent": ("audit_is_append_only", "audit_is_never_emptied"),
    "reviewer_decision": ("decision_is_final",),
    "reviewer_outcome": ("outcome_is_final",),
    "reviewer_snapshot": ("snapshot_is_final", "snapshots_are_never_emptied"),
    "reviewer_showing": ("showing_is_final", "showings_are_never_emptied"),
    "reviewer_expansion": ("expansion_is_final", "expansions_are_never_emptied"),
}


@dataclass(frozen=True)
class Report:
    """What a check found. ``missing_ids``: numbers between first and last that no event has."""

    events: int
    decisions: int
    missing_ids: int
    faults: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Say whether no fault was found; a missing number is none, since a rolled-back change leaves one."""
        return not self.faults


def verify() -> Report:
    """Check the whole trail."""
    faults: list[str] = []
    told: dict[tuple[str, int], dict[str, Any]] = {}
    count, first, last = 0, 0, 0
    for event in events():
        count, first, last = count + 1, first or event.pk, event.pk
        payload, found = _check(event)
        faults += [f"event {event.pk}: {fault}" for fault in found]
        if payload is not None and event.type == "decision.made" and event.actor_id is not None:
            told[str(event.task_id), event.actor_id] = payload
    decisions = list(Decision.objects.select_related("showing").order_by("pk"))
    faults += [fault for decision in decisions for fault in _untold(decision, told)]
    faults += _damaged()
    faults += _unguarded()
    missing = last - first + 1 - count if count else 0
    return Report(events=count, decisions=len(decisions), missing_ids=missing, faults=tuple(faults))


def _check(event: AuditEvent) -> tuple[dict[str, Any] | None, list[str]]:
    try:
        payload = json.loads(event.payload)
        canonical = rfc8785.dumps(payload).decode("utf-8")
    except (ValueError, rfc8785.CanonicalizationError):
        return None, ["the payload is not JSON"]
    if not isinstance(payload, dict):
        return None, ["the payload is not an object"]
    faults = [] if canonical == event.payload else ["the payload is not in its canonical form"]
    return payload, faults + list(_differences(event, payload))


def _differences(event: AuditEvent, payload: dict[str, Any]) -> Iterator[str]:
    actor = payload.get("actor") or {}
    columns = {
        "type": (event.type, payload.get("type")),
        "actor": (event.actor_id, actor.get("id")),
        "actor's name": (event.actor_name, actor.get("name")),
        "run": (str(event.run_id) if event.run_id else None, payload.get("run")),
        "task": (str(event.task_id) if event.task_id else None, payload.get("task")),
        "queue": (event.queue_id, payload.get("queue")),
        "agent": (event.agent, payload.get("agent")),
        "tool": (event.tool, payload.get("tool")),
        "outcome": (event.outcome, payload.get("outcome")),
    }
    for name, (column, told) in columns.items():
        if column != told:
            yield f"the {name} is {column!r} in its column and {told!r} in its payload"


def _untold(decision: Decision, told: dict[tuple[str, int], dict[str, Any]]) -> Iterator[str]:
    """Yield what is wrong between a decision and its event."""
    payload = told.get((str(decision.task_id), decision.person_id))
    if payload is None:
        yield f"decision {decision.pk}: no event tells of it"
        return
    facts = payload.get("facts") or {}
    pairs = {
        "verdict": (decision.verdict, payload.get("outcome")),
        "answer": (digest(decode(decision.answer)), facts.get("answer_digest")),
        "digest": (decision.digest, facts.get("digest")),
        "comment": (decision.comment, facts.get("comment")),
        "reason": (decision.reason_code, facts.get("reason_code")),
        "difference": (decision.changes, facts.get("changes", "")),
        "card as shown": (decision.showing.snapshot_id if decision.showing else None, facts.get("shown")),
    }
    for name, (stored, recorded) in pairs.items():
        if stored != recorded:
            yield f"decision {decision.pk}: its {name} differs from what its event says"


def _damaged() -> Iterator[str]:
    """Yield the kept cards that are no longer what was kept: their SHA-256 is their name."""
    changed = Snapshot.objects.exclude(sha256=Sha256("html")).order_by("pk")
    for name in changed.values_list("pk", flat=True):
        yield f"card as shown {name}: its HTML is not the one that was kept"


def _unguarded() -> Iterator[str]:
    """Yield the append-only triggers that are missing or switched off."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, tgname FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgenabled <> 'D'"
        )
        active = cursor.fetchall()
    for table, names in GUARDS.items():
        for name in names:
            if not any(on == table and trigger.startswith(f"pgtrigger_{name}_") for on, trigger in active):
                yield f"table {table}: the trigger {name} is missing or switched off"
