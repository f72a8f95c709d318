"""Field tree -> typed answer, or what is wrong with what was typed.

What nobody touched comes back as the agent's own object, to the byte. What was typed is parsed to the
type its field shows, never through a float on its way to an integer, and never coerced.
"""

from __future__ import annotations

from reviewer.cards.errors import FieldError
from reviewer.cards.names import part_of, pointer_step
from reviewer.cards.parse import Unreadable, parse_integer, parse_json, parse_number
from reviewer.cards.tree import (
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
    text_of,
    typeable,
    with_line_ends,
)


def read(tree: Tree) -> tuple[Json, tuple[FieldError, ...]]:
    """Return the answer and what does not parse; the answer holds the typed text in those places."""
    reader = _Reader()
    answer = reader.value(tree.root, "")
    if tree.overflow:
        reader.errors.append(FieldError("", "overflow", path=""))
    return answer, tuple(reader.errors)


def is_changed(node: Node) -> bool:
    """Say whether a field would send something else than the agent's value."""
    reader = _Reader()
    value = reader.value(node, "")
    return bool(reader.errors) or not same(value, node.original)


class _Reader:
    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def value(self, node: Node, pointer: str) -> Json:
        if node.state is State.ABSENT:
            return MISSING
        if node.state is State.NULL:
            return None
        try:
            return self._read(node, pointer)
        except Unreadable as problem:
            self.errors.append(FieldError(pointer, problem.code, problem.params, node.path))
            text = getattr(node, "text", None)
            return MISSING if text is None else text

    def _read(self, node: Node, pointer: str) -> Json:
        if node.unseen:
            raise Unreadable("unseen")
        match node:
            case Entry():
                return _entry(node)
            case Choice():
                return _choice(node)
            case Multi():
                return _multi(node)
            case Fixed():
                return node.original if node.given else node.value
            case Raw():
                return _raw(node)
            case Group():
                return self._group(node, pointer)
            case Items():
                return self._items(node, pointer)
            case Mapping():
                return self._mapping(node, pointer)
            case Union():
                return self._union(node, pointer)
            case Lazy():
                raise Unreadable("choose")
        raise TypeError(f"no reader for {type(node).__name__}")

    def _group(self, node: Group, pointer: str) -> Json:
        found = {}
        for child in node.fields:
            value = self.value(child, f"{pointer}/{pointer_step(str(child.key))}")
            if value is not MISSING:
                found[str(child.key)] = value
        extra = MISSING if node.extra is None else self.value(node.extra, pointer)
        if isinstance(extra, dict):
            found.update(extra)
        return _in_order(found, node.original)

    def _items(self, node: Items, pointer: str) -> Json:
        values = (self.value(item.node, f"{pointer}/{index}") for index, item in enumerate(node.items))
        return [None if value is MISSING else value for value in values]

    def _mapping(self, node: Mapping, pointer: str) -> Json:
        found: dict[str, Json] = {}
        for item in node.items:
            value = self.value(item.node, f"{pointer}/{pointer_step(item.key)}")
            problem = _key_problem(item, taken=item.key in found or item.key in node.taken)
            if problem:
                place = part_of(item.node.path, "key")
                self.errors.append(FieldError(pointer, problem, {"key": item.key}, place))
            found[item.key] = value
        return {key: None if value is MISSING else value for key, value in found.items()}

    def _union(self, node: Union, pointer: str) -> Json:
        if node.branch is None:
            raise Unreadable("choose-kind")
        return self.value(node.branch, pointer)


def _key_problem(item: Item, *, taken: bool) -> str:
    """Return what is wrong with the key of a map; the agent's own may be empty."""
    if taken:
        return "key-taken"
    if item.key == item.given_key:
        return ""
    if not item.key:
        return "key-missing"
    return "" if typeable(item.key) else "text"


def _in_order(found: dict[str, Json], original: Json) -> dict[str, Json]:
    """Return the object with the agent's keys in the agent's order, new ones after them."""
    if not isinstance(original, dict):
        return found
    known = {key: found[key] for key in original if key in found}
    return known | found


def _entry(node: Entry) -> Json:
    if node.text is None:
        if node.blank_is_absent:
            return MISSING
        raise Unreadable("missing")
    if node.given and node.text == lines(text_of(node.original)):
        return node.original
    if node.kind == "string":
        if not typeable(node.text):
            raise Unreadable("text")
        if node.text == "" and node.schema.get("format") == "date":  # a picker that nobody used
            raise Unreadable("missing")
        if node.blank_is_absent and not node.text.strip():
            return MISSING
        return with_line_ends(node.text, node.original) if isinstance(node.original, str) else node.text
    text = node.text.strip()
    return parse_integer(text) if node.kind == "integer" else parse_number(text)


def _choice(node: Choice) -> Json:
    if node.picked == "":
        raise Unreadable("choose")
    if node.picked == Choice.CURRENT:
        return node.original
    option = node.options[int(node.picked)]
    # An equal number of the other type (1.0 where the schema lists 1) is the agent's own and untouched.
    equal = node.given and not isinstance(node.original, (dict, list, bool)) and node.original == option
    return node.original if equal and not isinstance(option, bool) else option


def _multi(node: Multi) -> Json:
    kept = (
        [item for item in node.original if any(same(item, node.options[at]) for at in node.picked)]
        if node.given
        else []
    )
    added = [node.options[at] for at in node.picked if not any(same(node.options[at], item) for item in kept)]
    return [*kept, *added]


def _raw(node: Raw) -> Json:
    if node.given and (
        not depth_within(node.original, DEEPEST) or node.text == lines(json_text(node.original))
    ):
        return node.original
    value = parse_json(node.text)
    if node.extras_of is None:
        return value
    if not isinstance(value, dict):
        raise Unreadable("json-object")
    taken = next((key for key in value if key in node.extras_of), None)
    if taken is not None:
        raise Unreadable("key-taken", key=taken)
    return value
