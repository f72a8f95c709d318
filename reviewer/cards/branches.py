"""Which branch of a union a value belongs to, and what the branches are called.

A tag decides first, also for a value that is not valid yet; then the branch that the value comes closest
to. A value that no branch is made for gets none: it is never bent to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reviewer.cards import check
from reviewer.cards.schema import Document, Option, Shape, Undrawable
from reviewer.cards.values import MISSING, Json, same, type_of

_FOREIGN: Final = 100
"""The distance between a value and a schema of another type."""
_DEEPEST: Final = 4


def tag_of(document: Document, shape: Shape) -> str | None:
    """Return the property that tells the branches apart, declared or found by disjoint constants."""
    if shape.tag is not None:
        return shape.tag
    properties = [_properties(option.schema) for option in shape.options]
    if not properties or not all(properties):
        return None
    return next((name for name in properties[0] if _is_tag(document, name, properties)), None)


def tag_values(document: Document, shape: Shape, option: Option, tag: str) -> list[Json]:
    """Return the values of ``tag`` that choose this branch."""
    values = _constants(document, _properties(option.schema).get(tag, MISSING))
    discriminator = shape.schema.get("discriminator")
    mapping = discriminator.get("mapping") if isinstance(discriminator, dict) else None
    if not isinstance(mapping, dict) or not option.name:
        return values
    mapped = [key for key, target in mapping.items() if str(target).rsplit("/", 1)[-1] == option.name]
    return [*values, *(key for key in mapped if key not in values)]


def choose(document: Document, shape: Shape, value: Json) -> int | None:
    """Return the index of the branch that ``value`` belongs to, or None."""
    tag = tag_of(document, shape)
    if tag is not None and isinstance(value, dict) and tag in value:
        for index, option in enumerate(shape.options):
            if any(same(value[tag], known) for known in tag_values(document, shape, option, tag)):
                return index
        if all(tag_values(document, shape, option, tag) for option in shape.options):
            return None
    distances = [distance(document, option.schema, value) for option in shape.options]
    nearest = min(distances)
    if nearest >= _FOREIGN:
        return None
    tied = [index for index, found in enumerate(distances) if found == nearest]
    if len(tied) == 1:
        return tied[0]
    return next(
        (index for index in tied if check.accepts(document, shape.options[index].schema, value)), tied[0]
    )


def distance(document: Document, schema: Json, value: Json, *, depth: int = 0) -> int:
    """Return how far a value is from a schema: 0 if made for it, 100 and more for another type."""
    if depth > _DEEPEST:
        return 0
    try:
        shape = document.shape(schema)
    except Undrawable:
        return _distance_unseen(document, schema, value)
    if value is None and shape.nullable:
        return 0
    if shape.options:
        return min(distance(document, option.schema, value, depth=depth + 1) for option in shape.options)
    constants = _constants(document, shape.schema)
    if constants:
        return 0 if any(same(value, known) for known in constants) else _FOREIGN // 2
    return _type_distance(shape.schema, value) or _inner_distance(
        document, shape.schema, value, depth=depth + 1
    )


def _distance_unseen(document: Document, schema: Json, value: Json) -> int:
    """Return the distance from a schema that has no form: the engine knows whether the value is valid."""
    if check.accepts(document, schema, value):
        return 0
    try:
        return _type_distance(document.plain(schema), value) or _FOREIGN // 2
    except Undrawable:
        return _FOREIGN


def _type_distance(schema: dict[str, Json], value: Json) -> int:
    wanted, found = implied_type(schema), type_of(value)
    if wanted in {None, found}:
        return 0
    if {wanted, found} == {"integer", "number"}:
        return 1 if wanted == "number" or value == int(value) else 20
    return _FOREIGN


def _inner_distance(document: Document, schema: dict[str, Json], value: Json, *, depth: int) -> int:
    if isinstance(value, list):
        items = schema.get("items", True)
        return min(9, sum(distance(document, items, item, depth=depth) for item in value[:5]))
    if not isinstance(value, dict):
        return 0
    properties = _properties(schema)
    missing = sum(1 for name in _names(schema.get("required")) if name not in value)
    foreign = sum(1 for name in value if name not in properties)
    inner = sum(
        min(30, distance(document, properties[name], value[name], depth=depth))
        for name in properties
        if name in value
    )
    return min(
        _FOREIGN - 1,
        5 * missing + foreign * (3 if schema.get("additionalProperties") is False else 1) + inner,
    )


def implied_type(schema: dict[str, Json]) -> str | None:
    """Return the type of a schema, also one that only names properties or items."""
    named = schema.get("type")
    if isinstance(named, str):
        return named
    if isinstance(schema.get("properties"), dict) or isinstance(schema.get("additionalProperties"), dict):
        return "object"
    if isinstance(schema.get("items"), dict) or isinstance(schema.get("prefixItems"), list):
        return "array"
    return None


def _is_tag(document: Document, name: str, properties: Sequence[dict[str, Json]]) -> bool:
    seen: list[Json] = []
    for known in properties:
        values = _constants(document, known.get(name, MISSING))
        if not values or any(same(value, other) for value in values for other in seen):
            return False
        seen.extend(values)
    return True


def _constants(document: Document, schema: Json) -> list[Json]:
    if not isinstance(schema, dict):
        return []
    try:
        plain = document.plain(schema)
    except Undrawable:
        return []
    if "const" in plain:
        return [plain["const"]]
    return plain["enum"] if isinstance(plain.get("enum"), list) else []


def _properties(schema: dict[str, Json]) -> dict[str, Json]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _names(value: Json) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
