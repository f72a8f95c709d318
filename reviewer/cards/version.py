"""Which version of the drawing a card was drawn with."""

from __future__ import annotations

from typing import Final

RENDERER_VERSION: Final = 1
"""Raise it by one with every change that lets a card look or read differently, and record the new drawings:

``python -m tests.cards.renderer`` (the test ``tests/cards/test_renderer_version.py`` fails until then).

Cards that people have had before them are kept as they were drawn, once for each version. Without a new number
the next person would be shown a new drawing, while the record says that it was the old one.
"""
