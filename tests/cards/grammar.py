"""Random schemas with values that are made for them, as Hypothesis strategies.

A kind is a schema and a strategy for its values, so that lists and maps can draw several values of one
schema.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from hypothesis import strategies as st

_MARK: Final = "defined here"
TEXT = st.text(st.characters(exclude_categories=[]), max_size=20) | st.sampled_from(
    [
        "",
        "007",
        "19.90",
        "1e5",
        "\nleading",
        "trailing\n",
        "a\r\nb",
        "a\rb",
        "<script>alert(1)</script>",
        "  ",
        "\x00",
        "\ud800",
    ]
)
KEYS = st.text(st.characters(exclude_categories=[]), max_size=8) | st.sampled_from(
    [
        "",
        "a.b[0]/~c",
        "__proto__",
        "<script>",
        "~0",
        "~1/x",
        "length",
        "n1",
        "0",
        "~+",
        "verdict",
        "_op",
        "é",
        " ",
    ]
)
INTEGERS = st.integers() | st.sampled_from([0, -1, 2**53 + 1, 10**30, -(10**30)])
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [30.0, 1e5, 0.1, -0.0, 1e-7, 1e300]
)
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | TEXT
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@dataclass(frozen=True)
class Kind:
    schema: Any
    values: st.SearchStrategy[Any]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@st.composite
def enums(draw: st.DrawFn) -> Kind:
    options = draw(st.lists(SCALARS, min_size=1, max_size=6, unique_by=_text))
    return Kind({"enum": options}, st.sampled_from(options))


@st.composite
def constants(draw: st.DrawFn) -> Kind:
    value = draw(JSON)
    return Kind({"const": value}, st.just(value))


LEAVES: st.SearchStrategy[Kind] = st.one_of(
    st.just(Kind({"type": "string"}, TEXT)),
    st.just(Kind({"type": "string", "format": "date"}, TEXT)),
    st.just(Kind({"type": "integer"}, INTEGERS)),
    st.just(Kind({"type": "number"}, INTEGERS | FLOATS)),
    st.just(Kind({"type": "boolean"}, st.booleans())),
    st.just(Kind({"type": "null"}, st.none())),
    st.just(Kind({}, JSON)),
    st.just(Kind(True, JSON)),
    st.just(Kind({"type": ["string", "integer", "null"]}, TEXT | INTEGERS | st.none())),
    st.just(Kind({"type": "object"}, st.dictionaries(KEYS, JSON, max_size=3))),
    st.just(Kind({"anyOf": [{"type": "number"}, {"type": "string"}]}, FLOATS | INTEGERS | TEXT)),
    st.just(Kind({"type": "string", "format": "date-time"}, TEXT)),
    st.just(Kind({"type": "string", "maxLength": 500, "writeOnly": True}, TEXT)),
    st.just(
        Kind({"type": "object", "patternProperties": {"^a": {}}}, st.dictionaries(KEYS, JSON, max_size=2))
    ),
    enums(),
    constants(),
)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    keys = draw(st.lists(KEYS, max_size=4, unique=True))
    kinds = {key: draw(inner) for key in keys}
    required = [key for key in keys if draw(st.booleans())]
    rest = draw(st.sampled_from([None, True, False]))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: kind.schema for key, kind in kinds.items()},
    }
    schema["required"] = required
    if rest is not None:
        schema["additionalProperties"] = rest
    named = st.fixed_dictionaries(
        {key: kinds[key].values for key in required},
        optional={key: kind.values for key, kind in kinds.items() if key not in required},
    )
    if rest is False:
        return Kind(schema, named)
    others = st.dictionaries(KEYS.filter(lambda key: key not in kinds), JSON, max_size=2)
    return Kind(schema, st.builds(lambda left, right: {**left, **right}, named, others))


@st.composite
def tagged_unions(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    tags = draw(st.lists(st.text("abcxyz", min_size=1, max_size=4), min_size=2, max_size=3, unique=True))
    kinds = [draw(inner) for _ in tags]
    options: list[dict[str, Any]] = [
        {
            "type": "object",
            "properties": {"kind": {"const": tag}, "value": kind.schema},
            "required": ["kind", "value"],
        }
        for tag, kind in zip(tags, kinds, strict=True)
    ]
    values: list[st.SearchStrategy[Any]] = [
        st.fixed_dictionaries({"kind": st.just(tag), "value": kind.values})
        for tag, kind in zip(tags, kinds, strict=True)
    ]
    schema: dict[str, Any] = {draw(st.sampled_from(["anyOf", "oneOf"])): options}
    if draw(st.booleans()):
        schema["discriminator"] = {"propertyName": "kind"}
    return Kind(schema, st.one_of(values))


@st.composite
def plain_unions(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    """Kinds that nothing tells apart but their types, if that."""
    kinds = draw(st.lists(inner, min_size=2, max_size=3))
    schema: dict[str, Any] = {draw(st.sampled_from(["anyOf", "oneOf"])): [kind.schema for kind in kinds]}
    return Kind(schema, st.one_of([kind.values for kind in kinds]))


@st.composite
def named_constants(draw: st.DrawFn) -> Kind:
    """An enum as people write it who want to name the options."""
    options = draw(st.lists(SCALARS, min_size=2, max_size=4, unique_by=_text))
    listed = [{"const": option, "title": f"No. {at}"} for at, option in enumerate(options)]
    return Kind({"oneOf": listed}, st.sampled_from(options))


@st.composite
def told_twice(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    """The same schema in other words: through ``allOf`` and references, alone or with a sibling."""
    kind = draw(inner)
    name = draw(KEYS)
    schema = {"$ref": f"#/$defs/{_MARK}", _MARK: {name: kind.schema}}
    return Kind(
        draw(
            st.sampled_from(
                [
                    {"allOf": [kind.schema]},
                    {"allOf": [kind.schema, True]},
                    {"allOf": [{}, kind.schema], "title": "Title", "description": "Said by a stranger"},
                    {"allOf": [kind.schema, kind.schema]},
                    schema,
                    {**schema, "title": "Beside", "default": 7},
                    {"allOf": [schema]},
                ]
            )
        ),
        kind.values,
    )


@st.composite
def objects_in_parts(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    """An object of which each part of ``allOf`` knows something else."""
    keys = draw(st.lists(KEYS, min_size=2, max_size=4, unique=True))
    kinds = {key: draw(inner) for key in keys}
    required = [key for key in keys if draw(st.booleans())]
    cut = draw(st.integers(0, len(keys)))
    parts: list[Any] = [
        {"type": "object", "properties": {key: kinds[key].schema for key in part}, "required": [*part]}
        for part in (keys[:cut], keys[cut:])
    ]
    for part in parts:
        part["required"] = [key for key in part["required"] if key in required]
    if draw(st.booleans()):
        schema: dict[str, Any] = {**parts[0], "allOf": [parts[1]]}
    else:
        schema = {"allOf": [*parts, {"minProperties": 0}]}
    values = st.fixed_dictionaries(
        {key: kinds[key].values for key in required},
        optional={key: kind.values for key, kind in kinds.items() if key not in required},
    )
    return Kind(schema, values)


@st.composite
def open_objects(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    """An object with named keys and a schema for all the others."""
    keys = draw(st.lists(KEYS, min_size=1, max_size=2, unique=True))
    named, others = {key: draw(inner) for key in keys}, draw(inner)
    schema = {
        "type": "object",
        "properties": {key: kind.schema for key, kind in named.items()},
        "additionalProperties": others.schema,
    }
    values = st.builds(
        lambda left, right: {**left, **right},
        st.fixed_dictionaries({}, optional={key: kind.values for key, kind in named.items()}),
        st.dictionaries(KEYS.filter(lambda key: key not in named), others.values, max_size=2),
    )
    return Kind(schema, values)


@st.composite
def sets(draw: st.DrawFn) -> Kind:
    options = draw(st.lists(SCALARS, min_size=1, max_size=5, unique_by=_text))
    return Kind(
        {"type": "array", "uniqueItems": True, "items": {"enum": options}},
        st.lists(st.sampled_from(options), unique_by=_text, max_size=5),
    )


@st.composite
def trees(draw: st.DrawFn) -> Kind:
    """A schema that holds itself, in a list, a map or beside null."""
    leaf = draw(LEAVES)
    own = {"$ref": f"#/$defs/{_MARK}"}
    link, below = draw(
        st.sampled_from(
            [
                ({"type": "array", "items": own}, lambda inner: st.lists(inner, max_size=2)),
                (
                    {"type": "object", "additionalProperties": own},
                    lambda inner: st.dictionaries(KEYS, inner, max_size=2),
                ),
                ({"anyOf": [own, {"type": "null"}]}, lambda inner: st.none() | inner),
            ]
        )
    )
    node = {
        "type": "object",
        "properties": {"leaf": leaf.schema, "next": link},
        "required": ["leaf"],
        "additionalProperties": False,
    }
    values = st.recursive(
        st.fixed_dictionaries({"leaf": leaf.values}),
        lambda inner: st.fixed_dictionaries({"leaf": leaf.values}, optional={"next": below(inner)}),
        max_leaves=4,
    )
    return Kind({**own, _MARK: {"node": node}}, values)


def _containers(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    return st.one_of(
        objects(inner),
        tagged_unions(inner),
        plain_unions(inner),
        told_twice(inner),
        objects_in_parts(inner),
        open_objects(inner),
        inner.map(
            lambda kind: Kind({"type": "array", "items": kind.schema}, st.lists(kind.values, max_size=4))
        ),
        inner.map(
            lambda kind: Kind(
                {"type": "object", "additionalProperties": kind.schema},
                st.dictionaries(KEYS, kind.values, max_size=3),
            )
        ),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: Kind(
                {
                    "type": "array",
                    "prefixItems": [kind.schema for kind in kinds],
                    "minItems": len(kinds),
                    "maxItems": len(kinds),
                },
                st.tuples(*(kind.values for kind in kinds)).map(list),
            )
        ),
        inner.map(lambda kind: Kind({"anyOf": [kind.schema, {"type": "null"}]}, kind.values | st.none())),
    )


KINDS = st.recursive(LEAVES | named_constants() | sets() | trees(), _containers, max_leaves=8)


@st.composite
def schema_and_value(draw: st.DrawFn) -> tuple[Any, Any]:
    """Return a schema and a value made for it."""
    kind = draw(KINDS)
    return document(kind.schema), draw(kind.values)


def document(schema: Any) -> Any:
    """Return the schema as a whole document: what its parts define is gathered under one name each."""
    defined: dict[str, Any] = {}

    def gathered(part: Any) -> Any:
        if isinstance(part, list):
            return [gathered(item) for item in part]
        if not isinstance(part, dict):
            return part
        if _MARK not in part:
            return {key: gathered(item) for key, item in part.items()}
        ((name, held),) = part[_MARK].items()
        number = f"{len(defined)}{name}"
        defined[number] = None  # takes the number before its own parts do
        where = "#/$defs/" + quote(number.replace("~", "~0").replace("/", "~1"), errors="surrogatepass")
        own = {"$ref": where}
        defined[number] = gathered(_linked(held, own))
        return {**{key: gathered(item) for key, item in part.items() if key not in {_MARK, "$ref"}}, **own}

    whole = gathered(schema)
    return {**whole, "$defs": defined} if defined and isinstance(whole, dict) else whole


def _linked(part: Any, own: dict[str, Any]) -> Any:
    """Return a definition whose references to itself lead to the name it got."""
    if isinstance(part, list):
        return [_linked(item, own) for item in part]
    if not isinstance(part, dict) or _MARK in part:
        return part
    if part == {"$ref": f"#/$defs/{_MARK}"}:
        return own
    return {key: _linked(item, own) for key, item in part.items()}


_KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "additionalProperties",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "const",
        "enum",
        "default",
        "title",
        "description",
        "format",
        "minLength",
        "maximum",
        "pattern",
        "uniqueItems",
        "discriminator",
        "not",
        "if",
        "patternProperties",
    ]
)
_WORDS = st.sampled_from(
    [
        "string",
        "object",
        "array",
        "null",
        "#",
        "#/$defs/a",
        "#/properties/a",
        "http://x.example/",
        "#/$defs",
        "a",
        "type",
    ]
)
NONSENSE = st.recursive(
    SCALARS | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYWORDS | st.just("a"), inner, max_size=5),
    max_leaves=25,
)
"""Anything at all that might stand where a schema is expected."""
