"""That a person had a card before them, as it was drawn, and what they opened of it: evidence for decisions.

A page keeps the card as it was drawn with its first opening: only that one draws and stores, every later one
finds the showing by version and language. Opening again costs one look into an index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Final, TypedDict

from django.conf import settings
from django.db import transaction
from django.db.models import Case, When
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from agents_runtime.canonical import Json, storable
from agents_runtime.compiled import ANOTHER_NUMBER, SOME_ID, SOME_NUMBER, Compiled
from agents_runtime.errors import Problem
from agents_runtime.writing import Write, insert_if_new, insert_new
from reviewer import cards
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.audit.record import record, record_if
from reviewer.audit.subjects import of_task
from reviewer.cards.diff import Step, place_name
from reviewer.cards.version import RENDERER_VERSION, version_of
from reviewer.errors import Unread
from reviewer.models import Expansion, ReviewTask, Showing, Snapshot, Verdict
from reviewer.shown import card_of, inert_drawing, is_read_in_full

MAY_APPROVE: Final = frozenset({Verdict.APPROVE, Verdict.EDIT, Verdict.ANSWER})
"""What lets something happen, or may: nobody but the agent knows what an answer of its own shape means."""

LONGEST_LIST: Final = 500
_KEEP: Final = Write(
    sql="""
    INSERT INTO reviewer_cardopening (task_id, person_id, digest, via, showing_id) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING RETURNING id
    """,
    tables=frozenset({"reviewer_cardopening"}),
)

_drawn = Compiled(
    lambda task_id, digest, version, language: Showing.objects.filter(
        task=task_id, digest=digest, renderer_version=version, language=language
    ),
    SOME_ID,
    "some digest",
    SOME_NUMBER,
    "some language",
)
_shown_to = Compiled(
    lambda task_id, person_id, digest, version, language: Showing.objects.filter(
        task=task_id, digest=digest, openings__person=person_id, openings__digest=digest
    ).order_by(Case(When(renderer_version=version, language=language, then=0), default=1), "-openings__pk")[
        :1
    ],
    SOME_ID,
    SOME_NUMBER,
    "some digest",
    ANOTHER_NUMBER,
    "some language",
)


class ShownFacts(TypedDict, total=False):
    """Which drawing of a card somebody had before them."""

    shown: str
    renderer: int
    language: str


# What was shown


def opened(task: ReviewTask, *, by: User, via: str) -> None:
    """Record that this person was shown the open card: once for each digest, door and drawing of it.

    Through the API the whole card goes out as JSON: nothing of it is hidden, so every part counts as opened.
    """
    if not task.is_open:
        return
    if via == "api" and not _to_be_read(task):
        _keep_opening(task, None, by=by, via=via)
        return
    with transaction.atomic():
        _keep_opening(task, _showing(task) if via == "web" else None, by=by, via=via)
        if via == "api":
            open_all_parts(task, by=by, via=via)


def _keep_opening(task: ReviewTask, showing: Showing | None, *, by: User, via: str) -> None:
    record_if(
        "card.opened",
        actor=by,
        subject=of_task(task, digest=task.digest, via=via, **facts_of(showing)),
        change=_KEEP,
        values=(task.pk, by.pk, task.digest, via, showing.pk if showing else None),
    )


def shown_to(task: ReviewTask, person: User) -> Showing | None:
    """Return the card as this person had it before them: as it is drawn for them now, else as it was last."""
    return _shown_to.first(task.pk, person.pk, task.digest, _version(task), _language())


def facts_of(showing: Showing | None) -> ShownFacts:
    """Return which drawing it was, for an event of the trail; nothing where none was drawn."""
    if showing is None:
        return {}
    return {
        "shown": showing.snapshot_id,
        "renderer": showing.renderer_version,
        "language": showing.language,
    }


def showing_of(task: ReviewTask) -> Showing | None:
    """Return the card as it was shown to anybody last."""
    return task.showings.order_by("-pk").first()


def _showing(task: ReviewTask) -> Showing:
    """Return the showing of this card by today's renderer in this language; keep it, if it is the first."""
    key = (task.pk, task.digest, _version(task), _language())
    known = _drawn.first(*key)
    if known is not None:
        return known
    drawing = inert_drawing(task)
    insert_new([Snapshot(sha256=drawing.sha256, html=drawing.html)])
    showing = Showing(task=task, digest=task.digest, snapshot_id=drawing.sha256)
    showing.renderer_version, showing.language = key[2:]
    showing.pk = insert_if_new(showing)
    if showing.pk is None:  # somebody else was shown it at the same moment
        (showing,) = _drawn.rows(*key)
    return showing


def _version(task: ReviewTask) -> int:
    return version_of(card_of(task).request, ours=RENDERER_VERSION)


def _language() -> str:
    return get_language() or settings.LANGUAGE_CODE


# What was opened of it


def part_of(pointer: str) -> str:
    """Return the short name of a part, fit for an address: keys may hold anything and be of any length."""
    return hashlib.sha256(pointer.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def place_of(card: cards.Card, pointer: str) -> str:
    """Return where a part is, as people write it: ``to[3].address``."""
    steps: list[Step] = []
    value: Json = card.request.args
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        is_item = isinstance(value, list)
        steps.append(int(key) if is_item else key)
        value = value[int(key)] if is_item else value.get(key)
    return place_name(steps) or _("whole value")


def may_uncover(task: ReviewTask, *, by: User) -> bool:
    """Say whether this person may see the secrets of a card: whoever could decide it, and nobody else."""
    if task.run.is_directed_by(by.reference):
        return False
    return permissions.is_member(by, task.queue_id, found=task.member)


def _closed(task: ReviewTask, card: cards.Card, *, by: User) -> Sequence[str]:
    """Return the pointers of what this person may open: what is folded, and secrets if they may."""
    return card.closed if card.concealed and may_uncover(task, by=by) else card.folded


def opened_parts(task: ReviewTask, card: cards.Card, *, by: User) -> frozenset[str]:
    """Return the pointers of what this person has opened on this digest, masked secrets included."""
    closed = _closed(task, card, by=by)
    if not closed:
        return frozenset()
    parts = set(
        Expansion.objects.filter(task=task, person=by, digest=task.digest).values_list("part", flat=True)
    )
    return frozenset(pointer for pointer in closed if part_of(pointer) in parts)


def unread_parts(task: ReviewTask, card: cards.Card, *, by: User) -> Sequence[str]:
    """Return the pointers of the parts that this person has still to open before they may approve."""
    if not is_read_in_full(task) or not card.folded:
        return ()
    known = opened_parts(task, card, by=by)
    return [pointer for pointer in card.folded if pointer not in known]


def open_all_parts(task: ReviewTask, *, by: User, via: str) -> None:
    """Record that this person had the whole card before them, nothing hidden."""
    folded = _to_be_read(task)
    if folded:
        open_parts(task, [part_of(pointer) for pointer in folded], by=by, via=via)


def _to_be_read(task: ReviewTask) -> Sequence[str]:
    """Return the pointers of the parts that have to be opened before somebody approves."""
    return card_of(task).folded if is_read_in_full(task) else ()


@transaction.atomic
def open_parts(task: ReviewTask, parts: Collection[str], *, by: User, via: str) -> Sequence[str]:
    """Record which hidden parts this person opens; return the pointers of those that they had not before."""
    if not task.is_open or not parts:
        return ()
    card = card_of(task)
    known = opened_parts(task, card, by=by)
    closed = _closed(task, card, by=by)
    fresh = [pointer for pointer in closed if pointer not in known and part_of(pointer) in parts]
    if not fresh:
        return ()
    places = {pointer: storable(place_of(card, pointer)) for pointer in fresh}
    Expansion.objects.bulk_create(
        [
            Expansion(task=task, person=by, digest=task.digest, part=part_of(pointer), pointer=place, via=via)
            for pointer, place in places.items()
        ],
        ignore_conflicts=True,
    )
    told = ", ".join(places.values())[:LONGEST_LIST]
    record(
        "card.expanded",
        actor=by,
        subject=of_task(task, digest=task.digest, parts=told, count=len(fresh), via=via),
    )
    return fresh


def guard_read(task: ReviewTask, *, verdict: Verdict, by: User) -> None:
    """Raise ``Unread`` where this person would approve a card of high risk that they have not seen whole."""
    if verdict not in MAY_APPROVE or not is_read_in_full(task):
        return
    card = card_of(task)
    unread = unread_parts(task, card, by=by)
    if not unread:
        return
    message = ngettext(
        "%(n)s part of this card is still hidden. Open it before you approve.",
        "%(n)s parts of this card are still hidden. Open them before you approve.",
        len(unread),
    ) % {"n": len(unread)}
    problems = tuple(
        Problem("", _("Not opened yet: %(place)s") % {"place": place_of(card, pointer)}) for pointer in unread
    )
    raise Unread(message, problems)
