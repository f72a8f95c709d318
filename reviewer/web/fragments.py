"""Pieces of pages as the socket pushes them: each names its place, and a page without that place ignores it.

Rows are drawn once for each task version, language and kind of reader, however many sockets are open.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from reviewer.accounts.models import User
from reviewer.models import ReviewTask
from reviewer.web.cardpage import CardPage
from reviewer.web.context import counted_sections
from reviewer.web.rows import Row, row_of
from reviewer.web.stages import stage_of

MOST_ROWS_KEPT = 1024

_rows: OrderedDict[tuple[object, ...], SafeString] = OrderedDict()
_rows_lock = Lock()


def row_fragment(task: ReviewTask, reader: User, *, arrives: bool) -> SafeString:
    """Return a row for the list: ``arrives`` lets it in where the list has no such row yet."""
    place = "#arrivals" if arrives else f"#row-{task.pk}"
    swap = "beforeend" if arrives else "outerMorph"
    return _partial(place, swap, _row(row_of(task, reader), reader))


def gone_fragment(task_id: str) -> SafeString:
    """Return what takes a row away that the reader may no longer see."""
    return _partial(f"#row-{task_id}", "delete", mark_safe(""))


def elsewhere_fragment(queue_ids: Iterable[int]) -> SafeString:
    """Return what takes away every row that is in none of these queues."""
    inside = ",".join(f'[data-queue="{pk}"]' for pk in queue_ids) or "[data-queue=none]"
    return _partial(f"[data-row]:not({inside})", "delete", mark_safe(""))


def no_card_fragment(task_id: str) -> SafeString:
    """Return what stands where a card stood that the reader may no longer see."""
    return _partial(f"#card-{task_id}-place", "innerHTML", SafeString(render_to_string("tasks/gone.html")))


def state_fragment(task: ReviewTask, reader: User) -> SafeString:
    """Return the state strip of an open card: safe to change while somebody writes below it."""
    page = CardPage(task=task, stage=stage_of(task, reader))
    strip = SafeString(render_to_string("tasks/state.html", {"page": page}))
    return _partial(f"#card-{task.pk}-state", "outerMorph", strip)


def rail_fragment(reader: User) -> SafeString:
    """Return the rail's numbers; where the reader stands is left as the page marked it."""
    sections = (
        (
            _partial(
                f"#rail-{section.key}",
                "outerMorph",
                SafeString(render_to_string("parts/rail_section.html", {"section": section})),
            ),
        )
        for section in counted_sections(reader)
        if section.items
    )
    return format_html_join("", "{}", sections)


def _partial(place: str, swap: str, content: SafeString) -> SafeString:
    return format_html('<hx-partial hx-target="{}" hx-swap="{}">{}</hx-partial>', place, swap, content)


def _row(row: Row, reader: User) -> SafeString:
    is_personal = row.mine or (row.decision is not None and row.decision.person_id == reader.pk)
    key = (row.task.pk, row.task.version, row.group, get_language(), reader.pk if is_personal else None)
    with _rows_lock:
        if key in _rows:
            _rows.move_to_end(key)
            return _rows[key]
    drawn = SafeString(render_to_string("parts/task_row.html", {"row": row, "reader": reader}))
    with _rows_lock:
        _rows[key] = drawn
        while len(_rows) > MOST_ROWS_KEPT:
            _rows.popitem(last=False)
    return drawn
