"""What was shown, what was decided on it and what came of that, as a closed card tells it.

All of it comes from what was stored: the card as it was drawn then, the answer, and what it changes. Today's
templates draw only the answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents_runtime.canonical import Json, decode, digest
from agents_runtime.models import ToolExecution
from reviewer import cards, openings
from reviewer.accounts.models import User
from reviewer.cards import render as draw
from reviewer.cards.version import AUTHORS_OWN
from reviewer.models import Decision, ReviewTask, Showing, Verdict
from reviewer.shown import card_of, changes_of, kept_html, language_name
from reviewer.web.stages import duration_words


@dataclass(frozen=True)
class Fact:
    """One line of what happened after the decision."""

    icon: str
    text: str
    at: dt.datetime | None = None


@dataclass(frozen=True)
class AsShown:
    """A card as it was shown. Without ``html`` none is kept: ``note`` says why; the card is drawn anew."""

    html: SafeString | None = None
    note: str = ""
    showing: Showing | None = None
    drawn_by: str = ""
    is_damaged: bool = False


def as_shown(task: ReviewTask, decision: Decision | None, reader: User) -> AsShown:
    """Return the card as the person who decided had it before them, or as it was shown last."""
    showing = decision.showing if decision else openings.showing_of(task)
    if showing is None:
        return AsShown(note=_why_none(decision))
    html, drawn_by = kept_html(showing), _drawn_by(showing)
    if html is None:
        note = _(
            "The kept view no longer matches its SHA-256, so it is not shown. Below: drawn from the record."
        )
        return AsShown(note=note, showing=showing, drawn_by=drawn_by, is_damaged=True)
    note = _shown_to(decision, reader) if decision else _("As it was shown last")
    return AsShown(html, note, showing, drawn_by)


def _drawn_by(showing: Showing) -> str:
    facts = {"version": showing.renderer_version, "language": language_name(showing.language)}
    if showing.renderer_version >= AUTHORS_OWN:
        return _("Drawn by an author’s own renderer (%(version)s) in %(language)s, kept") % facts
    return _("Drawn by card renderer %(version)s in %(language)s, kept") % facts


def _shown_to(decision: Decision, reader: User) -> str:
    if decision.person_id == reader.pk:
        return _("As it was shown to you")
    return _("As it was shown to %(name)s") % {"name": decision.person_name}


def _why_none(decision: Decision | None) -> str:
    if decision is None:
        return _("Nobody had this card open on a page. Drawn from the record.")
    if decision.via == "api":
        return _("Decided through the API, which gives the card as data. Drawn from the record.")
    return _("Decided without opening the card on a page. Drawn from the record.")


def drawn_changes(task: ReviewTask, decision: Decision | None) -> SafeString | None:
    """Return what an edit changed, drawn."""
    if decision is None or decision.verdict != Verdict.EDIT:
        return None
    return draw.render_diff(changes_of(task, decision), mask=card_of(task).mask)


def final_arguments(card: cards.Card, decision: Decision | None) -> SafeString | None:
    """Return what an edit sent, as the rows in which it was proposed."""
    if decision is None or decision.verdict != Verdict.EDIT:
        return None
    args = decode(decision.answer)["edited_action"]["args"]
    return draw.render_arguments(replace(card, request=replace(card.request, args=args)))


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
    if decision.verdict == Verdict.APPROVE:
        facts.append(Fact("equal", _("Exactly what was proposed")))
    if decision.verdict == Verdict.EDIT:
        version = digest(decode(decision.answer))
        facts.append(
            Fact("pencil", _("Changed, version %(digest)s") % {"digest": f"{version[:4]}…{version[-2:]}"})
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
