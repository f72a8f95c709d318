"""Is an answer what the schema asks for? Errors come from the chosen branches only, each at its own field.

The schema is narrowed to the branches that the answer takes, so that a mistake inside one kind of a union
is told as such and not as "fits none of five". Where the narrowed schema is content but the whole one is
not, one error stands for the whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from reviewer.cards import check
from reviewer.cards.compile import compile_form
from reviewer.cards.errors import MESSAGES, FieldError
from reviewer.cards.names import pointer_step
from reviewer.cards.places import node_at
from reviewer.cards.tree import Group, Items, Node, Raw, State, Tree, Union
from reviewer.cards.tree import Mapping as MappingNode
from reviewer.cards.values import Json, key_text

MOST_KEPT: Final = 256
LONGEST_KEPT: Final = 16 * 1024
"""Answers whose faults a process remembers, and characters of the longest one with its schema."""


def validate(answer: Json, schema: Json) -> tuple[FieldError, ...]:
    """Return what is wrong with an answer; nothing for a schema that cannot be read."""
    return validate_tree(compile_form(schema, answer), answer)


def validate_part(answer: Json, schema: Json, root: Json) -> tuple[FieldError, ...]:
    """Return what is wrong with an answer to a part of a document; told once for each text of the three.

    Most answers are the same few words to the same few schemas.
    """
    text = key_text((answer, schema, root), LONGEST_KEPT)
    return _validate_part(answer, schema, root) if text is None else _told_before(text)


@lru_cache(maxsize=MOST_KEPT)
def _told_before(text: str) -> tuple[FieldError, ...]:
    return _validate_part(*json.loads(text))


def _validate_part(answer: Json, schema: Json, root: Json) -> tuple[FieldError, ...]:
    return validate_tree(compile_form(schema, answer, root=root), answer)


def validate_tree(tree: Tree, answer: Json) -> tuple[FieldError, ...]:
    """Return what is wrong with the answer read from a tree, each error with the path of its field."""
    problems = check.problems(tree.document, _narrowed(tree.root), answer)
    found = list({_said(error): error for error in (_error(tree, problem) for problem in problems)}.values())
    whole = tree.document.root
    if found or not check.is_readable(tree.document, whole) or check.accepts(tree.document, whole, answer):
        return tuple(found)
    return (FieldError("", "schema", path=""),)


def _said(error: FieldError) -> tuple[str, str]:
    """Return what a reviewer would read: two conditions may ask for the same."""
    return error.pointer, error.message


def _narrowed(node: Node) -> Json:
    """Return the schema of one place with every union replaced by the chosen branch."""
    if node.state is State.NULL:
        return {"type": "null"}
    match node:
        case Union():
            return True if node.branch is None else _narrowed(node.branch)
        case Group():
            properties = {
                str(child.key): _narrowed(child) for child in node.fields if child.state is not State.ABSENT
            }
            rest = {} if not isinstance(node.extra, MappingNode) else _entries(node.extra)
            return {**_without(node.schema, "properties"), "properties": {**rest, **properties}}
        case MappingNode():
            return {**_without(node.schema, "properties"), "properties": _entries(node)}
        case Items():
            items = [_narrowed(item.node) for item in node.items]
            kept = _without(node.schema, "items", "prefixItems")
            return {**kept, "prefixItems": items} if items else kept
        case Raw():
            return check.anchored(node.schema)
    return check.anchored(node.schema)


def _entries(node: MappingNode) -> dict[str, Json]:
    return {item.key: _narrowed(item.node) for item in node.items}


def _without(schema: dict[str, Json], *keywords: str) -> dict[str, Json]:
    kept: dict[str, Json] = check.anchored(
        {key: value for key, value in schema.items() if key not in keywords}
    )
    return kept


def _error(tree: Tree, problem: check.Problem) -> FieldError:
    steps, kind = problem.steps, problem.kind
    if kind.name == "required":
        steps = [*steps, kind.property]  # type: ignore[attr-defined]
    code, params = _told(kind)
    pointer = "".join(f"/{pointer_step(step)}" for step in steps)
    node = node_at(tree.root, steps)
    if code == "additionalProperties" and isinstance(node, Group) and node.extra is not None:
        node = node.extra  # where they can be removed
    return FieldError(pointer, code, params, node.path)


def _told(kind: jsonschema_rs.ValidationErrorKind) -> tuple[str, Mapping[str, Json]]:
    """Return our code and its parameters for one kind of the engine's errors."""
    tell = _TELL.get(kind.name)
    if tell is None or kind.name not in MESSAGES:
        return "schema", {}
    params = tell(kind)
    return _OF_ONE.get(kind.name, kind.name) if params.get("limit") == 1 else kind.name, params


def _limit(kind: Any) -> Mapping[str, Json]:
    limit = kind.limit
    return {"limit": int(limit) if isinstance(limit, float) and limit.is_integer() else limit}


def _nothing(_: Any) -> Mapping[str, Json]:
    return {}


_OF_ONE: Final = {"minLength": "blank", "minItems": "empty"}
"""What a limit of one is called: "1 characters or more" says less."""

_TELL: Final[dict[str, Callable[[Any], Mapping[str, Json]]]] = {
    "required": lambda kind: {"key": kind.property},
    "type": lambda kind: {
        "type": " / ".join(kind.types) if isinstance(kind.types, list) else str(kind.types)
    },
    "minimum": _limit,
    "maximum": _limit,
    "exclusiveMinimum": _limit,
    "exclusiveMaximum": _limit,
    "minLength": _limit,
    "maxLength": _limit,
    "minItems": _limit,
    "maxItems": _limit,
    "multipleOf": lambda kind: {"limit": kind.multiple_of},
    "pattern": lambda kind: {"pattern": kind.pattern},
    "uniqueItems": _nothing,
    "enum": _nothing,
    "const": lambda kind: {"value": kind.expected_value},
    "additionalProperties": lambda kind: {"keys": ", ".join(kind.unexpected)},
}
