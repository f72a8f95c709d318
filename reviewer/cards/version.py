"""Which version of the drawing a card was drawn with."""

from __future__ import annotations

import hashlib
from typing import Final

from reviewer.cards.card import CardRequest
from reviewer.cards.renderers import source_of

RENDERER_VERSION: Final = 3
"""Raise it by one with every change that lets a card look or read differently: ``make drawings`` does that,
and records the new drawings. The test ``tests/cards/test_renderer_version.py`` fails until then.

Cards that people have had before them are kept as they were drawn, once for each version. Without a new
number the next person would be shown a new drawing, while the record says that it was the old one.
"""

AUTHORS_OWN: Final = 1_000_000_000
"""Versions from here on are those of cards that a renderer of somebody's own has drawn."""


def version_of(request: CardRequest, *, ours: int = RENDERER_VERSION) -> int:
    """Return the version that a card is drawn with: of this room, or with a renderer of somebody's own."""
    source = source_of(request)
    if not source:
        return ours
    made_of = hashlib.sha256(f"{ours}\n{source}".encode()).hexdigest()
    return AUTHORS_OWN + int(made_of[:7], 16)
