"""Read-only rows of a value: key, value, what is sent, type. Nothing is left out; what is long is folded and
says how long.

Driven by the value, with the schema only as a guide: an argument that the schema does not know is shown
all the same, and one that the schema knows but the agent left out is shown as not sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from reviewer.cards import branches
from reviewer.cards.names import pointer_step
from reviewer.cards.schema import Document, Shape, Undrawable
from reviewer.cards.values import MISSING, Json, json_text

LONG_TEXT: Final = 280
HEAD: Final = 160
TAIL: Final = 80
_NEAR: Final = 24  # so far from a cut, the end of a word is looked for
MOST_ROWS: Final = 200
MOST_OPEN: Final = 12
DEEPEST_ROWS: Final = 8


def ends_of(text: str) -> tuple[str, str]:
    """Return the beginning and the end of a long text, cut between words where one ends near."""
    head, tail = text[:HEAD], text[-TAIL:]
    cut, start = head.rfind(" ", HEAD - _NEAR), tail.find(" ", 0, _NEAR)
    return head[:cut] if cut > 0 else head, tail[start + 1 :]


@dataclass(frozen=True, slots=True)
class Row:
    """One argument, or one part of it. ``text`` stands for a value that is shown as JSON text."""

    pointer: str
    key: str | int | None
    value: Json
    schema: dict[str, Json] = field(default_factory=dict)
    nullable: bool = False
    optional: bool = False
    children: tuple[Row, ...] = ()
    text: str | None = None

    @property
    def leaves(self) -> int:
        return sum(child.leaves for child in self.children) or 1

    @property
    def is_folded(self) -> bool:
        """Say whether this row shows less than the whole at first sight."""
        if self.children:
            return self.leaves > MOST_OPEN
        return is_long(self.shown) if self.shown is not None else False

    @property
    def shown(self) -> str | None:
        """The text of this row, where it is one."""
        return self.value if isinstance(self.value, str) else self.text


def rows(schema: Json, value: Json, *, root: Json = MISSING) -> tuple[Row, ...]:
    """Return the rows of a value: one for each key or item, or a single one without a key."""
    viewer = _Viewer(Document(schema if root is MISSING else root))
    top = viewer.row(schema, value, "", None, depth=0)
    return top.children if top.children else (top,)


def folded(found: tuple[Row, ...]) -> tuple[str, ...]:
    """Return the pointers of all rows that show less than the whole at first sight."""
    pointers: list[str] = []
    for row in found:
        if row.is_folded:
            pointers.append(row.pointer)
        pointers.extend(folded(row.children))
    return tuple(pointers)


def is_long(text: str) -> bool:
    """Say whether a text is folded."""
    return len(text) > LONG_TEXT


class _Viewer:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.left = MOST_ROWS

    def row(
        self,
        schema: Json,
        value: Json,
        pointer: str,
        key: str | int | None,
        *,
        optional: bool = False,
        depth: int,
    ) -> Row:
        shape = self._shape(schema, value)
        row = Row(pointer, key, value, shape.schema, shape.nullable, optional)
        self.left -= 1
        if not isinstance(value, dict | list) or (not value and not _properties(shape.schema)):
            return row
        if depth > DEEPEST_ROWS or len(value) > self.left:
            text = json_text(value)
            return Row(pointer, key, value, shape.schema, shape.nullable, optional, text=text)
        parts = self._members if isinstance(value, dict) else self._items
        return Row(
            pointer,
            key,
            value,
            shape.schema,
            shape.nullable,
            optional,
            parts(shape.schema, value, pointer, depth + 1),
        )

    def _members(self, schema: dict[str, Json], value: Json, pointer: str, depth: int) -> tuple[Row, ...]:
        properties = _properties(schema)
        required = schema.get("required")
        rest = schema.get("additionalProperties", True)
        keys = [*properties, *(key for key in value if key not in properties)]
        return tuple(
            self.row(
                properties.get(key, rest),
                value.get(key, MISSING),
                f"{pointer}/{pointer_step(key)}",
                key,
                optional=key in properties and not (isinstance(required, list) and key in required),
                depth=depth,
            )
            for key in keys
        )

    def _items(self, schema: dict[str, Json], value: Json, pointer: str, depth: int) -> tuple[Row, ...]:
        prefix = schema.get("prefixItems")
        fixed = prefix if isinstance(prefix, list) else []
        inner = schema.get("items", True)
        return tuple(
            self.row(fixed[at] if at < len(fixed) else inner, item, f"{pointer}/{at}", at, depth=depth)
            for at, item in enumerate(value)
        )

    def _shape(self, schema: Json, value: Json) -> Shape:
        """Return the shape of a schema, unions narrowed to the branch of this value."""
        nullable = False
        for _ in range(DEEPEST_ROWS):
            try:
                shape = self.document.shape(schema)
            except Undrawable:
                return Shape({}, nullable)
            nullable = nullable or shape.nullable
            index = (
                branches.choose(self.document, shape, value)
                if shape.options and value is not MISSING
                else None
            )
            if index is None:
                return Shape(shape.schema, nullable, shape.options)
            schema = shape.options[index].schema
        return Shape({}, nullable)


def _properties(schema: dict[str, Json]) -> dict[str, Json]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}
