"""The field tree of a form: frozen nodes that hold schema, the agent's value and what the reviewer typed.

Does not live here: how a tree is built (``compile``), read (``read``), checked (``validate``) or drawn
(``render``).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from reviewer.cards.schema import Document
from reviewer.cards.values import MISSING, Json


class State(enum.StrEnum):
    """What is sent for a field: a value, JSON's null, or nothing at all."""

    VALUE = "value"
    NULL = "null"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What every field has. ``path`` names it (see ``names``); ``original`` is the agent's value."""

    path: str
    key: str | int | None = None
    label: str = ""
    description: str = ""
    schema: Json = field(default_factory=dict, repr=False)
    original: Json = MISSING
    default: Json = MISSING
    required: bool = True
    states: tuple[State, ...] = (State.VALUE,)
    state: State = State.VALUE
    unseen: bool = False
    """The reviewer asked for these fields but has not been shown them yet (without a script)."""

    @property
    def given(self) -> bool:
        """Say whether the agent gave a value here that a control can start from."""
        return self.original is not MISSING and not (self.original is None and State.NULL in self.states)

    @property
    def children(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Node):
    """A string, integer or number. ``text`` is what the field shows, None where nothing was typed."""

    kind: str
    text: str | None = None
    blank_is_absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Node):
    """One of some values: an enum or a boolean. ``picked`` is an index, ``CURRENT`` or "" for none yet."""

    options: tuple[Json, ...]
    picked: str = ""

    CURRENT = "current"

    @property
    def is_boolean(self) -> bool:
        return self.options == (True, False) and all(isinstance(option, bool) for option in self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Multi(Node):
    """Any number of some values, each once."""

    options: tuple[Json, ...]
    picked: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(Node):
    """The only value the schema allows."""

    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw(Node):
    """JSON text, with the reason why there is no form. ``can_draw`` says that a form can be had instead."""

    text: str = ""
    reason: str = ""
    detail: str = ""
    can_draw: bool = False
    extras_of: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lazy(Node):
    """A container that is null or not sent: its fields are made when the reviewer asks for them."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Node):
    """An object with named fields; ``extra`` holds keys that the schema does not name."""

    fields: tuple[Node, ...]
    extra: Node | None = None

    @property
    def children(self) -> tuple[Node, ...]:
        return self.fields if self.extra is None else (*self.fields, self.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One place of a list or map. ``id`` never changes; ``key`` is the typed key of a map."""

    id: str
    node: Node
    key: str = ""
    given_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Items(Node):
    """An array; ``fixed`` when its length is (a tuple)."""

    items: tuple[Item, ...]
    fixed: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        return tuple(item.node for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping(Node):
    """An object with free keys."""

    items: tuple[Item, ...]
    taken: frozenset[str] = frozenset()
    """Keys that belong to named fields beside this map."""

    @property
    def children(self) -> tuple[Node, ...]:
        return tuple(item.node for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One kind of a union; ``node`` is None until it is chosen for the first time."""

    label: str
    names: frozenset[str]
    kind: str
    node: Node | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Union(Node):
    """One of several kinds; ``tag`` names the property that tells them apart, if there is one."""

    branches: tuple[Branch, ...]
    chosen: int | None
    tag: str | None = None

    @property
    def branch(self) -> Node | None:
        return None if self.chosen is None else self.branches[self.chosen].node

    @property
    def children(self) -> tuple[Node, ...]:
        return () if self.branch is None else (self.branch,)


@dataclass(frozen=True, slots=True)
class Tree:
    """A compiled form and the document it came from. ``overflow``: it outgrew the limits."""

    root: Node
    document: Document
    overflow: bool = False


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything that is part of its answer, in the order it is shown."""
    yield node
    for child in node.children:
        yield from walk(child)
