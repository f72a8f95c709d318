"""Untrusted text as HTML: escaped, with deceptive characters as chips that show their code point."""

from __future__ import annotations

from typing import Final

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from reviewer.cards import unicode

MOST_CHIPS: Final = 2_000
_WORDS = {
    unicode.MIXED_WORD: _("This word mixes scripts: %(scripts)s"),
    unicode.LOOKALIKE_WORD: _("These letters look Latin but are %(scripts)s"),
}


def visible(text: str) -> SafeString:
    """Return text safe to show anywhere: escaped, hidden characters as ``.glyph`` chips.

    After ``MOST_CHIPS`` of them the rest are written out: a megabyte of hidden characters would become sixty
    of elements, and no browser draws those.
    """
    runs = unicode.runs(text)
    if len(runs) == 1 and runs[0].glyph is None:
        return conditional_escape(text)
    parts: list[str] = []
    rest = iter(runs)
    chips = 0
    for run in rest:
        parts.append(_run(run))
        chips += run.glyph is not None
        if chips == MOST_CHIPS:
            break
    parts.append(conditional_escape("".join(map(_written_out, rest))))
    return SafeString("".join(parts))


def _written_out(run: unicode.Run) -> str:
    if run.glyph is None:
        return run.text
    return f"{run.text if run.is_word else ''}‹{run.glyph.code}›"


def _run(run: unicode.Run) -> SafeString:
    if run.glyph is None:
        return conditional_escape(run.text)
    if run.is_word:
        told = _WORDS[run.glyph.name] % {"scripts": run.glyph.code}
        return format_html('<mark class="glyph glyph--word" title="{}">{}</mark>', told, run.text)
    return format_html('<span class="glyph" title="{}">{}</span>', run.glyph.name, run.glyph.code)
