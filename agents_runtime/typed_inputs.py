"""The JSON Schema of what a graph takes, also where LangGraph cannot give it whole.

LangGraph asks Pydantic for the schema of the author's input class. Before Python 3.12 Pydantic refuses every
class made with ``typing.TypedDict``, and on any version one field of a strange type spoils the whole. Here
such a class is rebuilt, and a field without a JSON form becomes one that takes any JSON.

Does not live here: what of the schema people are asked for (``input_schemas``).
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import typing_extensions
from langgraph.graph import StateGraph
from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from agents_runtime.canonical import Json
from agents_runtime.loading import Graph

# What Pydantic raises for types that have no JSON form.
FORMLESS = (PydanticUserError, TypeError, ValueError, KeyError, NameError)
ANY_OBJECT: Json = {"type": "object"}
REQUIRED = frozenset({typing.Required, typing_extensions.Required})
UNIONS = frozenset({Union, types.UnionType})
MARKERS = REQUIRED | {typing.NotRequired, typing_extensions.NotRequired}


def input_schema(graph: Graph) -> tuple[Json, tuple[str, ...]]:
    """Return the schema, and the fields that have no JSON form: ``("*",)`` if the whole has none."""
    builder = getattr(graph, "builder", None)
    if not isinstance(builder, StateGraph):
        return graph.get_input_jsonschema(), ()
    formless: tuple[str, ...] = ()
    try:
        schema = graph.get_input_jsonschema()
    except FORMLESS:
        schema, formless = _by_field(builder.input_schema)
    return _without(builder.managed, schema), formless


def _without(managed: Collection[str], schema: Json) -> Json:
    """Leave out what LangGraph itself puts into the state, such as the steps that remain."""
    fields = {name: given for name, given in schema.get("properties", {}).items() if name not in managed}
    required = [name for name in schema.get("required", []) if name not in managed]
    return schema | ({"properties": fields, "required": required} if fields else {})


def _by_field(cls: Any) -> tuple[Json, tuple[str, ...]]:
    try:
        fields = _fields(cls)
    except FORMLESS:  # a hint that names something unknown
        fields = {}
    if not fields:
        return ANY_OBJECT, ("*",)
    formless = tuple(name for name, field in fields.items() if not _has_form(field.hint))
    shape = {name: field.marked(Any if name in formless else field.hint) for name, field in fields.items()}
    return TypeAdapter(_typed_dict("Input", shape)).json_schema(), formless


@dataclasses.dataclass(frozen=True)
class _Field:
    hint: Any
    is_required: bool

    def marked(self, hint: Any) -> Any:
        """Return another hint, marked as required or not as this one is."""
        return Required[hint] if self.is_required else NotRequired[hint]


def _fields(cls: Any, inside: tuple[Any, ...] = ()) -> dict[str, _Field]:
    """Return the fields of a typed dictionary or dataclass; empty for any other kind of class."""
    if dataclasses.is_dataclass(cls):
        needed = {field.name for field in dataclasses.fields(cls) if _has_no_default(field)}
    elif typing_extensions.is_typeddict(cls):
        needed = set(cls.__required_keys__)
    else:
        return {}
    hints = typing.get_type_hints(cls, include_extras=True)
    return {name: _field(hint, inside, is_required=name in needed) for name, hint in hints.items()}


def _field(hint: Any, inside: tuple[Any, ...], *, is_required: bool) -> _Field:
    """Read a hint; what it says of itself goes before what its class says of all its fields."""
    marker = get_origin(hint)
    if marker in MARKERS:
        return _field(get_args(hint)[0], inside, is_required=marker in REQUIRED)
    return _Field(_modern(hint, inside), is_required)


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _has_form(hint: Any) -> bool:
    try:
        TypeAdapter(hint).json_schema()
    except FORMLESS:
        return False
    return True


def _modern(hint: Any, inside: tuple[Any, ...]) -> Any:
    """Return the type with every ``typing.TypedDict`` in it rebuilt so that Pydantic takes it."""
    if typing_extensions.is_typeddict(hint):
        return Any if hint in inside else _rebuilt(hint, inside)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is None or origin is Literal or not parts:
        return hint
    if origin is Annotated:
        return Annotated[(_modern(parts[0], inside), *parts[1:])]
    modern = tuple(_modern(part, inside) for part in parts)
    if modern == parts:
        return hint
    return functools.reduce(operator.or_, modern) if origin in UNIONS else origin[modern]


def _rebuilt(cls: Any, inside: tuple[Any, ...]) -> Any:
    fields = _fields(cls, (*inside, cls))
    return _typed_dict(cls.__name__, {name: field.marked(field.hint) for name, field in fields.items()})


def _typed_dict(name: str, shape: Mapping[str, Any]) -> Any:
    return typing_extensions.TypedDict(name, dict(shape))  # type: ignore[operator]
