"""From a place in an answer to a field of the form: JSON Pointers, and the ``loc`` of Pydantic errors.

Pydantic mixes into a ``loc`` the names of union branches (a tag, a class, a type) and reports the
branches that nobody chose as well. Those are dropped while the chosen branch has an error of its own;
nothing else is ever lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from reviewer.cards.errors import FieldError
from reviewer.cards.names import pointer_step
from reviewer.cards.tree import Branch, Group, Items, Mapping, Node, State, Tree, Union
from reviewer.cards.values import Json

_PYTHON_NAMES: Final = {
    "string": (
        "str",
        "constrained-str",
        "date",
        "datetime",
        "time",
        "timedelta",
        "uuid",
        "url",
        "decimal",
        "bytes",
        "function-",
        "lax-or-strict",
    ),
    "integer": ("int", "constrained-int"),
    "number": ("float", "decimal", "constrained-float", "int"),
    "boolean": ("bool",),
    "array": ("list[", "set[", "tuple[", "frozenset["),
    "object": ("dict[", "model", "dataclass", "typed-dict"),
    "null": ("none",),
}


def node_at(root: Node, steps: Sequence[str | int]) -> Node:
    """Return the field of a place in the answer, or the nearest one around it."""
    node = root
    for step in steps:
        child = _child(_inside(node), step)
        if child is None:
            return _inside(node)
        node = child
    return node


def place_errors(
    tree: Tree, problems: Iterable[dict[str, Json]], *, names: Collection[str] = ()
) -> tuple[FieldError, ...]:
    """Return Pydantic errors (dicts of ``loc``, ``msg``, ``type``) as errors at the fields of a form.

    ``names`` are those of the whole form where it is one branch of a larger union, as a decision is.
    """
    placed = [_place(tree.root, problem, names) for problem in problems]
    chosen = [error for error, union in placed if union is None]
    # An error of a branch nobody chose only counts where nothing else is wrong in that union.
    strays = [(error, union) for error, union in placed if union is not None]
    kept = [error for error, union in strays if not any(_is_under(other.path, union) for other in chosen)]
    return (*chosen, *_first_of_each(kept))


def _place(root: Node, problem: dict[str, Json], names: Collection[str]) -> tuple[FieldError, str | None]:
    """Return the error at its deepest field, and the path of the union whose other branch it speaks of."""
    loc = problem.get("loc")
    rest: list[str | int] = (
        [step for step in loc if isinstance(step, str | int)] if isinstance(loc, list | tuple) else []
    )
    node, pointer = root, ""
    if names and rest and _child(_inside(root), rest[0]) is None:
        if rest[0] not in names and len(rest) > 1 and _child(_inside(root), rest[1]) is not None:
            return _error(root, pointer, problem, rest), root.path
        rest = rest[1:] if rest[0] in names else rest
    while rest:
        union = node if isinstance(node, Union) else None
        if union is not None:
            name = str(rest[0])
            if union.chosen is not None and _is_called(union.branches[union.chosen], name):
                rest = rest[1:]
            elif any(_is_called(branch, name) for branch in union.branches):
                return _error(union, pointer, problem, []), union.path
            node = _inside(union)
            if not rest or node is union:
                break
            if isinstance(node, Union):
                continue
        child = _child(node, rest[0])
        if child is None:
            break
        pointer += f"/{pointer_step(rest[0])}"
        node, rest = child, rest[1:]
    return _error(node, pointer, problem, rest), None


def _error(node: Node, pointer: str, problem: dict[str, Json], rest: Sequence[str | int]) -> FieldError:
    told = str(problem.get("msg", ""))
    where = ".".join(str(step) for step in rest)
    return FieldError(pointer, "agent", {"message": f"{told} ({where})" if where else told}, node.path)


def _first_of_each(errors: Iterable[FieldError]) -> list[FieldError]:
    return list({error.path: error for error in reversed(list(errors))}.values())[::-1]


def _is_under(path: str | None, union: str) -> bool:
    return path is not None and (path == union or path.startswith(union + "/"))


def _is_called(branch: Branch, name: str) -> bool:
    if name in branch.names:
        return True
    return name.startswith(_PYTHON_NAMES.get(branch.kind, ())) if branch.kind else False


def _inside(node: Node) -> Node:
    """Return the node that has the keys of this place: unions add no step to a place."""
    while isinstance(node, Union) and node.branch is not None and node.state is State.VALUE:
        node = node.branch
    return node


def _child(node: Node, step: str | int) -> Node | None:
    match node:
        case Group():
            named = next((child for child in node.fields if child.key == str(step)), None)
            if named is None and isinstance(node.extra, Mapping):
                return _child(node.extra, step)
            return named
        case Mapping():
            return next((item.node for item in node.items if item.key == str(step)), None)
        case Items():
            at = step if isinstance(step, int) else int(step) if step.isascii() and step.isdigit() else -1
            return node.items[at].node if 0 <= at < len(node.items) else None
    return None
