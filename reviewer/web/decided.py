"""What was decided and what came of it, as a decided card tells it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents_runtime.canonical import Json, decode, digest
from agents_runtime.models import ToolExecution
from reviewer import cards
from reviewer.cards import render as draw
from reviewer.models import Decision, ReviewTask, Verdict
from reviewer.web.stages import duration_words


@dataclass(frozen=True)
class Fact:
    """One line of what happened after the decision."""

    icon: str
    text: str
    at: dt.datetime | None = None


def changes_of(card: cards.Card, decision: Decision | None) -> SafeString | None:
    """Return what an edit changed, drawn."""
    if decision is None or decision.verdict != Verdict.EDIT:
        return None
    return draw.render_diff(card.changes(decode(decision.answer)))


def answer_of(task: ReviewTask, decision: Decision | None) -> SafeString | None:
    """Return what was answered beside a plain approval or an edit, drawn."""
    if decision is None or decision.verdict in {Verdict.APPROVE, Verdict.EDIT}:
        return None
    answer: Json = decode(decision.answer)
    if isinstance(answer, dict) and decision.verdict in {Verdict.REJECT, Verdict.RESPOND}:
        answer = {name: value for name, value in answer.items() if name != "type"}
        return draw.render_value({"type": "object"}, answer) if answer else None
    return draw.render_value(task.schema, answer)


def story_of(task: ReviewTask, decision: Decision | None, executions: Sequence[ToolExecution]) -> list[Fact]:
    """Return what happened after the decision, oldest first."""
    if decision is None:
        return []
    facts: list[Fact] = []
    if decision.verdict == Verdict.EDIT:
        version = digest(decode(decision.answer))
        facts.append(
            Fact("pencil", _("Sent as version %(digest)s") % {"digest": f"{version[:4]}…{version[-2:]}"})
        )
    if task.pause.delivery_started_at:
        facts.append(Fact("send", _("The run was resumed with it"), task.pause.delivery_started_at))
    for execution in executions:
        facts.append(Fact("play", _("Call %(n)s started") % {"n": execution.attempt}, execution.started_at))
        if execution.finished_at:
            facts.append(_ending(execution))
    return facts


def _ending(execution: ToolExecution) -> Fact:
    words = {
        "succeeded": ("circle-check", _("The tool answered")),
        "raised": ("octagon-alert", _("The tool raised an error")),
        "suspended": ("circle-pause", _("The tool paused to ask something itself")),
        "asserted": ("user-check", _("A person said that it happened")),
        "abandoned": ("ban", _("Given up; its outcome is unknown")),
    }
    icon, text = words.get(execution.status, ("circle-dot", execution.get_status_display()))
    took = duration_words(execution)
    return Fact(
        icon, f"{text}, {took}" if took and execution.status == "succeeded" else text, execution.finished_at
    )
