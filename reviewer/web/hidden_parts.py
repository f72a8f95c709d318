"""The parts of an open card that are hidden at first sight, and what opens them.

Opening goes through the server, so that it knows what was seen: by a link, or, where a form lies open, by a
button of that form, so that nothing typed gets lost. Both work without JavaScript.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import urlencode

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents_runtime.canonical import decode
from reviewer import cards, openings
from reviewer.accounts.models import User
from reviewer.cards import render as draw
from reviewer.cards import unicode
from reviewer.cards.visible import visible
from reviewer.models import ReviewTask, Verdict
from reviewer.shown import card_of, is_heavy, is_read_in_full
from reviewer.web.cardforms import verdict_to_open
from reviewer.web.stages import stage_of

SHOW: Final = "show"
ALL: Final = "all"
SHOW_PARTS: Final = f"{SHOW}:"


@dataclass(frozen=True)
class Part:
    """One part that the reader has not opened yet, and what opens it."""

    place: SafeString
    opener: SafeString


@dataclass(frozen=True)
class Unread:
    """What has to be opened before this reader may approve."""

    parts: Sequence[Part]
    show_all: SafeString


class HiddenParts:
    """The hidden parts of one open card for one reader."""

    def __init__(
        self, task: ReviewTask, card: cards.Card, reader: User, *, origin: str, has_form: bool
    ) -> None:
        self.task = task
        self.card = card
        self.reader = reader
        self.origin = origin
        self.has_form = has_form

    @cached_property
    def unread_pointers(self) -> Sequence[str]:
        """Return what is still hidden from this reader and must not be."""
        return openings.unread_parts(self.task, self.card, by=self.reader)

    def arguments(self, landing: Sequence[str]) -> SafeString:
        """Return the arguments: what must be seen, or is much, comes on request, the rest opens in place."""
        asks_server = is_read_in_full(self.task) or is_heavy(self.card)
        return draw.render_arguments(
            self.card,
            expanded=openings.opened_parts(self.task, self.card, by=self.reader),
            opener=self._opener if asks_server else None,
            landing=landing[0] if landing else None,
            reveal=self._opener if openings.may_uncover(self.task, by=self.reader) else _no_opener,
        )

    def unread(self) -> Unread | None:
        """Return what is left to open, or None where everything was."""
        if not self.unread_pointers:
            return None
        parts = [
            Part(visible(openings.place_of(self.card, pointer)), self._opener(pointer, _("Show it")))
            for pointer in self.unread_pointers
        ]
        return Unread(parts, self._control(ALL, _("Show all hidden parts"), key="h"))

    def _opener(self, pointer: str, label: str) -> SafeString:
        name = openings.place_of(self.card, pointer)
        return self._control(openings.part_of(pointer), label, name=unicode.visible(name))

    def _control(self, part: str, label: str, *, name: str = "", key: str = "") -> SafeString:
        query = urlencode({"from": self.origin, SHOW: part} if self.origin else {SHOW: part})
        page = f"{reverse('inbox')}?{urlencode({'task': self.task.pk, SHOW: part})}"
        context = {
            "form": f"decide-{self.task.pk}" if self.has_form else "",
            "operation": SHOW_PARTS + part,
            "href": page if self.origin else f"{reverse('task', args=[self.task.pk])}?{query}",
            "pane": f"{reverse('task_pane', args=[self.task.pk])}?{query}",
            "label": label,
            "name": name,
            "key": key,
        }
        return SafeString(render_to_string("tasks/opener.html", context))


def _no_opener(_pointer: str, _label: str) -> SafeString:
    return SafeString("")


def open_asked(task: ReviewTask, reader: User, *, verdict: str, show: str) -> Sequence[str]:
    """Record what an address opens for this reader, and return the pointers of what is new.

    The form of an edit holds every value of the proposal: nothing is hidden in it.
    """
    card = card_of(task)
    if _opens_proposal(task, card, reader, verdict=verdict):
        show = ALL
    return openings.open_parts(task, parts_named(show, card), by=reader, via="web") if show else ()


def _opens_proposal(task: ReviewTask, card: cards.Card, reader: User, *, verdict: str) -> bool:
    """Say whether the form of an edit opens, started from the proposal and not from a refused answer."""
    if verdict_to_open(card, verdict) != Verdict.EDIT or stage_of(task, reader).key != "open":
        return False
    return not starts_from_refused(task)


def starts_from_refused(task: ReviewTask) -> bool:
    """Say whether the form of an edit starts from an answer that the agent refused."""
    return cards.verdict_of(decode(task.refused_answer)) == Verdict.EDIT


def parts_named(text: str, card: cards.Card) -> Sequence[str]:
    """Return the names of the parts that an address or a button asks for: one, or all of the card."""
    return [openings.part_of(pointer) for pointer in card.folded] if text == ALL else [text]
