"""What an agent said, as Markdown made harmless: emphasis, lists, tables and code, and nothing else.

Headings are bold text, pictures and links are text with their whole destination, raw HTML is text.
Nothing may get lost on the way: a text of which any letter or hidden character would not be seen is
shown as it was written.
Does not live here: the fence around it, and the way to the text as it was written (``render``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import nh3
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reviewer.cards import unicode
from reviewer.cards.visible import visible

LONGEST: Final = 20_000
"""A longer text is shown as it was written: nobody formats a book for a reviewer."""

MOST_CELLS: Final = 5_000
"""A table fills up its short rows: a hundred columns over a page of empty lines take seconds to draw."""


class _Parser(MarkdownIt):
    """Keeps every destination as it was written: links are only read here, never followed."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802  the library's name
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        return link

    def validateLink(self, url: str) -> bool:  # noqa: N802, ARG002
        return True


_PARSER: Final = (
    _Parser("commonmark", {"html": False, "breaks": True})
    .enable(["table", "strikethrough"])
    # What these rules take is not seen any more: definitions of links, and characters spelled as entities.
    .disable(["reference", "entity", "html_block", "html_inline"])
)
_SIMPLE: Final = {
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "em": "em",
    "strong": "strong",
    "s": "s",
}
_EMPTY_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_NUMBER: Final = re.compile(r"\d+")
_PLAIN: Final = frozenset({"paragraph_open", "paragraph_close", "inline", "text", "softbreak"})
_TAGS: Final = {*_SIMPLE.values(), "ol", "li", "br", "code", "pre", "small", "span", "mark"}
_ATTRIBUTES: Final = {"span": {"title"}, "mark": {"title"}, "ol": {"start"}, "li": {"value"}}
_CLASSES: Final = {"span": {"glyph"}, "mark": {"glyph", "glyph--word"}}


@dataclass(frozen=True, slots=True)
class Prose:
    """A text to show. ``shown`` is what can be read; ``is_formatted``: it was written otherwise."""

    html: SafeString
    shown: str
    is_formatted: bool


def prose(text: str) -> Prose:
    """Return a text an agent wrote, formatted as it meant it where that hides nothing."""
    if len(text) <= LONGEST and _cells(text) <= MOST_CELLS:
        writer = _Writer()
        tokens = _parse(text)
        writer.block(tokens)
        if _is_formatted(tokens) and not _is_lost(text, writer):
            return Prose(_sanitised(writer.html), writer.text.strip(), is_formatted=True)
    return Prose(format_html('<p class="kv__text">{}</p>', visible(text)), text, is_formatted=False)


def _cells(text: str) -> int:
    """Return how many cells the tables of a text have at most: each ends with an empty line."""
    blocks = _EMPTY_LINE.split(text) if "|" in text else ()
    lines = (block.split("\n") for block in blocks if "|" in block)
    return sum(len(block) * (1 + max(line.count("|") for line in block)) for block in lines)


def _parse(text: str) -> list[Token]:
    return _PARSER.parse(text)


def _is_formatted(tokens: Sequence[Token]) -> bool:
    kinds = {token.type for token in tokens}
    kinds.update(child.type for token in tokens for child in token.children or ())
    return not kinds <= _PLAIN


def _is_lost(text: str, writer: _Writer) -> bool:
    """Say whether a letter, a digit or a hidden character would not be seen, or one more would."""
    written, shown = (Counter(filter(str.isalnum, one)) for one in (text, writer.text))
    if written - shown or set(_NUMBER.findall(text)) != set(_NUMBER.findall(writer.text)):
        return True  # or 2*3*4 would read as 234
    return not unicode.count(text) == writer.marks == unicode.count(writer.text)


def _sanitised(html: str) -> SafeString:
    """Return the HTML with nothing in it but what is allowed; what we wrote ourselves is held to it too."""
    clean = nh3.clean(
        html, tags=_TAGS, attributes=_ATTRIBUTES, allowed_classes=_CLASSES, url_schemes=set(), link_rel=None
    )
    return mark_safe(clean)  # noqa: S308  cleaned in the line above


@dataclass(slots=True)
class _Writer:
    """Writes tokens as HTML, and beside it the text that a reader sees and how many marks there are in it."""

    parts: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    marks: int = 0
    links: list[Token] = field(default_factory=list)

    @property
    def html(self) -> str:
        return "".join(self.parts)

    @property
    def text(self) -> str:
        return "".join(self.seen)

    def block(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            self.token(token)

    def token(self, token: Token) -> None:
        kind, _, end = token.type.rpartition("_")
        if token.type == "inline":
            self.block(token.children or [])
        elif end in {"open", "close"} and kind in _SIMPLE:
            self.tag(_SIMPLE[kind], token, is_end=end == "close")
        else:
            self.other(token)

    def tag(self, name: str, token: Token, *, is_end: bool) -> None:
        if token.hidden:  # the paragraphs of a tight list
            self.seen.append("\n" if is_end else "")
            return
        self.parts.append(f"</{name}>" if is_end else f"<{name}>")
        if token.block:
            self.seen.append("\n")

    def other(self, token: Token) -> None:
        match token.type:
            case "text" | "text_special":
                self.say(token.content)
            case "softbreak" | "hardbreak":
                self.parts.append("<br>")
                self.seen.append("\n")
            case "code_inline":
                self.within("code", token.content)
            case "fence" | "code_block":
                self.code(token)
            case "heading_open":  # never larger than text, and no heading of the page
                self.parts.append("<p><strong>")
            case "heading_close":
                self.parts.append("</strong></p>")
                self.seen.append("\n")
            case "ordered_list_open":
                self.parts.append("<ol>")
            case "ordered_list_close":
                self.parts.append("</ol>")
            case "list_item_open":
                self.item(token)
            case "list_item_close":
                self.parts.append("</li>")
            case "link_open":
                self.links.append(token)
            case "link_close":
                self.destination()
            case "image":
                self.picture(token)
            case _:  # a rule, and whatever a new version of the parser may know
                self.within("p", token.content or token.markup)

    def say(self, text: str) -> None:
        """Write text, its hidden characters as marks."""
        self.parts.append(visible(text))
        self.seen.append(text)
        self.marks += unicode.count(text)

    def within(self, tag: str, text: str) -> None:
        self.parts.append(f"<{tag}>")
        self.say(text)
        self.parts.append(f"</{tag}>")

    def code(self, token: Token) -> None:
        self.parts.append("<pre>")
        if token.info:
            self.within("small", token.info.strip())
            self.parts.append("\n")
            self.seen.append("\n")
        self.within("code", token.content)
        self.parts.append("</pre>")

    def item(self, token: Token) -> None:
        """Write the start of a list item; a numbered one keeps the number it was written with."""
        if token.info.isascii() and token.info.isdigit():
            self.parts.append(f'<li value="{int(token.info)}">')
            self.seen.append(f"{token.info}. ")
        else:
            self.parts.append("<li>")

    def destination(self) -> None:
        """Write where a link leads, unless its text is just that."""
        token = self.links.pop()
        href = str(token.attrGet("href") or "")
        if token.info != "auto":
            self.say(f" ({href}")
            self.title(token)
            self.say(")")
        self.host(href)

    def picture(self, token: Token) -> None:
        self.parts.append(conditional_escape(gettext("Picture, not loaded:")) + " ")
        self.say(f"{token.content} ({token.attrGet('src') or ''}")
        self.title(token)
        self.say(")")

    def title(self, token: Token) -> None:
        if token.attrGet("title"):
            self.say(f", “{token.attrGet('title')}”")

    def host(self, href: str) -> None:
        """Write the name that a host of other letters really has."""
        try:
            host = urlsplit(href).hostname or ""
            real = "" if host.isascii() else host.encode("idna").decode()
        except ValueError:
            return
        if real:
            told = gettext("really %(host)s") % {"host": real}
            self.parts.append(f" [{conditional_escape(told)}]")
