"""Untrusted text as HTML: escaped, with deceptive characters as chips that show their code point."""

from __future__ import annotations

from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from reviewer.cards import unicode

_WORDS = {
    unicode.MIXED_WORD: _("This word mixes scripts: %(scripts)s"),
    unicode.LOOKALIKE_WORD: _("These letters look Latin but are %(scripts)s"),
}


def visible(text: str) -> SafeString:
    """Return text safe to show anywhere: escaped, hidden characters as ``.glyph`` chips."""
    runs = unicode.runs(text)
    if len(runs) == 1 and runs[0].glyph is None:
        return conditional_escape(text)
    return format_html_join("", "{}", ((_run(run),) for run in runs))


def _run(run: unicode.Run) -> SafeString:
    if run.glyph is None:
        return conditional_escape(run.text)
    if run.is_word:
        told = _WORDS[run.glyph.name] % {"scripts": run.glyph.code}
        return format_html('<mark class="glyph glyph--word" title="{}">{}</mark>', told, run.text)
    return format_html('<span class="glyph" title="{}">{}</span>', run.glyph.name, run.glyph.code)
