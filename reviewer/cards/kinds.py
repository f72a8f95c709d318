"""What kind of field a schema asks for: its limits, and when a kind of its own is worth it.

Does not live here: how such a field is made (``compile``) or drawn (``paint``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reviewer.cards import branches
from reviewer.cards.schema import Document, Shape, Undrawable
from reviewer.cards.values import Json, same, type_of

MOST_BRANCHES: Final = 64
MOST_OPTIONS: Final = 200
MOST_MULTI: Final = 24
MOST_ITEMS: Final = 100
SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "null"})
_NUMBERS: Final = frozenset({"integer", "number"})


def kind_of(document: Document, shape: Shape, value: Json) -> str:
    """Return the kind of field for a shape and the value it holds; raises ``Undrawable``."""
    schema = shape.schema
    if shape.options:
        if len(shape.options) > MOST_BRANCHES:
            raise Undrawable("many-branches")
        return "union"
    if "const" in schema:
        return "fixed"
    if "enum" in schema:
        return _enum_kind(schema["enum"])
    kind = branches.implied_type(schema)
    if kind == "object":
        return _object_kind(schema)
    if kind == "array":
        return _array_kind(document, schema, value)
    if kind is None:
        raise Undrawable("any")
    if kind not in SCALARS:
        raise Undrawable("not-a-schema")
    return {"boolean": "choice", "null": "fixed"}.get(kind, kind)


def multi_options(document: Document, schema: dict[str, Json], value: Json) -> list[Json]:
    """Return the options of a set, or nothing where boxes to tick would not hold the value as it is."""
    if schema.get("uniqueItems") is not True:
        return []
    try:
        shape = document.shape(schema["items"])
    except Undrawable:
        return []
    options = shape.schema.get("enum")
    if not isinstance(options, list) or shape.options or shape.nullable:
        return []
    if not 0 < len(options) <= MOST_MULTI:
        return []
    given = value if isinstance(value, list) else []
    return options if _are_picked(options, given) else []


def index_of(options: Sequence[Json], value: Json) -> int | None:
    """Return the place of a value among options: the very same, or else an equal number."""
    exact = next((index for index, option in enumerate(options) if same(option, value)), None)
    if exact is not None or type_of(value) not in _NUMBERS:
        return exact
    equal = (index for index, option in enumerate(options) if type_of(option) in _NUMBERS and option == value)
    return next(equal, None)


def _are_picked(options: list[Json], given: list[Json]) -> bool:
    """Say whether every given item is one of the options to the byte, and none is there twice."""
    places = [next((at for at, option in enumerate(options) if same(option, item)), None) for item in given]
    return None not in places and len(set(places)) == len(places)


def _enum_kind(options: Json) -> str:
    if not isinstance(options, list) or not options:
        raise Undrawable("not-a-schema")
    if len(options) <= MOST_OPTIONS:
        return "choice"
    if all(isinstance(option, str) for option in options):
        return "string"
    raise Undrawable("many-options")


def _object_kind(schema: dict[str, Json]) -> str:
    properties, rest = schema.get("properties"), schema.get("additionalProperties")
    if isinstance(properties, dict):
        return "group"
    if isinstance(rest, dict) and rest:
        return "mapping"
    raise Undrawable("open-object")


def _array_kind(document: Document, schema: dict[str, Json], value: Json) -> str:
    prefix, items = schema.get("prefixItems"), schema.get("items")
    if prefix is not None:
        if isinstance(prefix, list) and len(prefix) <= MOST_ITEMS and _is_closed(schema, len(prefix)):
            return "tuple"
        raise Undrawable("keyword", "prefixItems")
    if not isinstance(items, dict):
        raise Undrawable("any-items" if items in (None, True) else "keyword", "items")
    if isinstance(value, list) and len(value) > MOST_ITEMS:
        raise Undrawable("long-list")
    return "multi" if multi_options(document, schema, value) else "items"


def _is_closed(schema: dict[str, Json], length: int) -> bool:
    return schema.get("items") is False or schema.get("maxItems") == length
