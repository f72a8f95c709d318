"""Structural buttons: add, remove, move, null, not sent, JSON on and off, undo.

Each changes only what was posted. An operation is ``name:path`` or ``name:argument:path`` (see
``OPERATIONS``). It parses leniently and validates nothing: text that does not parse yet is kept as it was
typed. An operation that makes no sense changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from reviewer.cards import names
from reviewer.cards.names import Posted
from reviewer.cards.parse import Unreadable, parse_json
from reviewer.cards.read import read
from reviewer.cards.tree import Item, Items, Mapping, Node, Raw, State, Tree, walk
from reviewer.cards.values import MISSING, json_text


@dataclass(frozen=True, slots=True)
class Applied:
    """What was posted, as the operation left it, and the path that gets the focus."""

    posted: Posted
    focus: str | None = None


def apply(operation: str, tree: Tree, posted: Posted) -> Applied:
    """Return what an operation makes of the posted fields; unknown ones leave everything as it is."""
    name, _, rest = operation.partition(":")
    act = OPERATIONS.get(name)
    if act is None:
        return Applied(posted)
    return act(tree, posted, rest) or Applied(posted)


def _add(tree: Tree, posted: Posted, path: str) -> Applied | None:
    node = _find(tree, path)
    if not isinstance(node, Items | Mapping) or (isinstance(node, Items) and node.fixed):
        return None
    taken = [int(item.id[1:]) for item in node.items if item.id.startswith("n")]
    new = f"n{max(taken, default=0) + 1}"
    return Applied(_order(posted, path, [*_ids(node.items), new]), f"{path}/{new}")


def _remove(tree: Tree, posted: Posted, path: str) -> Applied | None:
    parent, item = _item(tree, path)
    if parent is None:
        return None
    left = [name for name in _ids(parent.items) if name != item]
    return Applied(_order(posted.without(path), parent.path, left), parent.path)


def _up(tree: Tree, posted: Posted, path: str) -> Applied | None:
    return _move(tree, posted, path, -1, "up")


def _down(tree: Tree, posted: Posted, path: str) -> Applied | None:
    return _move(tree, posted, path, +1, "down")


def _move(tree: Tree, posted: Posted, path: str, by: int, button: str) -> Applied | None:
    parent, item = _item(tree, path)
    if parent is None:
        return None
    ids = _ids(parent.items)
    at = ids.index(item)
    if not 0 <= at + by < len(ids):
        return None
    ids[at], ids[at + by] = ids[at + by], ids[at]
    return Applied(_order(posted, parent.path, ids), names.part_of(path, button))


def _set(tree: Tree, posted: Posted, rest: str) -> Applied | None:
    state, _, path = rest.partition(":")
    node = _find(tree, path)
    if node is None or state not in node.states:
        return None
    return Applied(posted.put(names.STATE, path, [state]), path)


def _raw(tree: Tree, posted: Posted, path: str) -> Applied | None:
    """Turn a field into its JSON text, as it stands now."""
    node = _find(tree, path)
    if node is None or isinstance(node, Raw):
        return None
    value, _ = read(Tree(node, tree.document))
    text = json_text(value) if value is not MISSING else ""
    changed = posted.without(path).put(names.RAW, path, ["1"]).put(names.VALUE, path, [text])
    if len(node.states) > 1:
        changed = changed.put(names.STATE, path, [State.VALUE])
    return Applied(changed, path)


def _form(tree: Tree, posted: Posted, path: str) -> Applied | None:
    """Turn JSON text into a form of the same value; text that does not parse stays as it is."""
    node = _find(tree, path)
    if not isinstance(node, Raw):
        return None
    try:
        value = parse_json(node.text)
    except Unreadable:
        return None
    return Applied(posted.without(path).put(names.BASE, path, [json.dumps(value)]), path)


def _fresh(tree: Tree, posted: Posted, path: str) -> Applied | None:
    """Drop a value that its schema does not fit, and start an empty form instead."""
    node = _find(tree, path)
    if not isinstance(node, Raw) or not node.can_draw:
        return None
    changed = posted.without(path).put(names.BASE, path, [""])
    if len(node.states) > 1:
        changed = changed.put(names.STATE, path, [State.VALUE])
    return Applied(changed, path)


def _undo(tree: Tree, posted: Posted, path: str) -> Applied | None:
    """Give a field back the agent's value."""
    return Applied(posted.without(path), path) if _find(tree, path) is not None else None


def _uncover(tree: Tree, posted: Posted, path: str) -> Applied | None:
    """Show a secret, or cover it again."""
    if _find(tree, path) is None:
        return None
    return Applied(posted.put(names.SEEN, path, ["0" if posted.is_uncovered(path) else "1"]), path)


OPERATIONS: Final[dict[str, Callable[[Tree, Posted, str], Applied | None]]] = {
    "add": _add,
    "del": _remove,
    "up": _up,
    "down": _down,
    "set": _set,
    "raw": _raw,
    "form": _form,
    "fresh": _fresh,
    "undo": _undo,
    "uncover": _uncover,
}
"""``refresh`` is any other name: it only draws the form again, with the radios and switches as they are."""


def _find(tree: Tree, path: str) -> Node | None:
    return next((node for node in walk(tree.root) if node.path == path), None)


def _item(tree: Tree, path: str) -> tuple[Items | Mapping | None, str]:
    above, _, name = path.rpartition("/")
    parent = _find(tree, above)
    if not isinstance(parent, Items | Mapping) or name not in _ids(parent.items):
        return None, name
    return (None if isinstance(parent, Items) and parent.fixed else parent), name


def _ids(items: tuple[Item, ...]) -> list[str]:
    return [item.id for item in items]


def _order(posted: Posted, path: str, ids: list[str]) -> Posted:
    return posted.put(names.ITEMS, path, ["", *ids])
