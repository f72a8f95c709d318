"""Regular expressions of schemas in words: "3 capital letters, then 6 digits, such as ABC123456".

Patterns are untrusted: a small parser of their commonest parts reads them here, and Python's ``re`` never
runs them; an example is shown only where the schema engine takes it. Whatever else a pattern holds has no
words, and the page then shows the pattern alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext, ngettext

from reviewer.cards import check
from reviewer.cards.schema import Document

LONGEST: Final = 200
_MOST: Final = 40  # characters of an example's repeated part, and parts of a sentence

_Counted = Callable[[int], str]
_SETS: Final[dict[str, tuple[_Counted, str]]] = {
    "A-Z": (lambda n: ngettext("%(n)s capital letter", "%(n)s capital letters", n), "ABC"),
    "a-z": (lambda n: ngettext("%(n)s small letter", "%(n)s small letters", n), "abc"),
    "A-Za-z": (lambda n: ngettext("%(n)s letter", "%(n)s letters", n), "abc"),
    "0-9": (lambda n: ngettext("%(n)s digit", "%(n)s digits", n), "1234567890"),
    "1-9": (lambda n: ngettext("%(n)s digit from 1 to 9", "%(n)s digits from 1 to 9", n), "123456789"),
    "0-9A-Z": (
        lambda n: ngettext("%(n)s capital letter or digit", "%(n)s capital letters or digits", n),
        "A1B2C3",
    ),
    "0-9a-z": (
        lambda n: ngettext("%(n)s small letter or digit", "%(n)s small letters or digits", n),
        "a1b2c3",
    ),
    "0-9A-Za-z": (lambda n: ngettext("%(n)s letter or digit", "%(n)s letters or digits", n), "a1b2c3"),
    "0-9a-f": (lambda n: ngettext("%(n)s digit or a to f", "%(n)s digits or a to f", n), "1a2b3c"),
    "0-9A-F": (lambda n: ngettext("%(n)s digit or A to F", "%(n)s digits or A to F", n), "1A2B3C"),
    "0-9A-Fa-f": (lambda n: ngettext("%(n)s digit or a to f", "%(n)s digits or a to f", n), "1a2b3c"),
    "-_0-9a-z": (
        lambda n: ngettext("%(n)s small letter, digit, - or _", "%(n)s small letters, digits, - or _", n),
        "a1b2c3",
    ),
    "-0-9a-z": (
        lambda n: ngettext("%(n)s small letter, digit or -", "%(n)s small letters, digits or -", n),
        "a1b2c3",
    ),
    "_0-9a-z": (
        lambda n: ngettext("%(n)s small letter, digit or _", "%(n)s small letters, digits or _", n),
        "a1b2c3",
    ),
    "_0-9A-Za-z": (
        lambda n: ngettext("%(n)s letter, digit or _", "%(n)s letters, digits or _", n),
        "a1b2c3",
    ),
}
_SHORT: Final = {"d": "0-9", "w": "_0-9A-Za-z"}
_SPECIAL: Final = frozenset("^$.*+?()[]{}|\\")


@dataclass(frozen=True, slots=True)
class Form:
    """What a text must look like: in words, and one that does ("" where none is known)."""

    words: str
    example: str


@dataclass(frozen=True, slots=True)
class _Part:
    words: str
    example: str
    literal: str = ""


class _Unknown(Exception):
    """The pattern holds something there are no words for."""


def _parts(pattern: str) -> tuple[_Part, ...] | None:
    """Return the parts of a pattern for the whole text, or None where there are no words for it."""
    if len(pattern) > LONGEST or not (pattern.startswith("^") and pattern.endswith("$")):
        return None
    try:
        return tuple(_Reader(pattern[1:-1]).sequence())
    except _Unknown:
        return None


def form_of(pattern: str) -> Form | None:
    """Return what a pattern asks for, in the reader's language, or None where there are no words for it."""
    parts = _parts(pattern)
    if not parts or len(parts) > _MOST:
        return None
    words = gettext(", then ").join(part.words for part in parts)
    example = "".join(part.example for part in parts)
    is_right = check.accepts(Document(True), {"type": "string", "pattern": pattern}, example)
    return Form(words, example if is_right else "")


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def sequence(self) -> list[_Part]:
        parts: list[_Part] = []
        while self.at < len(self.text):
            part = self.part()
            if part.literal and parts and parts[-1].literal:
                parts[-1] = _literal(parts[-1].literal + part.literal)
            else:
                parts.append(part)
        return parts

    def part(self) -> _Part:
        character = self.take()
        if character == "[":
            return self.counted(self.characters())
        if character == "\\":
            return self.escaped()
        if character == "(":
            return self.choice()
        if character in _SPECIAL:
            raise _Unknown
        return self.literal(character)

    def escaped(self) -> _Part:
        character = self.take()
        if character in _SHORT:
            return self.counted(_SHORT[character])
        if character.isalnum():
            raise _Unknown
        return self.literal(character)

    def literal(self, character: str) -> _Part:
        low, high = self.count()
        if low == high:
            return _literal(character * low)
        if (low, high) == (0, 1):
            return _Part(gettext("perhaps “%(text)s”") % {"text": character}, "")
        raise _Unknown

    def characters(self) -> str:
        """Return a set of characters in the order in which ``_SETS`` names it."""
        end = self.text.find("]", self.at)
        if end < 0:
            raise _Unknown
        inside, self.at = self.text[self.at : end], end + 1
        ranges: list[str] = []
        while inside:
            if inside.startswith("\\d"):
                ranges, inside = [*ranges, "0-9"], inside[2:]
            elif len(inside) > 2 and inside[1] == "-":
                ranges, inside = [*ranges, inside[:3]], inside[3:]
            else:
                ranges, inside = [*ranges, inside[0]], inside[1:]
        return "".join(sorted(ranges, key=lambda one: (len(one) > 1, one)))

    def counted(self, name: str) -> _Part:
        if name not in _SETS:
            raise _Unknown
        words, letters = _SETS[name]
        low, high = self.count()
        if (low, high) == (0, 1):
            return _Part(gettext("perhaps %(what)s") % {"what": words(1) % {"n": 1}}, "")
        length = max(low, min(3, high or 3))
        example = (letters * (length // len(letters) + 1))[:length]
        return _Part(words(high or 2) % {"n": _range(low, high)}, example)

    def choice(self) -> _Part:
        """Read a group of literal texts to choose from, such as ``(?:EUR|USD)``."""
        if self.text.startswith("?:", self.at):
            self.at += 2
        end = self.text.find(")", self.at)
        options = self.text[self.at : end].split("|")
        if end < 0 or any(not option or set(option) & _SPECIAL for option in options):
            raise _Unknown
        self.at = end + 1
        told = gettext(" or ").join(f"“{option}”" for option in options)
        match self.count():
            case (1, 1):
                return _Part(told, options[0])
            case (0, 1):
                return _Part(gettext("perhaps %(what)s") % {"what": told}, "")
        raise _Unknown

    def count(self) -> tuple[int, int | None]:
        """Read how often the last part may stand: (least, most), most None where there is no limit."""
        following = self.text[self.at : self.at + 1]
        if following in {"?", "*", "+"} and following:
            self.at += 1
            return {"?": (0, 1), "*": (0, None), "+": (1, None)}[following]
        if following != "{":
            return 1, 1
        end = self.text.find("}", self.at)
        bounds: Sequence[str] = self.text[self.at + 1 : end].split(",") if end > 0 else ()
        if (
            not 1 <= len(bounds) <= 2
            or not all(_is_small(bound) for bound in bounds if bound)
            or not bounds[0]
        ):
            raise _Unknown
        self.at = end + 1
        low = int(bounds[0])
        high = low if len(bounds) == 1 else int(bounds[1]) if bounds[1] else None
        if high == 0 or low > _MOST:
            raise _Unknown
        return low, high

    def take(self) -> str:
        if self.at >= len(self.text):
            raise _Unknown
        self.at += 1
        return self.text[self.at - 1]


def _literal(text: str) -> _Part:
    return _Part(f"“{text}”", text, literal=text)


def _is_small(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _range(low: int, high: int | None) -> str:
    if high is None:
        return gettext("%(low)s or more") % {"low": low}
    return str(low) if low == high else gettext("%(low)s to %(high)s") % {"low": low, "high": high}
