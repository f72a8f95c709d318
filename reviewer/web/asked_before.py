"""What the agent asked before in the same step, and what it got: a question may come again because of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.safestring import SafeString

from agents_runtime.canonical import Json, decode
from agents_runtime.states import PauseStatus
from reviewer import queries
from reviewer.accounts.models import User
from reviewer.cards import render as draw
from reviewer.models import Decision, ReviewTask, TaskStatus
from reviewer.web.rows import last_decision

WHY: Final = ("error", "errors", "problem", "problems", "reason", "why", "invalid", "feedback")
"""Under these keys an agent usually says why it asks again."""


@dataclass(frozen=True)
class AskedBefore:
    """The card before this one with its answer, and the reason to ask again, where the agent tells one."""

    task: ReviewTask
    decision: Decision
    answer: SafeString
    is_refused: bool
    why: SafeString | None = None


def asked_before(task: ReviewTask, reader: User) -> AskedBefore | None:
    """Return what was asked before this open card, as far as the reader may see it."""
    if not task.is_open:
        return None
    earlier = task.previous or _in_the_same_step(task)
    if earlier is None or not queries.visible_tasks(reader).filter(pk=earlier.pk).exists():
        return None
    decision = last_decision(earlier)
    if decision is None:
        return None
    return AskedBefore(
        task=earlier,
        decision=decision,
        answer=draw.render_value(earlier.schema, decode(decision.answer)),
        is_refused=task.previous is not None,
        why=_why(task.arguments),
    )


def _in_the_same_step(task: ReviewTask) -> ReviewTask | None:
    """Return the last question that the same run of a node asked and got an answer to."""
    if task.kind != ReviewTask.Kind.QUESTION or not task.pause.namespace:
        return None
    return (
        ReviewTask.objects.filter(
            run=task.run_id,
            kind=ReviewTask.Kind.QUESTION,
            status=TaskStatus.DECIDED,
            pause__namespace=task.pause.namespace,
            pause__status=PauseStatus.DELIVERED,
        )
        .exclude(pause=task.pause_id)
        .order_by("-pause__answered_at", "-pk")
        .first()
    )


def _why(value: Json) -> SafeString | None:
    """Return the agent's reason, where a question says one apart."""
    found = next((value[key] for key in WHY if value.get(key)), None) if isinstance(value, dict) else None
    if found is None:
        return None
    return draw.render_prose(found) if isinstance(found, str) else draw.render_value(True, found)
