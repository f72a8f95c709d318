"""Read-only rows of a value: key, value, what is sent, type. Nothing is left out; what is long is folded and
says how long.

Driven by the value, with the schema only as a guide: an argument that the schema does not know is shown
all the same, and one that the schema knows but the agent left out is shown as not sent.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from reviewer.cards import branches
from reviewer.cards.names import pointer_step
from reviewer.cards.schema import Document, Shape, Undrawable
from reviewer.cards.secrets import is_masked, is_secret, secret_names
from reviewer.cards.values import MISSING, Json, json_text, type_of

LONG_TEXT: Final = 280
HEAD: Final = 160
TAIL: Final = 80
_NEAR: Final = 24  # so far from a cut, the end of a word is looked for
MOST_ROWS: Final = 200
MOST_OPEN: Final = 12
DEEPEST_ROWS: Final = 8
MOST_COLUMNS: Final = 6
MOST_LINES: Final = 12
_WIDEST: Final = 84  # characters of a table's line, and of a word in a list
_LONGEST_CELL: Final = 40


class Layout(enum.Enum):
    """How the parts of a row are laid out: a line for each, words in one line, a table, or blocks."""

    LINES = "lines"
    WORDS = "words"
    TABLE = "table"
    ITEMS = "items"


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
    secret: bool = False

    @property
    def leaves(self) -> int:
        """How many values there are to read; the lines of a table count once each."""
        if self.layout is Layout.TABLE:
            return len(self.children)
        return sum(child.leaves for child in self.children) or 1

    @property
    def layout(self) -> Layout:
        """How the parts are laid out, by what they are."""
        if not isinstance(self.value, list) or not self.children:
            return Layout.LINES
        if _are_words(self.children):
            return Layout.WORDS
        if not all(isinstance(child.value, dict | list) for child in self.children):
            return Layout.LINES
        return Layout.TABLE if _are_lines_of_a_table(self.children) else Layout.ITEMS

    @property
    def is_concealed(self) -> bool:
        """Say whether this row holds a secret, which is masked until its reader asks for it."""
        return self.secret and not self.children

    @property
    def is_folded(self) -> bool:
        """Say whether this row shows less than the whole at first sight; what is masked is another matter."""
        if self.is_concealed:
            return False
        if self.children:
            return self.leaves > MOST_OPEN
        return is_long(self.shown) if self.shown is not None else False

    @property
    def misfit(self) -> str:
        """The type of a value that is not of the type its schema asks for, else ""."""
        asked = self.schema.get("type")
        if self.value is MISSING or self.value is None or not isinstance(asked, str):
            return ""
        found = type_of(self.value)
        is_whole = asked == "integer" and isinstance(self.value, float) and self.value.is_integer()
        return "" if found == asked or is_whole or (asked, found) == ("number", "integer") else found

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


def concealed(found: Iterable[Row]) -> Iterator[str]:
    """Yield the pointers of all rows that are masked until their reader asks."""
    for row in found:
        if row.is_concealed:
            yield row.pointer
        yield from concealed(row.children)


def columns_of(row: Row) -> tuple[str, ...]:
    """Return the keys of a list of objects, in the order they are met."""
    return tuple(dict.fromkeys(str(part.key) for child in row.children for part in child.children))


def _are_words(found: tuple[Row, ...]) -> bool:
    """Say whether items are short values of one kind."""
    return all(_is_short(row, _WIDEST) for row in found) and len({_kind(row) for row in found}) == 1


def _are_lines_of_a_table(found: tuple[Row, ...]) -> bool:
    """Say whether items are objects of the same few short values."""
    if not all(isinstance(row.value, dict) and row.children for row in found):
        return False
    kinds: dict[str, set[tuple[Json, ...]]] = {}
    widths: dict[str, int] = {}
    for part in (part for row in found for part in row.children):
        key = str(part.key)
        if not _is_short(part, _LONGEST_CELL):
            return False
        widths[key] = max(widths.get(key, len(key)), len(str(part.value)) if part.value is not MISSING else 8)
        if part.value is not MISSING:
            kinds.setdefault(key, set()).add(_kind(part))
    is_uniform = all(len(found) == 1 for found in kinds.values())
    return is_uniform and len(widths) <= MOST_COLUMNS and sum(widths.values()) <= _WIDEST


def _is_short(row: Row, longest: int) -> bool:
    if row.children or row.text is not None or row.secret:
        return False
    return not isinstance(row.value, str) or (len(row.value) <= longest and "\n" not in row.value)


def _kind(row: Row) -> tuple[Json, ...]:
    """Return what the words for the type of a value are made from."""
    named = row.schema.get("type")
    if not isinstance(named, str):
        named = "" if row.value is MISSING else type_of(row.value)
    return named, row.misfit, str(row.schema.get("format")), "enum" in row.schema, row.nullable


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
        secret: bool = False,
        depth: int,
    ) -> Row:
        shape = self._shape(schema, value)
        secret = secret or is_secret(key, shape.schema) or is_secret(key, schema)
        row = Row(pointer, key, value, shape.schema, shape.nullable, optional)
        self.left -= 1
        if not isinstance(value, dict | list) or (not value and not _properties(shape.schema)):
            return replace(row, secret=secret and is_masked(value))
        if depth > DEEPEST_ROWS or len(value) > self.left:
            holds_secrets = secret or next(secret_names(value), None) is not None
            return replace(row, text=json_text(value), secret=holds_secrets)
        parts = self._members if isinstance(value, dict) else self._items
        return replace(
            row, children=parts(shape.schema, value, pointer, secret=secret, depth=depth + 1), secret=secret
        )

    def _members(
        self, schema: dict[str, Json], value: Json, pointer: str, *, secret: bool, depth: int
    ) -> tuple[Row, ...]:
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
                secret=secret,
                depth=depth,
            )
            for key in keys
        )

    def _items(
        self, schema: dict[str, Json], value: Json, pointer: str, *, secret: bool, depth: int
    ) -> tuple[Row, ...]:
        prefix = schema.get("prefixItems")
        fixed = prefix if isinstance(prefix, list) else []
        inner = schema.get("items", True)
        return tuple(
            self.row(
                fixed[at] if at < len(fixed) else inner,
                item,
                f"{pointer}/{at}",
                at,
                secret=secret,
                depth=depth,
            )
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
