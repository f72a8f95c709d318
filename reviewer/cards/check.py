"""The one door to the JSON Schema engine: linear-time patterns, no network, formats as hints only.

Schemas are untrusted: patterns never reach Python's ``re``, references never leave the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import jsonschema_rs

from reviewer.cards.schema import Document, parts_of
from reviewer.cards.values import DEEPEST, Json, depth_within, key_text

_ROOT: Final = "urn:card:schema"
MOST_KEPT: Final = 256
LONGEST_KEPT: Final = 64 * 1024
"""Validators that a process keeps, and characters of the longest schema that it keeps one for."""
_REFERENCES: Final = ("$ref", "$dynamicRef")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NAMES_A_RESOURCE: Final = frozenset({"$id", "$anchor", "$schema", "$dynamicAnchor"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing the engine found: where, and its own account of what."""

    steps: list[str | int]
    kind: jsonschema_rs.ValidationErrorKind


def accepts(document: Document, schema: Json, value: Json) -> bool:
    """Say whether ``value`` is valid; a schema that the engine cannot read accepts nothing."""
    validator = _validator(document, schema)
    return validator is not None and bool(validator.is_valid(_legible(value)))


def problems(document: Document, schema: Json, value: Json) -> Iterator[Problem]:
    """Yield what is wrong with ``value``. A schema that the engine cannot read finds nothing wrong."""
    validator = _validator(document, schema)
    if validator is None:
        return
    value = _legible(value)
    places = _places(validator, value) if _has_empty_key(value) else []
    for problem in validator.iter_errors(value):
        yield Problem(_steps(problem, places), problem.kind)


def _steps(problem: jsonschema_rs.ValidationError, places: list[tuple[list[str], str]]) -> list[str | int]:
    """Return where a problem is. The engine's list leaves out empty keys; ``places`` has them."""
    steps = list(problem.instance_path)
    for at, (full, keyword) in enumerate(places):
        if keyword == problem.kind.name and [step for step in full if step] == [str(step) for step in steps]:
            del places[at]
            return list(full)
    return steps


def _places(validator: jsonschema_rs.Draft202012Validator, value: Json) -> list[tuple[list[str], str]]:
    return [
        (
            [step.replace("~1", "/").replace("~0", "~") for step in unit["instanceLocation"].split("/")[1:]],
            keyword,
        )
        for unit in validator.evaluate(value).list()["details"]
        for keyword in unit.get("errors", {})
    ]


def _has_empty_key(value: Json) -> bool:
    return any(isinstance(part, dict) and "" in part for part in parts_of(value))


def is_readable(document: Document, schema: Json) -> bool:
    """Say whether the engine can check values against this schema."""
    return _validator(document, schema) is not None


def _legible(value: Json) -> Json:
    """Return the value with each lone surrogate, which the engine cannot take, as a character of its own."""
    if isinstance(value, str):
        return _SURROGATE.sub(lambda match: chr(ord(match[0]) - 0xD800 + 0xF0000), value)
    if isinstance(value, list):
        return [_legible(item) for item in value]
    if isinstance(value, dict):
        return {_legible(key): _legible(item) for key, item in value.items()}
    return value


def _validator(document: Document, schema: Json) -> jsonschema_rs.Draft202012Validator | None:
    """Return what checks values against a schema of this document; made once for schemas of the same text."""
    text = key_text((document.root, schema), LONGEST_KEPT)
    return _made(document.root, schema) if text is None else _kept(text)


@lru_cache(maxsize=MOST_KEPT)
def _kept(text: str) -> jsonschema_rs.Draft202012Validator | None:
    return _made(*json.loads(text))


def _made(root: Json, schema: Json) -> jsonschema_rs.Draft202012Validator | None:
    if not depth_within(schema, DEEPEST) or not depth_within(root, DEEPEST):
        return None
    try:
        registry = jsonschema_rs.Registry([(_ROOT, _legible(_without_names(root)))])
        return jsonschema_rs.Draft202012Validator(
            _legible(anchored(schema)), registry=registry, offline=True, validate_formats=False
        )
    except (
        ValueError
    ):  # the engine's own errors are ValueErrors: a bad pattern, a dangling reference, a wrong type
        return None


def anchored(schema: Json) -> Json:
    """Return a piece of the document whose local references point into the registered document."""
    if isinstance(schema, list):
        return [anchored(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _ROOT + value
        if key in _REFERENCES and isinstance(value, str) and value.startswith("#")
        else anchored(value)
        for key, value in schema.items()
        if key not in _NAMES_A_RESOURCE or not isinstance(value, str)
    }


def _without_names(schema: Json) -> Json:
    """Return the document without identifiers that would move its references elsewhere."""
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if key not in _NAMES_A_RESOURCE}
