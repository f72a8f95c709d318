"""Paging a trail by key: a page's address stays true while new events arrive, and its cost does not grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from reviewer.models import AuditEvent

ROWS_A_PAGE = 50
MOST_COUNTED = 1_000


@dataclass(frozen=True)
class KeysetPage:
    """Some rows, newest first; ``older`` and ``newer`` are the keys that the pages beside it start from."""

    rows: Sequence[AuditEvent]
    older: int | None
    newer: int | None
    total: int
    is_total_exact: bool


def keyset_page(events: QuerySet[AuditEvent], typed: Mapping[str, str]) -> KeysetPage:
    """Return the page ``before`` or ``after`` a key, or the newest one. The events come newest first."""
    before, after = _key(typed.get("before", "")), _key(typed.get("after", ""))
    if after is not None and before is None:
        rows = list(events.filter(pk__gt=after).order_by("pk")[:ROWS_A_PAGE])[::-1]
    else:
        found = events.filter(pk__lt=before) if before is not None else events
        rows = list(found[:ROWS_A_PAGE])
    counted = events.order_by()[: MOST_COUNTED + 1].count()
    return KeysetPage(
        rows=rows,
        older=rows[-1].pk if rows and events.filter(pk__lt=rows[-1].pk).exists() else None,
        newer=rows[0].pk if rows and events.filter(pk__gt=rows[0].pk).exists() else None,
        total=min(counted, MOST_COUNTED),
        is_total_exact=counted <= MOST_COUNTED,
    )


def _key(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
