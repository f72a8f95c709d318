"""JSON Schema made plain for drawing: references followed, ``allOf`` merged, unions told apart.

Assertions that do not change what a form looks like (``minLength``, ``not``, ``if`` …) pass through
untouched; ``validate`` checks them. What cannot be drawn raises ``Undrawable`` with a reason, and
``compile`` makes a raw JSON field of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from reviewer.cards.values import Json, same

ANNOTATIONS: Final = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "$schema",
        "$id",
        "$defs",
        "definitions",
        "discriminator",
        "$anchor",
    ]
)
_SHAPES: Final = frozenset(
    [
        "type",
        "properties",
        "items",
        "prefixItems",
        "additionalProperties",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "patternProperties",
    ]
)
_UNDRAWABLE: Final = (
    "patternProperties",
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedItems",
    "additionalItems",
)
_MOST_HOPS: Final = 32


class Undrawable(Exception):
    """A schema that has no form. ``reason`` is a key of ``words.REASONS``."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Option:
    """One branch of a union: its merged schema, and the names by which errors and people call it."""

    schema: dict[str, Json]
    name: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A schema ready to be drawn: a union of ``options``, or of at most one type."""

    schema: dict[str, Json]
    nullable: bool = False
    options: tuple[Option, ...] = ()
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A whole schema; every local reference is looked up here."""

    root: Json

    def shape(self, schema: Json) -> Shape:
        """Return the shape of a schema of this document; raises ``Undrawable``."""
        return self._shape(schema, hops=0)

    def _shape(self, schema: Json, *, hops: int) -> Shape:
        if hops > _MOST_HOPS:
            raise Undrawable("circular", "anyOf")
        plain = self.plain(schema)
        for keyword in _UNDRAWABLE:
            if plain.get(keyword):
                raise Undrawable("keyword", keyword)
        if isinstance(plain.get("unevaluatedProperties"), dict):
            raise Undrawable("keyword", "unevaluatedProperties")
        if "anyOf" in plain or "oneOf" in plain:
            return self._union_shape(plain, hops=hops)
        if isinstance(plain.get("type"), list) and not plain.keys() & {"enum", "const"}:
            return self._type_list_shape(plain)
        return Shape(plain)

    def plain(self, schema: Json) -> dict[str, Json]:
        """Return a schema with references followed (what stands beside wins) and ``allOf`` merged."""
        return self._plain(schema, hops=0)

    def _plain(self, schema: Json, *, hops: int) -> dict[str, Json]:
        if schema is True:
            return {}
        if schema is False:
            raise Undrawable("nothing-fits")
        if not isinstance(schema, dict):
            raise Undrawable("not-a-schema")
        while "$ref" in schema:
            hops += 1
            if hops > _MOST_HOPS:
                raise Undrawable("circular", str(schema["$ref"]))
            target = self.target(schema["$ref"])
            siblings = {
                key: value for key, value in schema.items() if key not in {"$ref", "$defs", "definitions"}
            }
            schema = {**target, **siblings}
        if not isinstance(schema.get("allOf", []), list):
            raise Undrawable("not-a-schema")
        parts = schema.get("allOf") or []
        if hops + len(parts) > _MOST_HOPS:
            raise Undrawable("circular", "allOf")
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            merged = merge(merged, self._plain(part, hops=hops + len(parts)))
        return merged

    def target(self, reference: Json) -> dict[str, Json]:
        """Return the schema a local reference points at."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise Undrawable("outside", str(reference))
        found = self.root
        for token in unquote(reference[1:]).split("/")[1:]:
            found = _step(found, token.replace("~1", "/").replace("~0", "~"))
            if found is None:
                raise Undrawable("dangling", reference)
        if found is True:
            return {}
        if not isinstance(found, dict) or (reference != "#" and not reference.startswith("#/")):
            raise Undrawable("dangling", reference)
        return found

    def _type_list_shape(self, plain: dict[str, Json]) -> Shape:
        types = [name for name in plain["type"] if name != "null"]
        nullable = len(types) < len(plain["type"])
        if not types:
            return Shape({**plain, "type": "null"})
        if len(types) == 1:
            return Shape({**plain, "type": types[0]}, nullable=nullable)
        inner = {key: value for key, value in plain.items() if key not in ANNOTATIONS}
        options = tuple(Option({**inner, "type": name}, "") for name in types)
        return Shape(plain, nullable=nullable, options=options)

    def _union_shape(self, plain: dict[str, Json], *, hops: int) -> Shape:
        if "anyOf" in plain and "oneOf" in plain:
            raise Undrawable("two-unions")
        listed = plain.get("anyOf", plain.get("oneOf"))
        if not isinstance(listed, list) or not listed:
            raise Undrawable("not-a-schema")
        outer = {key: value for key, value in plain.items() if key not in {"anyOf", "oneOf"}}
        beside = {key: value for key, value in outer.items() if key not in ANNOTATIONS}
        if beside and not any(isinstance(option, dict) and option.keys() & _SHAPES for option in listed):
            return Shape(plain)  # ``anyOf: [{required: [a]}, {required: [b]}]`` changes nothing that is drawn
        options = [Option(merge(self.plain(option), beside), _name_of(option)) for option in listed]
        kept = [option for option in options if not _is_null(option.schema)]
        nullable = len(kept) < len(options)
        if not kept:
            return Shape({**outer, "type": "null"})
        if len(kept) > 1:
            return Shape(plain, nullable=nullable, options=tuple(kept), tag=_tag_of(plain))
        notes = {key: value for key, value in outer.items() if key in ANNOTATIONS - {"discriminator"}}
        inner = self._shape({**kept[0].schema, **notes}, hops=hops + 1)
        return Shape(inner.schema, nullable=nullable or inner.nullable, options=inner.options, tag=inner.tag)


def merge(left: dict[str, Json], right: dict[str, Json]) -> dict[str, Json]:
    """Return both schemas at once, the left one's annotations winning. Raises ``Undrawable``."""
    merged = dict(left)
    for key, value in right.items():
        if key not in merged:
            merged[key] = value
        elif key == "properties" and isinstance(value, dict) and isinstance(merged[key], dict):
            merged[key] = _merge_properties(merged[key], value)
        elif key == "required" and isinstance(value, list) and isinstance(merged[key], list):
            merged[key] = [*merged[key], *(name for name in value if name not in merged[key])]
        elif key in _SHAPES and not same(merged[key], value):
            merged[key] = _merge_shape(key, merged[key], value)
    return merged


def _merge_properties(left: dict[str, Json], right: dict[str, Json]) -> dict[str, Json]:
    merged = dict(left)
    for name, schema in right.items():
        known = merged.get(name, True)
        if isinstance(known, dict) and isinstance(schema, dict) and not same(known, schema):
            if "$ref" in known or "$ref" in schema:
                raise Undrawable("conflict", name)
            merged[name] = merge(known, schema)
        elif known is True:
            merged[name] = schema
    return merged


def _merge_shape(key: str, left: Json, right: Json) -> Json:
    if key == "type":
        if sorted(map(str, (left, right))) == ["integer", "number"]:
            return "integer"
        common = [name for name in _as_list(left) if name in _as_list(right)]
        if common:
            return common[0] if len(common) == 1 else common
    if key == "additionalProperties" and isinstance(left, bool) and isinstance(right, bool):
        return False
    raise Undrawable("conflict", key)


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _step(found: Json, token: str) -> Json:
    if isinstance(found, dict):
        return found.get(token)
    if isinstance(found, list) and token.isascii() and token.isdigit() and int(token[:9]) < len(found):
        return found[int(token[:9])]
    return None


def _is_null(schema: dict[str, Json]) -> bool:
    if schema.get("type") == "null":
        return True
    return ("const" in schema and schema["const"] is None) or schema.get("enum") == [None]


def _name_of(option: Json) -> str:
    reference = option.get("$ref") if isinstance(option, dict) else None
    return reference.rsplit("/", 1)[-1] if isinstance(reference, str) else ""


def _tag_of(plain: dict[str, Json]) -> str | None:
    discriminator = plain.get("discriminator")
    name = discriminator.get("propertyName") if isinstance(discriminator, dict) else None
    return name if isinstance(name, str) else None


def parts_of(value: Json) -> Iterator[Json]:
    """Yield a value and every value inside it, without recursing."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        yield item
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
