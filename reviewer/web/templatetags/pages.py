"""Tags of the pages for runs, queues, the trail and the workload: durations, event words, trees of values.

Nothing here reads the database.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from django import template
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents_runtime.canonical import Json, decode
from agents_runtime.models import Run
from reviewer import cards
from reviewer.audit.words import word_of
from reviewer.cards import render
from reviewer.cards.visible import visible
from reviewer.models import AuditEvent
from reviewer.web.durations import duration_words
from reviewer.web.templatetags.look import RUN_LOOKS, icon

register = template.Library()

DIGEST = re.compile("[0-9a-f]{32,64}")
MOST_ITEMS = 200
DEEPEST = 24
LONGEST_TEXT = 2_000
LONGEST_ABOUT = 60


@register.filter
def about(run: Run) -> SafeString:
    """Tell runs of one agent apart: the first words of the input, which whoever started the run wrote."""
    words = ", ".join(islice(_texts(decode(run.input)), 3))
    return visible(words if len(words) <= LONGEST_ABOUT else f"{words[:LONGEST_ABOUT]}…")


def _texts(value: Json) -> Iterator[str]:
    """Yield the texts of an input; who speaks in a message says nothing about the run."""
    if isinstance(value, str) and value.strip():
        yield " ".join(value.split())
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in {"role", "type"}:
                yield from _texts(item)


@register.filter
def duration(took: dt.timedelta | None) -> str:
    """Say how long something took: "3 min 2 s"."""
    return duration_words(took)


@register.simple_tag
def event_word(event: AuditEvent) -> SafeString:
    """Draw what an event is called: tone, icon and word."""
    word = word_of(event)
    return format_html(
        '<span class="said" data-tone="{}">{}{}</span>', word.tone, icon(word.icon), word.label
    )


@register.filter
def run_tone(run: Run) -> str:
    """Return the tone of a run's status."""
    return RUN_LOOKS[run.status][0]


@register.filter
def run_icon(run: Run) -> str:
    """Return the icon of a run's status."""
    return RUN_LOOKS[run.status][1]


@register.simple_tag
def render_fields(form: cards.Form, errors: Sequence[cards.FieldError] = ()) -> SafeString:
    """Draw the fields of an input form with its errors."""
    return render.render_form(form, errors)


@register.simple_tag
def agent_text(text: str) -> SafeString:
    """Draw what an agent wrote, for the inside of a fence."""
    return render.render_agent_text(text)


@register.simple_tag
def value_list(text: str) -> SafeString:
    """Draw a canonical value as data: key, value, type."""
    return render.render_value(True, decode(text))


@register.simple_tag
def untrusted(text: str | Promise) -> SafeString:
    """Draw a short text that an agent wrote: escaped, hidden characters shown."""
    return visible(str(text))


@register.simple_tag
def fact(text: str | Promise) -> SafeString:
    """Draw what an event recorded; digests and JSON look like what they are."""
    shown = visible(str(text))
    is_exact = DIGEST.fullmatch(str(text)) or str(text).startswith(("{", "["))
    return format_html('<code class="wrap">{}</code>', shown) if is_exact else shown


@register.simple_tag
def value_tree(name: str, value: Json, *, is_open: bool = False) -> SafeString:
    """Draw a named value as a tree that folds; text is the agent's, so hidden characters are shown."""
    label = format_html("<b>{}</b> ", visible(name))
    return format_html("<div>{}</div>", _node(label, value, path=name, depth=0, is_open=is_open))


def _node(label: SafeString, value: Json, *, path: str, depth: int, is_open: bool = False) -> SafeString:
    if not isinstance(value, (dict, list)) or not value:
        return format_html("{}{}", label, _leaf(value))
    if depth >= DEEPEST:
        return format_html("{}<i>{}</i>", label, _("too deep to show here"))
    return format_html(
        '<details data-path="{}"{}><summary>{} {}<i>{}</i></summary><ul>{}</ul></details>',
        path,
        mark_safe(" open") if is_open else "",
        icon("chevron-right"),
        label,
        _size(value),
        _members(value, path, depth),
    )


def _members(value: dict[str, Json] | list[Json], path: str, depth: int) -> SafeString:
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    tag = "<b>{}</b>: " if isinstance(value, dict) else "<i>{}</i> "
    shown = format_html_join(
        "",
        "<li>{}</li>",
        (
            (_node(format_html(tag, visible(str(key))), child, path=f"{path}/{key}", depth=depth + 1),)
            for key, child in pairs[:MOST_ITEMS]
        ),
    )
    rest = len(pairs) - MOST_ITEMS
    if rest <= 0:
        return shown
    return format_html(
        "{}<li><i>{}</i></li>", shown, ngettext("%(n)s more", "%(n)s more", rest) % {"n": rest}
    )


def _leaf(value: Json) -> SafeString:
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return visible(text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…")
    return visible(json.dumps(value, ensure_ascii=False))


def _size(value: dict[str, Json] | list[Json]) -> str:
    if isinstance(value, dict):
        return ngettext("%(n)s key", "%(n)s keys", len(value)) % {"n": len(value)}
    return ngettext("%(n)s item", "%(n)s items", len(value)) % {"n": len(value)}
