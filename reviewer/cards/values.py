"""JSON values as they are: what is absent, what equals what, and how a value is written into a text field.

Does not live here: schemas (``schema``), or how a value is shown to a person (``view``).
"""

from __future__ import annotations

import enum
import json
import re
from typing import Any, Final

from reviewer.cards import unicode

Json = Any
"""A value as ``json.loads`` gives it: dict, list, str, int, float, bool or None."""


class Missing(enum.Enum):
    """The value that is not there; ``None`` is JSON's null and a value like any other."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING

DEEPEST = 100
"""Containers nested further than this are never taken apart."""

_LINE_END = re.compile("\r\n|\r|\n")
# Text fields lose these: NUL and lone surrogates cannot be sent, other controls cannot be typed.
_UNTYPEABLE = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def same(left: Json, right: Json) -> bool:
    """Say whether two values are equal by JSON type: ``1``, ``1.0``, ``True``, ``"1"`` differ."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, float):
        return repr(left) == repr(right)  # tells 0.0 from -0.0, and NaN equals itself
    return bool(left == right)


def type_of(value: Json) -> str:
    """Return the JSON Schema type name of a value; ``30.0`` is a number, ``30`` an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def depth_within(value: Json, limit: int) -> bool:
    """Say whether containers nest at most ``limit`` deep, without recursing."""
    level = [value]
    for _ in range(limit + 1):
        level = [child for item in level for child in _children(item)]
        if not level:
            return True
    return False


def size_of(value: Json) -> int:
    """Return a cheap lower bound of the characters a value takes as JSON text, without recursing."""
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        total += len(item) if isinstance(item, str) else 2
        if isinstance(item, dict):
            total += sum(map(len, item))
        waiting.extend(_children(item))
    return total


def _children(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def lines(text: str) -> str:
    """Return text with the one line ending that survives a browser."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def with_line_ends(typed: str, original: str) -> str:
    """Return typed text with the line ends that its lines had before: a text field only knows ``\\n``.

    Lines at the beginning and the end that are as they were keep their own ends; the ones between get the
    kind that the original begins with.
    """
    if "\r" not in original:
        return typed
    old, ends = _LINE_END.split(original), _LINE_END.findall(original)
    new = typed.split("\n")
    most = min(len(old), len(new)) - 1
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    kept = [*ends[:head], *[ends[0]] * (len(new) - 1 - head - tail), *ends[len(ends) - tail :]]
    text = "".join(part for pair in zip(new, [*kept, ""], strict=True) for part in pair)
    return text if lines(text) == typed else typed  # an end and the next one may read as one


def key_text(value: Json, limit: int) -> str | None:
    """Return the JSON text that only this value has and that gives it back; None for one past ``limit``.

    Two halves of a character that stand beside each other would come back as one.
    """
    try:
        text = json.dumps(value)
    except (RecursionError, TypeError, ValueError):  # such as an integer of thousands of digits
        return None
    return None if len(text) > limit or "\\ud" in text else text


def typeable(text: str) -> bool:
    """Say whether a text field can hold and send this text."""
    return _UNTYPEABLE.search(text) is None


def text_of(value: Json) -> str:
    """Return what a text field shows for a scalar: the string itself, or the exact digits of a number."""
    return value if isinstance(value, str) else repr(value)


def json_text(value: Json, *, indent: int | None = 2) -> str:
    """Return readable JSON text, safe to edit: characters nobody could see are escaped."""
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False)
    except RecursionError:  # hundreds of levels: stored values have at most 64
        text = "…"
    return "".join(
        run.text if run.glyph is None or run.is_word else _escape(run.text) for run in unicode.runs(text)
    )


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
