"""Schema, the agent's value and what was posted -> field tree. The one way to make one; never raises.

An operation changes what was posted and compiles again, so a fresh card, a structural button and a
refused answer all take this same path. Whatever has no form becomes a raw JSON field for its own subtree,
with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from reviewer.cards import branches
from reviewer.cards.kinds import MOST_ITEMS, SCALARS, index_of, kind_of, multi_options
from reviewer.cards.names import EXTRA_STEP, Posted, step
from reviewer.cards.schema import Document, Option, Shape, Undrawable
from reviewer.cards.titles import humanise
from reviewer.cards.tree import (
    Branch,
    Choice,
    Entry,
    Fixed,
    Group,
    Item,
    Items,
    Lazy,
    Mapping,
    Multi,
    Node,
    Raw,
    State,
    Tree,
    Union,
)
from reviewer.cards.values import (
    DEEPEST,
    MISSING,
    Json,
    depth_within,
    json_text,
    lines,
    same,
    size_of,
    text_of,
    type_of,
    typeable,
)

MOST_NODES: Final = 400
MOST_POSTED_NODES: Final = 1600
MOST_STEPS: Final = 20
LARGEST_SCHEMA: Final = 256 * 1024
LARGEST_VALUE: Final = 1024 * 1024

_CONTAINERS: Final = frozenset({"group", "mapping", "tuple", "items", "union"})
_EMPTY: Final = {"object": "{}", "array": "[]"}


class _Overflow(Exception):
    """The form outgrew its limits."""


class _Misfit(Exception):
    """The value is not of the type its schema asks for."""


@dataclass(frozen=True, slots=True)
class _Place:
    path: str = ""
    key: str | int | None = None
    label: str = ""
    required: bool = True
    depth: int = 0
    is_branch: bool = False
    left_out: bool = False

    def states(self, *, nullable: bool) -> list[State]:
        """Return what can be sent here."""
        wanted = [State.VALUE]
        if nullable:
            wanted.append(State.NULL)
        if not self.required or self.left_out:
            wanted.append(State.ABSENT)
        return wanted

    def below(self, name: str, key: str | int | None, label: str, *, required: bool = True) -> _Place:
        return _Place(f"{self.path}/{name}", key, label, required, self.depth + 1)


def compile_form(
    schema: Json, value: Json = MISSING, posted: Posted | None = None, *, root: Json = MISSING
) -> Tree:
    """Return the form of ``schema``, started from ``value`` and carried on with what was posted.

    ``root`` is the whole document where ``schema`` is only a part of it.
    """
    posted = posted or Posted()
    document = Document(schema if root is MISSING else root)
    compiler = _Compiler(document, posted)
    too_big = _is_too_big(document.root, value)
    if not too_big:
        try:
            return Tree(compiler.node(schema, value, _Place()), document)
        except _Overflow:
            too_big = "large"
    root = compiler.raw(schema, value, _Place(), reason=too_big)
    return Tree(root, document, overflow=posted.is_deep)


def _is_too_big(schema: Json, value: Json) -> str:
    if not _is_plainly_small(schema) and (
        not depth_within(schema, DEEPEST) or size_of(schema) > LARGEST_SCHEMA
    ):
        return "large-schema"
    if value is not MISSING and (not depth_within(value, DEEPEST) or size_of(value) > LARGEST_VALUE):
        return "large"
    return ""


def _is_plainly_small(schema: Json) -> bool:
    """Say whether the schema's text shows that it is within the limits, which is quicker than to walk it."""
    try:
        text = json.dumps(schema)
    except (RecursionError, TypeError, ValueError):
        return False
    return len(text) <= LARGEST_SCHEMA and text.count("{") + text.count("[") <= DEEPEST


class _Compiler:
    def __init__(self, document: Document, posted: Posted) -> None:
        self.document = document
        self.posted = posted
        self.left = MOST_POSTED_NODES if posted.is_deep else MOST_NODES
        self.makers: dict[str, Callable[[Shape, Json, _Place, dict[str, Any]], Node]] = {
            "union": self._union,
            "fixed": self._fixed,
            "choice": self._choice,
            "group": self._group,
            "mapping": self._mapping,
            "tuple": self._tuple,
            "multi": self._multi,
            "items": self._items,
            "string": self._entry,
            "integer": self._entry,
            "number": self._entry,
        }

    def node(self, schema: Json, value: Json, place: _Place) -> Node:
        """Return the node of one place; whatever cannot be drawn becomes a raw field."""
        self.left -= 1
        if self.left < 0:
            raise _Overflow
        base = self.posted.base(place.path)
        if base is not None:
            value = base[0]
        try:
            shape = self.document.shape(schema)
            kind = kind_of(self.document, shape, value)
        except Undrawable as problem:
            return self.raw(schema, value, place, reason=problem.reason, detail=problem.detail)
        if self.posted.is_raw(place.path):
            return self.raw(schema, value, place, reason="asked", can_draw=True)
        if place.depth > MOST_STEPS and kind not in {"string", "integer", "number", "choice", "fixed"}:
            return self.raw(schema, value, place, reason="deep")
        try:
            return self._drawn(kind, shape, value, place, schema)
        except _Misfit as misfit:
            reason = str(misfit) or "misfit"
            return self.raw(schema, value, place, reason=reason, can_draw=reason == "misfit")

    def _drawn(self, kind: str, shape: Shape, value: Json, place: _Place, schema: Json) -> Node:
        if kind == "fixed":  # the only value there can be is not something the agent left out
            place = replace(place, left_out=False)
        states = place.states(nullable=shape.nullable)
        common = self._common(shape.schema, value, place, states, schema)
        if value is None and not shape.nullable and kind not in {"fixed", "choice", "union"}:
            raise _Misfit
        if common["state"] is not State.VALUE and kind in _CONTAINERS:
            return Lazy(kind=kind, **common)
        inner = MISSING if value is None and shape.nullable else value
        asked_for = len(states) > 1 and kind in _CONTAINERS
        common["unseen"] = (asked_for or place.is_branch) and self._is_unseen(inner, place)
        return self.makers[kind](shape, inner, place, common)

    def _is_unseen(self, value: Json, place: _Place) -> bool:
        return bool(self.posted) and value is MISSING and not self.posted.shows(place.path)

    def raw(
        self,
        schema: Json,
        value: Json,
        place: _Place,
        *,
        reason: str,
        detail: str = "",
        can_draw: bool = False,
    ) -> Raw:
        """Return a raw JSON field for a whole subtree."""
        plain = schema if isinstance(schema, dict) else {}
        common = self._common(plain, value, place, place.states(nullable=False), schema)
        common["schema"] = schema
        blank = _EMPTY.get(branches.implied_type(plain) or "", "")
        text = blank if value is MISSING else json_text(value)
        posted = self.posted.text(place.path)
        text = lines(text) if posted is None else posted
        return Raw(text=text, reason=reason, detail=detail, can_draw=can_draw, **common)

    def _common(
        self, plain: dict[str, Json], value: Json, place: _Place, states: list[State], schema: Json
    ) -> dict[str, Any]:
        return {
            "path": place.path,
            "key": place.key,
            "label": _label(schema, plain, place),
            "description": _words(plain.get("description")),
            "schema": plain,
            "original": value,
            "default": plain.get("default", MISSING),
            "required": place.required,
            "states": tuple(states),
            "state": self._state(value, place.path, states),
        }

    def _state(self, value: Json, path: str, states: list[State]) -> State:
        posted = self.posted.state(path)
        if posted in states:
            return State(posted)
        if value is MISSING and State.ABSENT in states:
            return State.ABSENT
        if value is None and State.NULL in states:
            return State.NULL
        return State.VALUE

    # One maker for each kind

    def _entry(self, shape: Shape, value: Json, place: _Place, common: dict[str, Any]) -> Node:
        kind = branches.implied_type(shape.schema) or "string"
        if value is not MISSING:
            _expect_scalar(kind, value)
        posted = self.posted.text(place.path)
        text = posted if posted is not None or value is MISSING else lines(text_of(value))
        return Entry(kind=kind, text=text, **common)

    def _choice(self, shape: Shape, value: Json, place: _Place, common: dict[str, Any]) -> Node:
        options = tuple(shape.schema.get("enum", (True, False)))
        if options == (True, False) and "enum" not in shape.schema and value is not MISSING:
            _expect(isinstance(value, bool))
        at = None if value is MISSING else index_of(options, value)
        given = Choice.CURRENT if value is not MISSING else ""
        current = given if at is None else str(at)
        posted = self.posted.text(place.path)
        known = {str(index) for index in range(len(options))} | {current}
        return Choice(options=options, picked=posted if posted in known else current, **common)

    def _multi(self, shape: Shape, value: Json, place: _Place, common: dict[str, Any]) -> Node:
        options = tuple(multi_options(self.document, shape.schema, value))
        _expect(value is MISSING or isinstance(value, list))
        posted = self.posted.texts(place.path)
        if posted is None:
            given = [] if value is MISSING else value
            picked = tuple(index for item in given if (index := index_of(options, item)) is not None)
        else:
            chosen = {text for text in posted if text}
            picked = tuple(index for index in range(len(options)) if str(index) in chosen)
        return Multi(options=options, picked=picked, **common)

    def _fixed(self, shape: Shape, value: Json, _: _Place, common: dict[str, Any]) -> Node:
        constant = shape.schema.get("const")
        _expect(value is MISSING or same(value, constant))
        return Fixed(value=constant, **common)

    def _group(self, shape: Shape, value: Json, place: _Place, common: dict[str, Any]) -> Node:
        _expect(value is MISSING or isinstance(value, dict))
        given = {} if value is MISSING else value
        properties = shape.schema.get("properties", {})
        required = shape.schema.get("required")
        required = required if isinstance(required, list) else []
        fields = tuple(
            self._member(key, schema, given, place, required=key in required, left_out=value is not MISSING)
            for key, schema in properties.items()
        )
        return Group(fields=fields, extra=self._extra(shape.schema, given, place, properties), **common)

    def _member(
        self, key: str, schema: Json, given: Json, place: _Place, *, required: bool, left_out: bool
    ) -> Node:
        """Return one named field. What the agent left out of an object it gave is not made up."""
        where = place.below(step(key), key, humanise(key), required=required)
        return self.node(
            schema, given.get(key, MISSING), replace(where, left_out=left_out and key not in given)
        )

    def _extra(
        self, schema: dict[str, Json], given: Json, place: _Place, named: dict[str, Json]
    ) -> Node | None:
        extras = {key: item for key, item in given.items() if key not in named}
        rest = schema.get("additionalProperties", True)
        where = place.below(EXTRA_STEP, None, "", required=False)
        if isinstance(rest, dict) and rest:
            inner = {"type": "object", "additionalProperties": rest}
            node = self.node(inner, extras or MISSING, where)
            return replace(node, taken=frozenset(named)) if isinstance(node, Mapping) else node
        if not extras and not self.posted.touches(where.path):
            return None
        reason = "not-allowed" if rest is False else "extra"
        node = self.raw({"type": "object"}, extras, replace(where, required=True), reason=reason)
        return replace(node, extras_of=frozenset(named))

    def _mapping(self, shape: Shape, value: Json, place: _Place, common: dict[str, Any]) -> Node:
        _expect(value is MISSING or isinstance(value, dict))
        given = {} if value is MISSING else value
        keys = list(given)
        if len(keys) > MOST_ITEMS:
            raise _Misfit("long-list")
        if not all(typeable(key) and "\n" not in key and "\r" not in key for key in keys):
            raise _Misfit("untypeable")
        inner = shape.schema["additionalProperties"]
        return Mapping(items=tuple(self._entries(inner, given, keys, place)), **common)

    def _entries(self, inner: Json, given: dict[str, Json], keys: list[str], place: _Place) -> Iterable[Item]:
        for number, (name, at) in enumerate(self._places(place.path, len(keys)), start=1):
            original = None if at is None else keys[at]
            path = f"{place.path}/{name}"
            posted = self.posted.key(path)
            key = posted if posted is not None else original or ""
            value = MISSING if original is None else given[original]
            node = self.node(inner, value, place.below(name, key, f"{place.label} {number}"))
            yield Item(id=name, node=node, key=key, given_key=original)

    def _tuple(self, shape: Shape, value: Json, place: _Place, common: dict[str, Any]) -> Node:
        prefix = shape.schema["prefixItems"]
        _expect(value is MISSING or (isinstance(value, list) and len(value) == len(prefix)))
        given = [MISSING] * len(prefix) if value is MISSING else value
        items = (
            Item(id=str(at), node=self.node(inner, item, place.below(str(at), at, f"{place.label} {at + 1}")))
            for at, (inner, item) in enumerate(zip(prefix, given, strict=True))
        )
        return Items(items=tuple(items), fixed=True, **common)

    def _items(self, shape: Shape, value: Json, place: _Place, common: dict[str, Any]) -> Node:
        _expect(value is MISSING or isinstance(value, list))
        given = [] if value is MISSING else value
        inner = shape.schema["items"]
        items = (
            Item(
                id=name,
                node=self.node(
                    inner,
                    MISSING if at is None else given[at],
                    place.below(name, number, f"{place.label} {number + 1}"),
                ),
            )
            for number, (name, at) in enumerate(self._places(place.path, len(given)))
        )
        return Items(items=tuple(items), **common)

    def _places(self, path: str, length: int) -> Iterable[tuple[str, int | None]]:
        """Yield the ids of a list in their present order, each with the place it had at first."""
        names = self.posted.items(path)
        for name in [str(at) for at in range(length)] if names is None else names:
            yield name, int(name) if name.isdigit() and int(name) < length else None

    def _union(self, shape: Shape, value: Json, place: _Place, common: dict[str, Any]) -> Node:
        given = None if value is MISSING else branches.choose(self.document, shape, value)
        _expect(value is MISSING or given is not None)
        posted = self.posted.branch(place.path)
        chosen = posted if posted is not None and posted < len(shape.options) else given
        if chosen is None and all(map(_is_typed, shape.options)):
            chosen = 0
        tag = branches.tag_of(self.document, shape)
        made = tuple(
            self._branch(shape, index, value if index == given else MISSING, chosen, tag, place)
            for index in range(len(shape.options))
        )
        return Union(branches=made, chosen=chosen, tag=tag, **common)

    def _branch(
        self, shape: Shape, index: int, value: Json, chosen: int | None, tag: str | None, place: _Place
    ) -> Branch:
        option = shape.options[index]
        inner = replace(place.below(f"~{index}", place.key, place.label), is_branch=True)
        tags = branches.tag_values(self.document, shape, option, tag) if tag else []
        title = _title(option.schema)
        wanted = index == chosen or self.posted.touches(inner.path)
        node = self.node(option.schema, value, inner) if wanted else None
        return Branch(
            label=" / ".join(humanise(text_of(known)) for known in tags) or title or option.name,
            names=frozenset({*map(str, tags), title, option.name} - {""}),
            kind=branches.implied_type(option.schema) or "",
            node=replace(node, label=place.label) if node else None,
        )


def _is_typed(option: Option) -> bool:
    """Say whether a branch asks for a scalar that a person types: choosing it by itself answers nothing."""
    fixed = "const" in option.schema or "enum" in option.schema
    return branches.implied_type(option.schema) in SCALARS - {"null"} and not fixed


def _expect(fits: bool) -> None:
    if not fits:
        raise _Misfit


def _expect_scalar(kind: str, value: Json) -> None:
    found = type_of(value)
    if kind == "string" and found == "string":
        if not typeable(value):
            raise _Misfit("untypeable")
        return
    numeric = found == "integer" or (found == "number" and (kind == "number" or value.is_integer()))
    _expect(kind in {"integer", "number"} and numeric)


def _label(schema: Json, plain: Json, place: _Place) -> str:
    """Return the field's own title; that of a referenced class says less than the key."""
    title = _title(schema)
    made_from_key = isinstance(place.key, str) and title == place.key.replace("_", " ").title()
    return (title if not made_from_key else "") or place.label or _title(plain)


def _title(schema: Json) -> str:
    title = schema.get("title") if isinstance(schema, dict) else None
    return _words(title)


def _words(text: Json) -> str:
    return text.strip() if isinstance(text, str) else ""
