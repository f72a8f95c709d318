"""Names and ids of form fields, and what a browser posted under them.

A name is a prefix and a path. The path is a JSON Pointer in which a list item has an id instead of an
index, so that moving and removing never renames a field; ``~`` steps that a key can never make: ``~3``
branch 3, ``~+`` keys without a name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from reviewer.cards.parse import Unreadable, parse_json
from reviewer.cards.values import MISSING, Json, lines

VALUE, STATE, BRANCH, ITEMS, KEY, RAW, BASE, SEEN = "v:", "s:", "b:", "#:", "k:", "r:", "j:", "u:"
PREFIXES: Final = (VALUE, STATE, BRANCH, ITEMS, KEY, RAW, BASE, SEEN)
OPERATION: Final = "_op"
VERDICT: Final = "verdict"
EXTRA_STEP: Final = "~+"
_OF_FIELD: Final = re.compile("#(key|up|down)$")

_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_MOST_STEPS: Final = 64
_ITEM_ID: Final = re.compile(r"n?[0-9]{1,6}")


def step(key: str) -> str:
    """Return a key as one step of a path; characters that a form cannot send are spelled ``~{hex}``."""
    escaped = key.replace("~", "~0").replace("/", "~1")
    return _UNSAFE.sub(lambda match: f"~{{{ord(match[0]):x}}}", escaped)


def pointer_step(key: str | int) -> str:
    """Return a key or index as one step of a JSON Pointer (RFC 6901)."""
    return str(key).replace("~", "~0").replace("/", "~1")


def html_id(form_id: str, path: str) -> str:
    """Return the element id of a field: keys may hold anything, so they are hashed."""
    return f"{form_id}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def part_of(path: str, part: str) -> str:
    """Return the place of a control that belongs to a field of a list or map: ``key``, ``up``, ``down``."""
    return f"{path}#{part}"


def field_of(place: str) -> str:
    """Return the path of the field that a place belongs to: ids of items have no ``#``."""
    return _OF_FIELD.sub("", place)


class PostedData(Protocol):
    """What ``request.POST`` is: several values under one name."""

    def getlist(self, key: str, /) -> list[str]: ...

    def __iter__(self) -> Iterator[str]: ...


class Posted:
    """The fields of one form as a browser sent them; operations return a changed copy."""

    def __init__(self, fields: dict[str, list[str]] | None = None) -> None:
        self._fields = fields or {}
        self._touched = {place for name in self._fields for place in _above(name[2:])}

    @classmethod
    def of(cls, data: PostedData) -> Posted:
        """Return the card's own fields of posted data; everything else belongs to the page."""
        names = (name for name in data if name.startswith(PREFIXES))
        return cls({name: list(data.getlist(name)) for name in names if name.count("/") <= _MOST_STEPS})

    def __bool__(self) -> bool:
        return bool(self._fields)

    @property
    def is_deep(self) -> bool:
        """Say whether more than one raw field for the whole was posted."""
        return not self._fields.keys() <= {VALUE, RAW, BASE, SEEN}

    def touches(self, path: str) -> bool:
        """Say whether any field at or under ``path`` was posted."""
        return path in self._touched

    def text(self, path: str) -> str | None:
        values = self._fields.get(VALUE + path)
        return lines(values[-1]) if values else None

    def texts(self, path: str) -> list[str] | None:
        return self._fields.get(VALUE + path)

    def state(self, path: str) -> str | None:
        return self._last(STATE + path)

    def branch(self, path: str) -> int | None:
        text = self._last(BRANCH + path) or ""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else None

    def items(self, path: str) -> list[str] | None:
        """Return the ids of a list in their order, or None where the list was not posted."""
        values = self._fields.get(ITEMS + path)
        if values is None:
            return None
        return list(dict.fromkeys(value for value in values if _ITEM_ID.fullmatch(value)))

    def key(self, path: str) -> str | None:
        return self._last(KEY + path)

    def is_raw(self, path: str) -> bool:
        return self._last(RAW + path) == "1"

    def is_uncovered(self, path: str) -> bool:
        """Say whether the reader asked to see the secret at this place."""
        return self._last(SEEN + path) == "1"

    def shows(self, path: str) -> bool:
        """Say whether the fields of this place were on the page that was posted."""
        return RAW + path in self._fields

    def base_text(self, path: str) -> str | None:
        """Return the JSON text that a place was started anew with, so that the page can carry it along."""
        return self._last(BASE + path)

    def base(self, path: str) -> tuple[Json] | None:
        """Return the value a form was started anew with, or None; an empty text starts fresh."""
        text = self.base_text(path)
        if text is None:
            return None
        if text == "":
            return (MISSING,)
        try:
            return (parse_json(text),)
        except Unreadable:
            return None

    def put(self, prefix: str, path: str, values: Iterable[str]) -> Posted:
        """Return a copy with one field set."""
        return Posted({**self._fields, prefix + path: list(values)})

    def without(self, path: str) -> Posted:
        """Return a copy without the fields at and under ``path``."""
        below = path + "/"
        return Posted(
            {
                name: value
                for name, value in self._fields.items()
                if name[2:] != path and not name[2:].startswith(below)
            }
        )

    def _last(self, name: str) -> str | None:
        values = self._fields.get(name)
        return values[-1] if values else None


def _above(path: str) -> Iterator[str]:
    """Yield a path and every path it lies under."""
    yield path
    while path:
        path = path.rpartition("/")[0]
        yield path
