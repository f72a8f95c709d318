"""Cards as HTML: rows of arguments, differences, what an agent said. Forms are drawn by ``paint``.

Everything an agent or a schema wrote is escaped by the template engine; hidden characters become visible
chips. No inline style, no script, no Markdown. The page around (the form element, CSRF, the bar of
buttons) belongs to ``reviewer.web``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote

from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from reviewer.cards import unicode, view, words
from reviewer.cards.card import Card, Form
from reviewer.cards.diff import MOVED, Change, place_name, text_lines
from reviewer.cards.draw import draw
from reviewer.cards.errors import FieldError
from reviewer.cards.paint import Painter
from reviewer.cards.titles import humanise
from reviewer.cards.values import MISSING, Json, json_text
from reviewer.cards.view import Row
from reviewer.cards.visible import visible

__all__ = [
    "render_agent_text",
    "render_arguments",
    "render_arguments_in_brief",
    "render_diff",
    "render_form",
    "render_value",
    "visible",
]

Opener = Callable[[str, str], SafeString]
"""Draws the control that opens a folded part, from the part's JSON pointer and its label."""

_CODE_LIKE = re.compile(r"(?=[^\s]*[\d_./:@#-])[\w./:@#+=%?&~-]{2,80}")
_WORDS_LIKE = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)+")


def render_form(form: Form, errors: Sequence[FieldError] = ()) -> SafeString:
    """Return the fields of a decision with an error summary on top, without the form element itself."""
    return Painter(form, errors).form()


def render_arguments(
    card: Card,
    *,
    expanded: Iterable[str] = (),
    expand_url: str = "",
    opener: Opener | None = None,
    landing: str | None = None,
) -> SafeString:
    """Return what will happen, as rows.

    With ``expand_url`` a folded value is opened by a link ``{expand_url}{pointer}``, so that the server
    knows what was read; ``opener`` draws another control than a link. ``expanded`` holds the pointers opened
    so far, and ``landing`` the one that gets the focus. Without both a folded value opens in place.
    """
    opens = opener or (_linked(expand_url) if expand_url else None)
    return _Rows(frozenset(expanded), opens, landing=landing).table(card.rows)


def render_arguments_in_brief(card: Card) -> SafeString:
    """Return the same rows for good, with both ends, length and SHA-256 of a folded text in place of it."""
    return _Rows(frozenset(), None, ends_only=True).table(card.rows)


def render_value(schema: Json, value: Json) -> SafeString:
    """Return any stored value as rows, such as a decided answer."""
    return _Rows(frozenset(), None).table(view.rows(schema, value))


def render_agent_text(text: str) -> SafeString:
    """Return what an agent said as plain text: escaped, hidden characters visible, links as text."""
    return format_html('<span class="said__text">{}</span>', visible(text))


def render_diff(changes: Sequence[Change]) -> SafeString:
    """Return what was changed: the agent's value, yours, and the words that differ."""
    return draw("diff", changes=[_change(change) for change in changes])


def _change(change: Change) -> dict[str, Any]:
    code = gettext("whole value") if not change.steps else place_name(change.steps)
    word = words.CHANGES[change.kind]
    if change.kind == MOVED:
        places = {"old": (change.came_from or 0) + 1, "new": int(change.steps[-1]) + 1}
        word = gettext("Moved from place %(old)s to %(new)s") % places
    return {"name": visible(code), "word": word, "lines": _lines(change)}


def _lines(change: Change) -> list[dict[str, Any]]:
    if change.kind == MOVED:
        return [_line("same", visible(_told(change.after, as_json=True)))]
    if change.before is MISSING:
        return [_line("ins", visible(_told(change.after, as_json=True)))]
    if change.after is MISSING:
        return [_line("del", visible(_told(change.before, as_json=True)))]
    both_text = all(isinstance(value, str) and value for value in (change.before, change.after))
    before, after = (_told(value, as_json=not both_text) for value in (change.before, change.after))
    return [
        _line(line.kind, _marked(line.parts))
        if line.kind != "skip"
        else _line("skip", _skipped(line.skipped))
        for line in text_lines(before, after)
    ]


def _line(kind: str, html: SafeString) -> dict[str, Any]:
    return {"kind": kind, "html": html}


def _skipped(count: int) -> SafeString:
    return conditional_escape(
        ngettext("%(count)s line is the same", "%(count)s lines are the same", count) % {"count": count}
    )


def _marked(parts: Iterable[tuple[str, bool]]) -> SafeString:
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<mark>{}</mark>", visible(text)) if marked else visible(text),)
            for text, marked in parts
        ),
    )


def _told(value: Json, *, as_json: bool) -> str:
    if isinstance(value, str) and not as_json:
        return value
    return json_text(value)


class _Rows:
    """Draws rows; knows which folded ones the reader has opened."""

    def __init__(
        self,
        expanded: frozenset[str],
        opener: Opener | None,
        *,
        landing: str | None = None,
        ends_only: bool = False,
    ) -> None:
        self.expanded = expanded
        self.opener = opener
        self.landing = landing
        self.ends_only = ends_only

    def table(self, rows: Sequence[Row], *, tight: bool = False) -> SafeString:
        drawn = [
            {
                "key": _key(row),
                "value": self.value(row),
                "type": words.row_type(row),
                "parts": bool(row.children),
            }
            for row in rows
        ]
        return draw("kv", rows=drawn, tight=tight)

    def value(self, row: Row) -> SafeString:
        if row.children:
            return self.parts(row)
        if row.shown is not None and row.is_folded:
            return self.folded(row, row.shown)
        return draw("value", **_plain(row))

    def parts(self, row: Row) -> SafeString:
        table = self.table(row.children, tight=True)
        if not row.is_folded:
            return table
        if row.pointer in self.expanded:
            return draw("opened", content=table, lands=row.pointer == self.landing)
        count = len(row.children)
        what = (
            ngettext("%(count)s item", "%(count)s items", count)
            if isinstance(row.value, list)
            else ngettext("%(count)s key", "%(count)s keys", count)
        )
        summary = what % {"count": count}
        return draw("parts", table=table, summary=summary, opener=self.open(row, gettext("Show all of it")))

    def folded(self, row: Row, text: str) -> SafeString:
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
        return self.opener(row.pointer, label) if self.opener else None


def _linked(url: str) -> Opener:
    return lambda pointer, label: format_html(
        '<a class="link" href="{}{}">{}</a>', url, quote(pointer, safe="", errors="surrogatepass"), label
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _key(row: Row) -> SafeString:
    if row.key is None:
        return mark_safe("")
    key = str(row.key + 1) if isinstance(row.key, int) else row.key
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
