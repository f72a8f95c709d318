"""The card of a task, made from what was stored when it opened: the same for every door and every check.

Also here: the card as it is kept for the record (``inert_html``), and what a decision changed in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from uuid import UUID

from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.safestring import SafeString
from django.utils.translation import get_language, get_language_info

from agents_runtime.canonical import Json, decode, encode_in_order, storable
from reviewer import cards
from reviewer.cards import render as draw
from reviewer.cards import unicode
from reviewer.cards.diff import Change
from reviewer.cards.masking import Mask
from reviewer.cards.secrets import masked
from reviewer.cards.view import Row
from reviewer.models import Decision, ReviewTask, Showing
from reviewer.models.queues import Risk

READ_IN_FULL: Final = frozenset({Risk.HIGH, Risk.CRITICAL})
"""Risks whose cards are approved only by somebody who opened every part of them."""

MOST_FOLDED: Final = 50_000
MOST_SAID: Final = 20_000
BRIEF_SAID: Final = 2_000
MOST_MARKS: Final = 2_000  # hidden characters: each becomes an element of its own
MOST_HTML: Final = 512 * 1024
_MADE_FROM: Final = (
    "tool", "action", "response_schema", "args_schema", "description", "risk", "policy_label",
)  # fmt: skip
_CARD: Final = "_card"
_CARDS_KEPT: Final = 128
_MOST_KEPT: Final = 20_000  # characters that a card is made from
_SPRITE: Final = 'href="sprite.svg#'


def card_of(task: ReviewTask) -> cards.Card:
    """Return the card that people decide on; its title is the one stored with the task.

    What a card is made from never changes, so one is made for each task object: a request asks several times.
    A small one serves the requests in its language that follow as well: who opened it decides on it.
    """
    made_from: tuple[str, ...] = tuple(getattr(task, name) for name in _MADE_FROM)
    known: tuple[object, cards.Card] | None = task.__dict__.get(_CARD)
    if known is not None and known[0] == made_from:
        return known[1]
    is_small = sum(map(len, made_from)) <= _MOST_KEPT
    make = _kept_card if is_small else _build
    card = make(get_language(), task.pk, *made_from)
    task.__dict__[_CARD] = (made_from, card)
    return card


def _build(
    _language: str | None,
    task_id: UUID,
    tool: str,
    action: str,
    response_schema: str,
    args_schema: str,
    description: str,
    risk: str,
    policy: str,
) -> cards.Card:
    return cards.build(
        cards.CardRequest(
            card_id=str(task_id),
            tool=tool,
            args=decode(action),
            response_schema=decode(response_schema),
            args_schema=decode(args_schema),
            description=description,
            risk=risk,
            policy=policy,
        )
    )


_kept_card = lru_cache(maxsize=_CARDS_KEPT)(_build)


def is_read_in_full(task: ReviewTask) -> bool:
    """Say whether approving waits until every hidden part of the card was opened."""
    return task.risk in READ_IN_FULL


def changes_of(task: ReviewTask, decision: Decision) -> Sequence[Change]:
    """Return what a decision changed in the proposal, as it was kept with it."""
    if decision.changes:
        return [Change.from_json(told) for told in decode(decision.changes)]
    return card_of(task).changes(decode(decision.answer))  # decided before changes were kept


def kept_changes(changes: Sequence[Change]) -> str:
    """Return changes as they are kept with a decision."""
    return encode_in_order([change.to_json() for change in changes])


def told_record(payload: str) -> Json:
    """Return what an event of the trail records, as people and programs are told: secret names masked.

    The trail itself lacks only what a schema calls secret, because a name may mislead and evidence must not
    get lost; whoever exports it gets it as it is.
    """
    record: Json = decode(payload)
    facts = record.get("facts") if isinstance(record, dict) else None
    if not isinstance(facts, dict):
        return record
    told = dict(facts)
    if answer := told.get("answer"):
        told["answer"] = encode_in_order(masked(decode(answer)))
    if changes := told.get("changes"):
        known = (Change.from_json(change) for change in decode(changes))
        told["changes"] = kept_changes(Mask(True, True).changes(known))
    return {**record, "facts": told}


@dataclass(frozen=True)
class Drawing:
    """The inert HTML of a card, and the SHA-256 of its UTF-8."""

    html: str
    sha256: str


def inert_drawing(task: ReviewTask) -> Drawing:
    """Return the card as it is kept: what a reader of the active language is shown, without any control.

    Icons are named and not linked, because the sprite's address changes with a release. Where the folded
    texts are longer than ``MOST_FOLDED`` characters together, or hold more than ``MOST_MARKS``, each is kept
    as its two ends, its length and its SHA-256; the text itself is stored with the task, under its digest.
    """
    card = card_of(task)
    html = _inert_html(task, card, in_brief=is_heavy(card))
    if len(html) > MOST_HTML:
        html = _inert_html(task, card, in_brief=True)
    return Drawing(html, sha256_of(html))


def _inert_html(task: ReviewTask, card: cards.Card, *, in_brief: bool) -> str:
    context = {
        "task": task,
        "language": get_language(),
        "hidden": card.hidden + unicode.count(task.said),
        "arguments": draw.render_arguments_in_brief(card) if in_brief else draw.render_arguments(card),
        "said": _agent_text(task.said, in_brief=in_brief),
        "description": _agent_text(task.description, in_brief=in_brief),
        "refusal": decode(task.refusal),
    }
    html = render_to_string("tasks/shown.html", context)
    return storable(html.replace(f'href="{static("icons/sprite.svg")}#', _SPRITE))


def is_heavy(card: cards.Card) -> bool:
    """Say whether the folded texts of a card are too much to send along unasked."""
    return _folded_length(card.rows) > MOST_FOLDED or card.hidden > MOST_MARKS


def _folded_length(rows: Sequence[Row]) -> int:
    return sum((len(row.shown or "") if row.is_folded else 0) + _folded_length(row.children) for row in rows)


def _agent_text(text: str, *, in_brief: bool) -> SafeString | None:
    if not text:
        return None
    most = BRIEF_SAID if in_brief else MOST_SAID
    if len(text) > most:
        text = f"{text[:most]}\n… +{len(text) - most:,}, SHA-256 {sha256_of(text)}"
    return draw.render_prose(text)


def kept_html(showing: Showing) -> SafeString | None:
    """Return the card as it was shown, or None where what is kept is not what was kept."""
    html = showing.snapshot.html
    if sha256_of(html) != showing.snapshot_id:
        return None
    return SafeString(html.replace(_SPRITE, f'href="{static("icons/sprite.svg")}#'))


def sha256_of(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 as 64 lower hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def language_name(code: str) -> str:
    """Return what a language is called in itself; an unknown one keeps its code."""
    try:
        return str(get_language_info(code)["name_local"])
    except KeyError:
        return code
