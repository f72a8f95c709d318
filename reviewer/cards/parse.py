"""Typed text -> value: strict JSON, whole numbers, numbers. What would become another value is refused.

Does not live here: which text belongs to which field (``read``).
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from reviewer.cards.values import DEEPEST, Json, depth_within

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,400}")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,399})(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")


class Unreadable(Exception):
    """A text that cannot be read; ``code`` is a key of ``errors.MESSAGES``."""

    def __init__(self, code: str, **params: Json) -> None:
        super().__init__(code)
        self.code = code
        self.params = params


def parse_json(text: str) -> Json:
    """Return the value of a JSON text.

    Raises ``Unreadable``, also for duplicate keys, NaN, and numbers that would be rounded.
    """
    if not text.strip():
        raise Unreadable("json-empty")
    try:
        value = json.loads(
            text, object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_float
        )
    except json.JSONDecodeError as problem:
        raise Unreadable("json", line=problem.lineno, column=problem.colno) from None
    except RecursionError:
        raise Unreadable("json-deep") from None
    except ValueError:  # more digits than Python takes in one number
        raise Unreadable("number") from None
    if not depth_within(value, DEEPEST):
        raise Unreadable("json-deep")
    return value


def parse_integer(text: str) -> int:
    """Return a whole number, to the last digit. Raises ``Unreadable``."""
    if not _INTEGER.fullmatch(text):
        raise Unreadable("integer")
    return int(text)


def parse_number(text: str) -> int | float:
    """Return a number as JSON writes it, without a fraction an integer. Raises ``Unreadable``."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise Unreadable("number")
    if match[1] is None and match[2] is None:
        return int(text)
    return _float(text)


def _float(text: str) -> float:
    """Return the number a text spells, unless it would become another one."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Unreadable("number")
    if _significant(text) != _significant(repr(number)):
        raise Unreadable("digits", sent=repr(number))
    return number


def _significant(text: str) -> str:
    """Return the digits of a number that matter: ``0.10`` and ``1.0e-1`` have the same."""
    digits = re.split("[eE]", text)[0].replace(".", "").lstrip("-0")
    return digits.rstrip("0")


def _unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise Unreadable("json-duplicate", key=key)
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise Unreadable("json-constant", name=name)
