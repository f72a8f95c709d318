"""Drafts that an agent asks about before they go out: drawn as the text they are to become.

Only a question's own text is read as Markdown; the arguments of a tool are data and stay data.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from django.utils.safestring import SafeString

from reviewer.cards.card import CardRequest
from reviewer.cards.draw import draw
from reviewer.cards.prose import prose
from reviewer.cards.renderers import Found, Renderer, add
from reviewer.cards.secrets import MASK
from reviewer.cards.visible import visible

KEYS: Final = ("draft", "draft_text", "post", "article", "document", "content", "body", "text")
_SHORTEST: Final = 80


def register() -> None:
    """Register the drawing of drafts, under whichever of their usual keys the text comes."""
    for key in KEYS:
        add(Renderer(f"draft:{key}", partial(_is_draft, key), partial(_draw, key), (f"/{key}",)))


def _is_draft(key: str, request: CardRequest) -> Found:
    if request.tool or not isinstance(request.args, dict):
        return False
    text = request.args.get(key)
    return isinstance(text, str) and (len(text) >= _SHORTEST or "\n" in text.strip())


def _draw(key: str, request: CardRequest, _found: Found, concealed: frozenset[str]) -> SafeString:
    text = MASK if f"/{key}" in concealed else request.args[key]
    told = prose(text)
    return draw(
        "draft", key=key, html=told.html, written=visible(text) if told.is_formatted else "", length=len(text)
    )
