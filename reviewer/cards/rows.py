"""Rows of arguments as HTML: lines, lists of words, tables and blocks, long texts folded, secrets masked.

Does not live here: what the rows are and how they are laid out (``view``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from reviewer.cards import secrets, unicode, view, words
from reviewer.cards.draw import draw
from reviewer.cards.titles import humanise
from reviewer.cards.values import MISSING, Json, json_text
from reviewer.cards.view import Layout, Row
from reviewer.cards.visible import visible

Opener = Callable[[str, str], SafeString]
"""Draws the control that opens a folded part, from the part's JSON pointer and its label."""

_CODE_LIKE = re.compile(r"(?=[^\s]*[\d_./:@#-])[\w./:@#+=%?&~-]{2,80}")
_WORDS_LIKE = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)+")


class Rows:
    """Draws rows; knows which folded or masked ones the reader has opened."""

    def __init__(
        self,
        expanded: frozenset[str],
        opener: Opener | None,
        *,
        landing: str | None = None,
        ends_only: bool = False,
        reveal: Opener | None = None,
    ) -> None:
        self.expanded = expanded
        self.opener = opener
        self.landing = landing
        self.ends_only = ends_only
        self.reveal = reveal or opener

    def table(self, rows: Sequence[Row], *, tight: bool = False) -> SafeString:
        """Return one line for each row: key, value, type."""
        drawn = [
            {
                "key": _key(row),
                "value": self.value(row),
                "type": words.row_type(row),
                "parts": bool(row.children) and row.layout is not Layout.WORDS,
            }
            for row in rows
        ]
        return draw("kv", rows=drawn, tight=tight)

    def value(self, row: Row) -> SafeString:
        """Return the value of one row with all its parts."""
        if row.is_concealed:
            return self.concealed(row)
        if row.children:
            return self.parts(row)
        if row.shown is not None and row.is_folded:
            return self.folded(row, row.shown)
        return draw("value", **_plain(row))

    def concealed(self, row: Row) -> SafeString:
        """Return a secret masked, or as it is where the reader has asked for it."""
        if row.pointer in self.expanded:
            text = row.shown if row.shown is not None else json_text(row.value)
            return draw("secret", text=visible(text), lands=row.pointer == self.landing)
        show = self.reveal(row.pointer, gettext("Show")) if self.reveal else None
        if row.text is not None:
            return draw("secret", partly=visible(json_text(_masked(row))), opener=show)
        return draw("secret", mask=secrets.MASK, opener=show)

    def parts(self, row: Row) -> SafeString:
        """Return what a row is made of, folded where it is much."""
        inside = self.inside(row)
        if not row.is_folded:
            return inside
        if row.pointer in self.expanded:
            return draw("opened", content=inside, lands=row.pointer == self.landing)
        count = len(row.children)
        what = (
            ngettext("%(count)s item", "%(count)s items", count)
            if isinstance(row.value, list)
            else ngettext("%(count)s key", "%(count)s keys", count)
        )
        summary = what % {"count": count}
        return draw("parts", table=inside, summary=summary, opener=self.open(row, gettext("Show all of it")))

    def inside(self, row: Row) -> SafeString:
        """Return the parts of a row in the layout that suits them."""
        match row.layout:
            case Layout.WORDS:
                return draw("wordlist", values=[draw("value", **_plain(child)) for child in row.children])
            case Layout.TABLE:
                return self.grid(row)
            case Layout.ITEMS:
                return draw(
                    "blocks",
                    items=[
                        {"number": _key(child), "body": self.value(child), "type": words.row_type(child)}
                        for child in row.children
                    ],
                )
        return self.table(row.children, tight=True)

    def grid(self, row: Row) -> SafeString:
        """Return a list of like objects as a table: a line for each object, a column for each key."""
        keys = view.columns_of(row)
        lines = []
        for child in row.children:
            parts = {str(part.key): part for part in child.children}
            cells = [draw("value", **_plain(parts[key])) if key in parts else None for key in keys]
            lines.append({"number": _key(child), "cells": list(zip(map(_name, keys), cells, strict=True))})
        return draw("cells", heads=[_head(row, key) for key in keys], lines=lines)

    def folded(self, row: Row, text: str) -> SafeString:
        """Return a long text with both its ends."""
        is_open = row.pointer in self.expanded
        is_here = is_open or not (self.opener or self.ends_only)
        hidden = sum(1 for run in unicode.runs(text) if run.glyph)
        head, tail = view.ends_of(text)
        label = ngettext("Show all %(n)s character", "Show all %(n)s characters", len(text))
        return draw(
            "fold",
            head=visible(head),
            tail=visible(tail),
            # A link asks the server for the whole text; without one it is here already, folded.
            text=visible(text) if is_here else "",
            left_out=len(text) - len(head) - len(tail),
            length=len(text),
            is_open=is_open,
            is_code=row.text is not None,
            hidden=hidden,
            opener=self.open(row, label % {"n": len(text)}),
            sha256=_sha256(text) if self.ends_only else "",
            lands=row.pointer == self.landing,
        )

    def open(self, row: Row, label: str) -> SafeString | None:
        """Return the control that opens a row, where there is one."""
        return self.opener(row.pointer, label) if self.opener else None


def linked(url: str) -> Opener:
    """Return an opener that links to ``{url}{pointer}``."""
    return lambda pointer, label: format_html(
        '<a class="link" href="{}{}">{}</a>', url, quote(pointer, safe="", errors="surrogatepass"), label
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _masked(row: Row) -> Json:
    return secrets.masked(row.value, inside=secrets.is_secret(row.key, row.schema))


def _head(row: Row, key: str) -> dict[str, Any]:
    """Return the head of a column: its key, and the type of what stands in it."""
    parts = [part for child in row.children for part in child.children if str(part.key) == key]
    told = next((part for part in parts if part.value is not MISSING), parts[0])
    return {"key": _name(key), "type": words.row_type(told)}


def _key(row: Row) -> SafeString:
    if row.key is None:
        return mark_safe("")
    return _name(str(row.key + 1) if isinstance(row.key, int) else row.key)


def _name(key: str) -> SafeString:
    return visible(key) if key.strip() else format_html("“{}”", visible(key))


def _plain(row: Row) -> dict[str, Any]:
    """Return how a short value is shown: in words, and as it is sent where that is something else."""
    value = row.value
    if value is MISSING:
        return {"kind": "absent"}
    if value is None:
        return {"kind": "null"}
    if isinstance(value, bool):
        return {
            "kind": "pair",
            "word": gettext("Yes") if value else gettext("No"),
            "sent": "true" if value else "false",
        }
    if isinstance(value, str):
        return _string(row, value)
    if value == [] or value == {}:
        return {"kind": "empty", "word": _empty_word(value), "sent": "[]" if value == [] else "{}"}
    return {"kind": "code", "text": visible(row.text if row.text is not None else json_text(value))}


def _string(row: Row, value: str) -> dict[str, Any]:
    if value == "":
        return {"kind": "empty", "word": gettext("Empty text"), "sent": '""'}
    if "enum" in row.schema and _WORDS_LIKE.fullmatch(value):
        return {"kind": "pair", "word": humanise(value), "sent": value}
    if _CODE_LIKE.fullmatch(value):
        return {"kind": "code", "text": visible(value)}
    return {"kind": "text", "text": visible(value)}


def _empty_word(value: Json) -> str:
    return gettext("Empty list") if value == [] else gettext("Empty object")
