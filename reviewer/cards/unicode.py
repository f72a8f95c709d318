"""Characters that deceive: found, named and counted, so that they can be shown as visible marks.

Marked (assurance S-07): bidirectional controls, zero-width characters, tags, variation selectors,
fillers, soft hyphens, control characters, private-use characters, lone surrogates, non-characters, words
that mix scripts, and words of look-alike letters among Latin ones. Not marked: what ordinary writing
needs, such as a joiner inside a Persian or Hindi word or inside an emoji, or a delta before a Latin
letter.
Does not live here: HTML (``render``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

_SUSPECT: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls; tab and newline are ordinary
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U0001d400-\U0001d7ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_WORD: Final = re.compile("(?:[^\\W\\d_][\u0300-\u036f]*)+")
_LATIN_WORD: Final = re.compile(r"[A-Za-z]{2,}")
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")

MIXED_WORD: Final = "Word of mixed scripts"
LOOKALIKE_WORD: Final = "Word of letters that look Latin"
_DECEPTIVE: Final = frozenset({MIXED_WORD, LOOKALIKE_WORD})

_NAMES: Final = {
    0x00AD: "Soft hyphen",
    0x034F: "Combining grapheme joiner",
    0x061C: "Arabic letter mark",
    0x115F: "Hangul choseong filler",
    0x1160: "Hangul jungseong filler",
    0x180E: "Mongolian vowel separator",
    0x2800: "Blank braille pattern",
    0x3164: "Hangul filler",
    0xFEFF: "Zero width no-break space",
    0xFFA0: "Halfwidth Hangul filler",
}
# Scripts that are written together in one word: Japanese, Chinese, Korean.
_TOGETHER: Final = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HALFWIDTH", "FULLWIDTH", "HANGUL", "BOPOMOFO"}
)
# Scripts whose letters pass for Latin ones; a word that mixes one of them with another script is marked.
_LOOKALIKE: Final = frozenset(
    {"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "LISU", "GEORGIAN"}
)
_POSING: Final = frozenset({"CYRILLIC", "GREEK"})
# Scripts that hardly anybody writes, and whose capitals are those of Latin.
_RARE: Final = frozenset({"CHEROKEE", "LISU", "COPTIC"})
_LONG_LURE: Final = 5
_NEAR: Final = 20
# Latin letters of phonetics, and numerals, that pass for plain ones among plain ones.
_LATIN_POSERS: Final = frozenset(
    "\u0251\u0261\u0262\u0269\u026a\u0274\u0280\u028f\u0299\u029c\u029f\ua730\ua731"
    + "".join(map(chr, range(0x1D00, 0x1D23)))
    + "".join(map(chr, range(0x2160, 0x2189)))
)
# Letters of those two that pass for Latin ones by themselves.
_POSERS: Final = frozenset(
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0455\u0456\u0458\u0501\u04bb\u051b\u051d\u04cf"
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
    "\u03bf\u03b1\u03bd\u03c1\u03c5\u03b9\u03ba"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
)
_OTHER_PICTOGRAPHS: Final = "↔↕↖↗↘↙↩↪‼⁉〰〽㊗㊙\u2139◻◼◽◾⤴⤵"
_JOINING: Final = frozenset({"ARABIC", "SYRIAC", "MONGOLIAN", "NKO", "MANDAIC"})


@dataclass(frozen=True, slots=True)
class Glyph:
    """A mark: ``code`` as ``U+202E`` and the name a person can look up."""

    code: str
    name: str


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text; with a ``glyph`` it is one deceptive character, or a word that mixes scripts."""

    text: str
    glyph: Glyph | None = None

    @property
    def is_word(self) -> bool:
        return self.glyph is not None and len(self.text) > 1


def runs(text: str) -> list[Run]:
    """Return the text cut into plain runs and marked ones; joined together they are the text again."""
    found: list[Run] = []
    at = 0
    for place, glyph in _hidden(text):
        found.extend(_word_runs(text[at:place]))
        found.append(Run(text[place], glyph))
        at = place + 1
    found.extend(_word_runs(text[at:]))
    return found


def _word_runs(text: str) -> Iterator[Run]:
    if text.isascii():
        if text:
            yield Run(text)
        return
    at = 0
    for start, end, glyph in _mixed_words(text):
        if start > at:
            yield Run(text[at:start])
        yield Run(text[start:end], glyph)
        at = end
    if at < len(text):
        yield Run(text[at:])


def count(value: Any) -> int:
    """Return how many marks a value holds, in keys and values at any depth."""
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            total += sum(1 for run in runs(item) if run.glyph)
        elif isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return total


def visible(text: str) -> str:
    """Return the text with hidden characters written out as ``‹U+202E›``, for plain text."""
    return "".join(f"‹{run.glyph.code}›" if run.glyph and not run.is_word else run.text for run in runs(text))


def _hidden(text: str) -> Iterator[tuple[int, Glyph]]:
    for match in _SUSPECT.finditer(text):
        if not _is_ordinary(text, match.start()):
            yield match.start(), glyph_of(match[0])


@lru_cache(maxsize=4096)
def glyph_of(character: str) -> Glyph:
    """Return the mark of one character."""
    point = ord(character)
    return Glyph(code=f"U+{point:04X}", name=_NAMES.get(point) or _name(character))


def _name(character: str) -> str:
    point = ord(character)
    if 0xD800 <= point <= 0xDFFF:
        return "Lone surrogate"
    if 0xE0000 <= point <= 0xE007F:
        return "Tag character"
    name = unicodedata.name(character, "")
    if name:
        return name.capitalize()
    category = unicodedata.category(character)
    return {"Cc": "Control character", "Co": "Private use character"}.get(category, "Unassigned character")


def _is_ordinary(text: str, at: int) -> bool:
    """Say whether this character does its ordinary work here: in words, emoji, line endings."""
    character = text[at]
    before = text[at - 1] if at else ""
    after = text[at + 1] if at + 1 < len(text) else ""
    if character == "\r":
        return after == "\n"
    if not before:
        return False
    if character in "\ufe0e\ufe0f":
        return _is_pictograph(before) or (before in "0123456789#*" and after == "\u20e3")
    if character == "\u200d" and (_is_pictograph(before) or before in "\ufe0f") and after:
        return _is_pictograph(after)
    if character in "\u200c\u200d":
        return _joins(before, after)
    return False


def _is_pictograph(character: str) -> bool:
    return character > "\u00a8" and (
        unicodedata.category(character) in {"So", "Sk"} or character in _OTHER_PICTOGRAPHS
    )


def _joins(before: str, after: str) -> bool:
    if 9 in {unicodedata.combining(before), unicodedata.combining(after or " ")}:
        return bool(after)  # beside a virama the joiner chooses the shape of an Indic cluster
    return bool(after) and script(before) in _JOINING and script(after) in _JOINING


def _mixed_words(text: str) -> Iterator[tuple[int, int, Glyph]]:
    """Yield where words deceive by their letters.

    A word of letters that all look Latin is judged with its neighbours: beside a word that can only be
    Russian it is Russian, between English ones it is a lure.
    """
    if not _NOT_ASCII.search(text):
        return
    kinds = {word: _kind_of(word)[0] for word in set(_WORD.findall(text))}
    is_foreign = "foreign" in kinds.values()
    shortest = 4 if is_foreign else 2 if _LATIN_WORD.search(text) else _LONG_LURE
    if not any(
        kind in _DECEPTIVE or (kind == "posing" and len(word) >= shortest) for word, kind in kinds.items()
    ):
        return  # as nearly every text: finding out where words are takes longer than that there are none
    words = [(match, *_kind_of(match[0])) for match in _WORD.finditer(text)]
    for at, (match, kind, told) in enumerate(words):
        is_lure = kind == "posing" and len(match[0]) >= shortest and not _stands_by_its_own(words, at)
        if kind in _DECEPTIVE or is_lure:
            name = LOOKALIKE_WORD if is_lure else kind
            yield match.start(), match.end(), Glyph(code=told, name=name)


def _stands_by_its_own(words: list[tuple[re.Match[str], str, str]], at: int) -> bool:
    """Say whether the nearest word to either side that does not pass for Latin itself is foreign."""
    before = (kind for _, kind, _ in reversed(words[max(0, at - _NEAR) : at]) if kind != "posing")
    after = (kind for _, kind, _ in words[at + 1 : at + 1 + _NEAR] if kind != "posing")
    return "foreign" in {next(before, ""), next(after, "")}


@lru_cache(maxsize=8192)
def _kind_of(word: str) -> tuple[str, str]:
    """Return what a word is: deceptive, posing as Latin, foreign, or neither; and the scripts of it."""
    if word.isascii():
        return "", ""
    scripts = _scripts(word)
    told = "+".join(sorted(scripts)).title()
    if len(word) > 1 and _is_mixed(word, scripts):
        return MIXED_WORD, told
    rest = "".join(letter for letter in word if letter not in _LATIN_POSERS)
    if rest and rest.isascii():
        return LOOKALIKE_WORD, "phonetic"
    if scripts and scripts <= _POSING:
        letters = (letter for letter in word if not unicodedata.combining(letter))
        return "posing" if _POSERS.issuperset(letters) else "foreign", told
    return "posing" if scripts and scripts <= _RARE else "", told


def _scripts(word: str) -> set[str]:
    return {name for name in map(script, word) if name}


def _is_mixed(word: str, scripts: set[str]) -> bool:
    """Say whether scripts meet in a word that ordinary writing keeps apart."""
    if "FULLWIDTH" in scripts and any(letter.isascii() for letter in word):
        return True
    if len(scripts) < 2 or not scripts & _LOOKALIKE or scripts - {"LATIN"} <= _TOGETHER:
        return False
    is_formula = scripts == {"GREEK", "LATIN"} and _POSERS.isdisjoint(word)
    return not is_formula


@lru_cache(maxsize=4096)
def script(character: str) -> str:
    """Return the script of a letter by its Unicode name, or "" for what belongs to none."""
    if not character.isalpha():
        return ""
    name = unicodedata.name(character, "")
    first = name.split(" ", 1)[0]
    return (
        ""
        if first
        in {
            "MODIFIER",
            "MICRO",
            "FEMININE",
            "MASCULINE",
            "OHM",
            "KELVIN",
            "ANGSTROM",
            "DOUBLE-STRUCK",
            "SCRIPT",
            "BLACK-LETTER",
        }
        else first
    )
