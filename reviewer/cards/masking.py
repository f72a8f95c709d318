"""Where the secrets of a whole value are, and copies of values and changes without them.

Every branch of a union counts: a place is secret where any schema that may hold for it says so.
Does not live here: what makes one place secret (``secrets``), and rows to read (``view``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from reviewer.cards.diff import Change, Step
from reviewer.cards.schema import Document, Undrawable
from reviewer.cards.secrets import MASK, is_masked, is_secret, is_write_only
from reviewer.cards.values import MISSING, Json

_DEEPEST_UNION: Final = 6


class Mask:
    """Masks values of one schema, which is a part of the document ``root``.

    ``by_name`` also masks what only its name gives away; what is kept for good is masked by the schema alone.
    """

    def __init__(self, schema: Json, root: Json, *, by_name: bool = True) -> None:
        self._document = Document(root)
        self._schema = schema
        self._by_name = by_name

    def value(self, value: Json) -> Json:
        """Return a copy of a value without its secrets."""
        return self._masked([self._schema], value, is_inside=False)

    def changes(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Return changes without the secrets in them; each still says that something changed."""
        return tuple(self._change(change) for change in changes)

    def _change(self, change: Change) -> Change:
        schemas, is_inside = self._at(change.steps)
        before, after = (
            value if value is MISSING else self._masked(schemas, value, is_inside=is_inside)
            for value in (change.before, change.after)
        )
        return replace(change, before=before, after=after)

    def _at(self, steps: Sequence[Step]) -> tuple[list[Json], bool]:
        """Return the schemas of a place, and whether it lies inside a secret."""
        schemas, is_inside = [self._schema], False
        for step in steps:
            schemas = list(self._below(schemas, step))
            is_inside = is_inside or self._is_secret(step, schemas)
        return schemas, is_inside

    def _masked(self, schemas: list[Json], value: Json, *, is_inside: bool) -> Json:
        if isinstance(value, dict):
            return {key: self._part(schemas, key, item, is_inside=is_inside) for key, item in value.items()}
        if isinstance(value, list):
            return [self._part(schemas, at, item, is_inside=is_inside) for at, item in enumerate(value)]
        return MASK if is_inside and is_masked(value) else value

    def _part(self, schemas: list[Json], step: Step, value: Json, *, is_inside: bool) -> Json:
        below = list(self._below(schemas, step))
        return self._masked(below, value, is_inside=is_inside or self._is_secret(step, below))

    def _is_secret(self, step: Step, schemas: list[Json]) -> bool:
        shapes = [shape for schema in schemas for shape in self._shapes(schema)]
        if any(map(is_write_only, [*schemas, *shapes])):
            return True
        return self._by_name and is_secret(step, {})

    def _below(self, schemas: list[Json], step: Step) -> Iterator[Json]:
        """Yield the schemas that may hold for one part of a value."""
        for shape in (shape for schema in schemas for shape in self._shapes(schema)):
            if isinstance(step, str):
                properties = shape.get("properties")
                named = properties.get(step) if isinstance(properties, dict) else None
                found = shape.get("additionalProperties") if named is None else named
            else:
                prefix = shape.get("prefixItems")
                fixed = prefix if isinstance(prefix, list) else []
                found = fixed[step] if step < len(fixed) else shape.get("items")
            if isinstance(found, dict):
                yield found

    def _shapes(self, schema: Json, depth: int = 0) -> Iterator[dict[str, Json]]:
        if depth > _DEEPEST_UNION:
            return
        try:
            shape = self._document.shape(schema)
        except Undrawable:
            return
        yield shape.schema
        for option in shape.options:
            yield from self._shapes(option.schema, depth + 1)
