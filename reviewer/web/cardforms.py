"""The form that lies open on a card: as asked for, as it was sent, or as the agent refused it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from agents_runtime.canonical import Json, decode, digest
from reviewer import cards
from reviewer.cards import render as draw
from reviewer.models import ReviewTask, Verdict
from reviewer.models.queues import Risk

SECOND_STEP = SafeString('<input type="hidden" name="verdict" value="approve">')


@dataclass(frozen=True)
class OpenForm:
    """The fields of one verdict; for an edit also what it changes, how much, and that version's digest."""

    verdict: str = ""
    fields: SafeString | None = None
    diff: SafeString | None = None
    version: str = ""
    changes: int = 0


def open_form(card: cards.Card, task: ReviewTask, *, wanted: str, reading: cards.Reading | None) -> OpenForm:
    """Return the form to show; a card with a single way to answer has it open at once."""
    if reading is not None:
        return _as_sent(card, reading)
    if wanted == Verdict.APPROVE and task.risk == Risk.CRITICAL and card.choice(Verdict.APPROVE):
        return OpenForm(Verdict.APPROVE, SECOND_STEP)
    wanted = verdict_to_open(card, wanted)
    if not wanted:
        return OpenForm()
    refused: Json = decode(task.refused_answer)
    if refused is not None and cards.verdict_of(refused) == wanted:
        return _as_refused(card, task, refused)
    return OpenForm(
        wanted,
        draw.render_form(card.open(wanted)),
        draw.render_diff(()) if wanted == Verdict.EDIT else None,
    )


def verdict_to_open(card: cards.Card, wanted: str) -> str:
    """Return whose form an address opens: what it asks for, or the only way to answer; "" for none."""
    if not wanted and len(card.choices) == 1:
        wanted = card.choices[0].verdict
    choice = card.choice(wanted)
    return "" if choice is None or choice.direct else wanted


def _as_sent(card: cards.Card, reading: cards.Reading) -> OpenForm:
    fields = draw.render_form(reading.form, reading.errors)
    if reading.verdict != Verdict.EDIT:
        return OpenForm(reading.verdict, fields)
    diff = draw.render_diff(reading.changes, mask=card.mask)
    return OpenForm(reading.verdict, fields, diff, _version(reading), len(reading.changes))


def _version(reading: cards.Reading) -> str:
    return digest(reading.answer) if reading.changes and reading.answer is not cards.MISSING else ""


def _as_refused(card: cards.Card, task: ReviewTask, refused: Json) -> OpenForm:
    """Start from the answer that the agent's own type check refused, with its objections at their fields."""
    verdict = cards.verdict_of(refused)
    form = card.open(verdict, draft=refused)
    errors = cards.place_errors(form, [_problem(item) for item in decode(task.refusal)])
    changes = card.changes(refused) if verdict == Verdict.EDIT else ()
    diff = draw.render_diff(changes, mask=card.mask) if verdict == Verdict.EDIT else None
    return OpenForm(verdict, draw.render_form(form, errors), diff, changes=len(changes))


def _problem(item: dict[str, str]) -> dict[str, Any]:
    """Return a stored objection in the shape of the agent's type check: its JSON pointer as a location."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in item["pointer"].split("/")[1:]]
    return {
        "loc": [int(step) if step.isdigit() else step for step in steps],
        "msg": item["message"],
        "type": "refused",
    }
