"""Cards as HTML: rows of arguments, differences, what an agent said. Forms are drawn by ``paint``.

Everything an agent or a schema wrote is escaped by the template engine; hidden characters become visible
chips. No inline style, no script. The page around (the form element, CSRF, the bar of
buttons) belongs to ``reviewer.web``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from reviewer.cards import view, words
from reviewer.cards.card import Card, Form
from reviewer.cards.diff import MOVED, Change, each_line, place_name
from reviewer.cards.draw import draw
from reviewer.cards.errors import FieldError
from reviewer.cards.masking import Mask
from reviewer.cards.paint import Painter
from reviewer.cards.prose import prose
from reviewer.cards.renderers import drawn
from reviewer.cards.rows import Opener, Rows, linked
from reviewer.cards.secrets import MASK
from reviewer.cards.values import MISSING, Json, json_text
from reviewer.cards.visible import visible

__all__ = [
    "render_agent_text",
    "render_arguments",
    "render_arguments_in_brief",
    "render_diff",
    "render_form",
    "render_prose",
    "render_value",
    "visible",
]

LONG_PROSE: Final = 900
LONG_PROSE_LINES: Final = 18
MOST_CHANGES: Final = 500
MOST_LINES: Final = 1_000


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
    reveal: Opener | None = None,
) -> SafeString:
    """Return what will happen, as rows.

    With ``expand_url`` a folded value is opened by a link ``{expand_url}{pointer}``, so that the server
    knows what was read; ``opener`` draws another control than a link. ``expanded`` holds the pointers opened
    so far, and ``landing`` the one that gets the focus. Without both a folded value opens in place.
    ``reveal`` draws what shows a masked secret, where that is not the same control.
    """
    opens = opener or (linked(expand_url) if expand_url else None)
    return _arguments(card, Rows(frozenset(expanded), opens, landing=landing, reveal=reveal))


def render_arguments_in_brief(card: Card) -> SafeString:
    """Return the same rows for good, with both ends, length and SHA-256 of a folded text in place of it."""
    return Rows(frozenset(), None, ends_only=True).table(card.rows)


def _arguments(card: Card, rows: Rows) -> SafeString:
    """Return the rows of a card, some of them drawn by a renderer first and then once more as data."""
    own = drawn(card.request, set(card.concealed) - rows.expanded)
    if own is None:
        return rows.table(card.rows)
    if own.failed:
        return draw("own", failed=True, name=own.name, rest=rows.table(card.rows))
    covered = [row for row in card.rows if own.covers(row.pointer)]
    hides = rows.opener is not None and not set(view.folded(tuple(covered))) <= rows.expanded
    rest = [row for row in card.rows if not own.covers(row.pointer)]
    return draw("own", html=own.html, rest=rows.table(rest), same=rows.table(covered), is_open=hides)


def render_value(schema: Json, value: Json) -> SafeString:
    """Return any stored value as rows, such as a decided answer."""
    return Rows(frozenset(), None).table(view.rows(schema, value))


def render_prose(text: str) -> SafeString:
    """Return what an agent said, as sanitised Markdown, with the text as it was written one click away."""
    told = prose(text)
    lines = sum(1 for line in told.shown.split("\n") if line.strip())
    is_long = len(told.shown) > LONG_PROSE or lines > LONG_PROSE_LINES
    return draw(
        "prose",
        html=told.html,
        preview=visible(_preview(told.shown)) if is_long else "",
        length=len(text),
        written=visible(text) if told.is_formatted else "",
    )


def _preview(text: str) -> str:
    """Return the beginning of a text in a few lines, cut between words."""
    lines = [line for line in text[: 2 * view.LONG_TEXT].split("\n") if line.strip()]
    head = "\n".join(lines[:3])[: view.LONG_TEXT]
    return f"{head.rpartition(' ')[0] or head} …"


def render_agent_text(text: str) -> SafeString:
    """Return what an agent said as plain text: escaped, hidden characters visible, links as text."""
    return format_html('<span class="said__text">{}</span>', visible(text))


def render_diff(changes: Sequence[Change], *, mask: Mask | None = None) -> SafeString:
    """Return what was changed: the agent's value, yours, and the words that differ.

    ``mask`` is the card's own; without one, names alone tell what is secret.
    """
    told = (mask or Mask(True, True)).changes(changes[:MOST_CHANGES])
    rest = max(0, len(changes) - MOST_CHANGES)
    return draw("diff", changes=[_change(change) for change in told], rest=_untold(rest) if rest else "")


def _untold(count: int) -> SafeString:
    """Return how many changes are not drawn: a browser that draws them all shows none of them."""
    return conditional_escape(
        ngettext(
            "%(count)s more change is not drawn here. It is sent and recorded like the others.",
            "%(count)s more changes are not drawn here. They are sent and recorded like the others.",
            count,
        )
        % {"count": f"{count:,}"}
    )


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
    if change.before == change.after == MASK:
        return [_line("del", conditional_escape(MASK)), _line("ins", conditional_escape(MASK))]
    both_text = all(isinstance(value, str) and value for value in (change.before, change.after))
    before, after = (_told(value, as_json=not both_text) for value in (change.before, change.after))
    found = each_line(before, after)
    told = [
        _line(line.kind, _skipped(line.skipped) if line.kind == "skip" else _marked(line.parts))
        for line in islice(found, MOST_LINES)
    ]
    if next(found, None) is not None:
        told.append(
            _line("skip", conditional_escape(gettext("What follows differs, too, and is not drawn.")))
        )
    return told


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
