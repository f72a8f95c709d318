"""The banner above a card when something could not be done: what happened, who and when, and what is kept."""

from __future__ import annotations

import json

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from reviewer import cards
from reviewer.errors import Conflict, Invalid, Unread
from reviewer.web.cardpage import Notice


def conflict(problem: Conflict, *, kept: str = "") -> Notice:
    """Say that things moved on, by whom and when."""
    titles = {
        "decided": _("Somebody was faster"),
        "taken": _("Somebody else holds this card"),
        "stale": _("This card has changed"),
        "closed": _("This card is closed"),
    }
    text = str(problem)
    if problem.when is not None:
        text = f"{text} {_time_words(problem)}"
    return Notice(
        "warn",
        "git-branch",
        titles.get(problem.code, _("This has moved on")),
        f"{text} {_('Your decision was not recorded.')}",
        kept=kept,
    )


def invalid(problem: Invalid) -> Notice:
    """Say what does not fit, where no field can carry the message."""
    lines = [f"{item.pointer}: {item.message}" if item.pointer else item.message for item in problem.problems]
    return Notice("danger", "octagon-alert", str(problem), problems=lines)


def unread(problem: Unread) -> Notice:
    """Say that something of the card has not been seen; the page adds what, and what opens it."""
    return Notice("warn", "eye-off", _("Not approved yet"), str(problem), names_unread=True)


def kept_text(card: cards.Card, reading: cards.Reading, comment: str) -> str:
    """Return what the reviewer wrote, so that it can be copied from a card that takes it no longer.

    The secrets of the proposal stay masked: this text is no way to see what nobody asked to see.
    """
    return "\n\n".join(part for part in (_answer_text(card, reading.answer), comment) if part)


def _answer_text(card: cards.Card, answer: cards.Json) -> str:
    """Return an answer as its writer would copy it: its one text, or all of it as JSON."""
    if answer is cards.MISSING:
        return ""
    written = {key: answer[key] for key in answer if key != "type"} if isinstance(answer, dict) else answer
    only = written.get("message") if isinstance(written, dict) and len(written) == 1 else written
    if isinstance(only, str):
        return only
    if written == {}:
        return ""
    return json.dumps(card.for_the_eye(answer), ensure_ascii=False, indent=2, default=_left_out)


def _left_out(_missing: object) -> None:
    """Stand for an item of a list that does not parse yet and holds no text."""


def _time_words(problem: Conflict) -> str:
    assert problem.when is not None
    clock = date_format(timezone.localtime(problem.when), "H:i:s")
    if problem.code in {"taken", "stale"}:
        return _("The claim runs until %(time)s.") % {"time": clock}
    return _("That was at %(time)s.") % {"time": clock}
