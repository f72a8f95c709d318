"""JSON Schema made plain for drawing: references followed, ``allOf`` merged, unions told apart.

Assertions that do not change what a form looks like (``minLength``, ``not``, ``if`` …) pass through
untouched; ``validate`` checks them. What cannot be drawn raises ``Undrawable`` with a reason, and
``compile`` makes a raw JSON field of it. Assertions of two merged schemas that cannot be told as one stay
beside each other in ``allOf``.
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
_HIGHEST: Final = frozenset(["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"])
_LOWEST: Final = frozenset(["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"])
# Keywords that only mean something together: those of one schema never stand beside those of another.
_COUPLED: Final = (
    frozenset(["if", "then", "else"]),
    frozenset(["contains", "minContains", "maxContains"]),
    frozenset(["prefixItems", "items"]),
)


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
            schema = _beside_reference(
                {key: value for key, value in schema.items() if key not in {"$ref", "$defs", "definitions"}},
                target,
            )
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
        options = [
            Option(self._option(option, beside), _name_of(option)) for option in listed if option is not False
        ]
        if not options:
            raise Undrawable("nothing-fits")
        kept = [option for option in options if not _is_null(option.schema)]
        nullable = len(kept) < len(options)
        if not kept:
            return Shape({**outer, "type": "null"})
        if len(kept) > 1:
            return Shape(plain, nullable=nullable, options=tuple(kept), tag=_tag_of(plain))
        notes = {key: value for key, value in outer.items() if key in ANNOTATIONS - {"discriminator"}}
        inner = self._shape({**kept[0].schema, **notes}, hops=hops + 1)
        return Shape(inner.schema, nullable=nullable or inner.nullable, options=inner.options, tag=inner.tag)

    def _option(self, option: Json, beside: dict[str, Json]) -> dict[str, Json]:
        """Return one branch with what stands beside the union; one that cannot be drawn is left as it is."""
        try:
            return merge(self.plain(option), beside)
        except Undrawable:
            if not isinstance(option, dict):
                raise
            return {"allOf": [option, beside]} if beside else option


def merge(left: dict[str, Json], right: dict[str, Json]) -> dict[str, Json]:
    """Return both schemas at once, the left one's annotations winning. Raises ``Undrawable``."""
    merged = {**left, **_objects(left, right)}
    apart: dict[str, Json] = {}
    for key, value in right.items():
        if key in {"properties", "additionalProperties"} and key in merged:
            continue
        if key == "allOf" and isinstance(value, list) and isinstance(merged.get(key, []), list):
            merged[key] = [*merged.get(key, []), *value]
        elif any(key in group and group & left.keys() for group in _COUPLED):
            apart[key] = value
        elif key not in merged:
            merged[key] = value
        elif key not in ANNOTATIONS and not same(merged[key], value):
            _merge_keyword(merged, apart, key, value)
    if apart.keys() & {"items", "prefixItems"}:
        _merge_items(merged, apart)
    if apart:
        merged["allOf"] = [*merged.get("allOf", []), apart]
    return merged


def _beside_reference(siblings: dict[str, Json], target: dict[str, Json]) -> dict[str, Json]:
    """Return what a reference points at with what stands beside it, which wins where both cannot hold."""
    try:
        return merge(siblings, target)
    except Undrawable:
        return {**target, **siblings}


def _merge_keyword(merged: dict[str, Json], apart: dict[str, Json], key: str, value: Json) -> None:
    """Merge one keyword that both schemas have; one that cannot be told at once goes ``apart``."""
    known = merged[key]
    if key == "type":
        merged[key] = _common_type(known, value)
    elif key == "enum" and isinstance(known, list) and isinstance(value, list):
        merged[key] = [option for option in known if any(same(option, other) for other in value)]
        if not merged[key]:
            raise Undrawable("conflict", key)
    elif key == "required" and isinstance(known, list) and isinstance(value, list):
        merged[key] = [*known, *(name for name in value if name not in known)]
    elif key in _HIGHEST | _LOWEST and all(type(limit) in (int, float) for limit in (known, value)):
        merged[key] = max(known, value) if key in _HIGHEST else min(known, value)
    elif key in _SHAPES - {"anyOf", "oneOf"}:
        raise Undrawable("conflict", key)
    else:
        apart[key] = value


def _objects(left: dict[str, Json], right: dict[str, Json]) -> dict[str, Json]:
    """Return named and free keys of two schemas at once.

    What one of them closes the other cannot open; what it asks of free keys it asks of those that only the
    other names.
    """
    sides = [(side.get("properties", {}), side.get("additionalProperties", True)) for side in (left, right)]
    (named, rest), (others, other_rest) = sides
    if not isinstance(named, dict) or not isinstance(others, dict) or (not others and other_rest is True):
        return {}
    found: dict[str, Json] = {}
    for name in [*named, *(name for name in others if name not in named)]:
        both = [properties.get(name, free) for properties, free in sides]
        if not any(free is False and name not in properties for properties, free in sides):
            found[name] = _both(both[0], both[1])
    merged: dict[str, Json] = {"properties": found} if found or named or others else {}
    if "additionalProperties" in left or "additionalProperties" in right:
        merged["additionalProperties"] = _both(rest, other_rest)
    return merged


def _merge_items(merged: dict[str, Json], apart: dict[str, Json]) -> None:
    """Merge what two schemas say of the items of a list, where both speak of all of them."""
    if "prefixItems" in merged or "prefixItems" in apart:
        if not all(same(merged.get(key), apart.get(key)) for key in ("prefixItems", "items")):
            raise Undrawable("conflict", "prefixItems")
        del apart["prefixItems"]
    else:
        merged["items"] = _both(merged["items"], apart["items"])
    apart.pop("items", None)


def _both(left: Json, right: Json) -> Json:
    """Return a schema that asks what both ask; references are followed when it is drawn."""
    if right in (True, {}) or same(left, right):
        return left
    if left in (True, {}) or right is False:
        return right
    if not isinstance(left, dict):
        return left
    notes = {key: value for key, value in left.items() if key in ("title", "description")}
    return {**notes, "allOf": [left, right]}


def _common_type(left: Json, right: Json) -> Json:
    lefts, rights = _as_list(left), _as_list(right)
    common = [name for name in lefts if name in rights or (name == "integer" and "number" in rights)]
    common += [name for name in rights if name == "integer" and "number" in lefts and name not in common]
    if not common:
        raise Undrawable("conflict", "type")
    return common[0] if len(common) == 1 else common


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
