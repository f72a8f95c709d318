"""Where the secrets of a whole value are, and copies of values and changes without them.

Every branch of a union counts: a place is secret where any schema that may hold for it says so.
Does not live here: what makes one place secret (``secrets``), and rows to read (``view``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
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
        self._schemas: list[Json] = [schema]
        self._by_name = by_name
        # A list of a million items asks the same each time. The lists are kept: no id is used again.
        self._shapes_of: dict[int, tuple[list[Json], list[dict[str, Json]], int]] = {}
        self._parts_of: dict[tuple[int, Step], list[Json]] = {}

    def value(self, value: Json) -> Json:
        """Return a copy of a value without its secrets."""
        return self._masked(self._schemas, value, is_inside=False)

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
        schemas, is_inside = self._schemas, False
        for step in steps:
            schemas = self._below(schemas, step)
            is_inside = is_inside or self._is_secret(step, schemas)
        return schemas, is_inside

    def _masked(self, schemas: list[Json], value: Json, *, is_inside: bool) -> Json:
        if isinstance(value, dict):
            return {key: self._part(schemas, key, item, is_inside=is_inside) for key, item in value.items()}
        if isinstance(value, list):
            return [self._part(schemas, at, item, is_inside=is_inside) for at, item in enumerate(value)]
        return MASK if is_inside and is_masked(value) else value

    def _part(self, schemas: list[Json], step: Step, value: Json, *, is_inside: bool) -> Json:
        below = self._below(schemas, step)
        return self._masked(below, value, is_inside=is_inside or self._is_secret(step, below))

    def _is_secret(self, step: Step, schemas: list[Json]) -> bool:
        if any(map(is_write_only, [*schemas, *self._shapes(schemas)[0]])):
            return True
        return self._by_name and is_secret(step, {})

    def _below(self, schemas: list[Json], step: Step) -> list[Json]:
        """Return the schemas that may hold for one part of a value, each once.

        Branches of a union that lead to the same schema would else double what is looked at with every level.
        """
        shapes, longest_prefix = self._shapes(schemas)
        place = id(schemas), min(step, longest_prefix) if isinstance(step, int) else step
        if place not in self._parts_of:
            parts = [part for part in (_part_of(shape, step) for shape in shapes) if isinstance(part, dict)]
            self._parts_of[place] = list({json.dumps(part): part for part in parts}.values())
        return self._parts_of[place]

    def _shapes(self, schemas: list[Json]) -> tuple[list[dict[str, Json]], int]:
        """Return the shapes that may hold here, and how many items at most have a schema of their own."""
        if id(schemas) not in self._shapes_of:
            shapes = self._unfolded(schemas)
            prefixes = [shape.get("prefixItems") for shape in shapes]
            longest = max((len(prefix) for prefix in prefixes if isinstance(prefix, list)), default=0)
            self._shapes_of[id(schemas)] = schemas, shapes, longest
        return self._shapes_of[id(schemas)][1:]

    def _unfolded(self, schemas: list[Json]) -> list[dict[str, Json]]:
        """Return the schemas with the branches of their unions, and those of these, each once."""
        shapes: list[dict[str, Json]] = []
        level, known = list(schemas), set[str]()
        for _ in range(_DEEPEST_UNION + 1):
            options: list[Json] = []
            for schema in level:
                text = json.dumps(schema)
                if text in known:
                    continue
                known.add(text)
                try:
                    shape = self._document.shape(schema)
                except Undrawable:
                    continue
                shapes.append(shape.schema)
                options.extend(option.schema for option in shape.options)
            level = options
        return shapes


def _part_of(shape: dict[str, Json], step: Step) -> Json:
    """Return what a schema says of one part of a value, or None."""
    if isinstance(step, str):
        properties = shape.get("properties")
        named = properties.get(step) if isinstance(properties, dict) else None
        return shape.get("additionalProperties") if named is None else named
    prefix = shape.get("prefixItems")
    fixed = prefix if isinstance(prefix, list) else []
    return fixed[step] if step < len(fixed) else shape.get("items")
