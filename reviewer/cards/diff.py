"""What a reviewer changed: by type and value, lists by item, long text by line.

Does not live here: how a change is drawn (``render``).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final

from reviewer.cards.names import pointer_step
from reviewer.cards.values import DEEPEST, MISSING, Json, depth_within, same

CHANGED, ADDED, REMOVED, MOVED = "changed", "added", "removed", "moved"
LONG_TEXT: Final = 80
_LONGEST_LIST: Final = 400
_MOST_PAIRS: Final = 60_000
_CONTEXT: Final = 2
_WORD: Final = re.compile(r"\s+|\w+|[^\w\s]")

Step = str | int
Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. ``steps`` lead to it in the new value, or in the old one where it was removed."""

    steps: tuple[Step, ...]
    kind: str
    before: Json = MISSING
    after: Json = MISSING
    came_from: int | None = None

    @property
    def pointer(self) -> str:
        return "".join(f"/{pointer_step(step)}" for step in self.steps)

    @property
    def name(self) -> str:
        """The place as people write it: ``to[3].address``."""
        return place_name(self.steps)

    def to_json(self) -> dict[str, Json]:
        """Return the change as it is stored with a decision; a side that was not there is left out."""
        told = {
            "pointer": self.pointer,
            "steps": list(self.steps),
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
            "came_from": MISSING if self.came_from is None else self.came_from,
        }
        return {key: value for key, value in told.items() if value is not MISSING}

    @classmethod
    def from_json(cls, told: dict[str, Json]) -> Change:
        """Return a change as it was stored with a decision."""
        return cls(
            steps=tuple(told["steps"]),
            kind=told["kind"],
            before=told.get("before", MISSING),
            after=told.get("after", MISSING),
            came_from=told.get("came_from"),
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text difference: ``del``, ``ins``, ``same``, ``skip`` or ``more``, with marked parts.

    ``more`` says that what follows is not told: the difference has more than ``MOST_LINES``.
    """

    kind: str
    parts: tuple[tuple[str, bool], ...] = ()
    skipped: int = 0


def diff(before: Json, after: Json) -> tuple[Change, ...]:
    """Return every difference between two values, in the order a reader meets them."""
    if not depth_within([before, after], DEEPEST):
        return () if before is after else (Change((), CHANGED, before, after),)
    return tuple(_differences(before, after, ()))


def place_name(steps: Sequence[Step]) -> str:
    """Return a place as people write it; keys that could be misread are quoted."""
    name = ""
    for step in steps:
        if isinstance(step, int):
            name += f"[{step}]"
        elif re.fullmatch(r"[\w$-]+", step):
            name += f".{step}" if name else step
        else:
            name += f"[{json.dumps(step, ensure_ascii=False)}]"
    return name


def _differences(before: Json, after: Json, steps: tuple[Step, ...]) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _differences(before.get(key, MISSING), after.get(key, MISSING), (*steps, key))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_differences(before, after, steps)
    elif before is MISSING and after is not MISSING:
        yield Change(steps, ADDED, after=after)
    elif after is MISSING and before is not MISSING:
        yield Change(steps, REMOVED, before=before)
    elif not same(before, after):
        yield Change(steps, CHANGED, before, after)


def _list_differences(before: list[Json], after: list[Json], steps: tuple[Step, ...]) -> Iterator[Change]:
    found: list[Change] = []
    for tag, from_, to, start, end in _blocks(before, after):
        if tag == "equal":
            continue
        paired = min(to - from_, end - start)
        for offset in range(paired):
            found.extend(
                _differences(before[from_ + offset], after[start + offset], (*steps, start + offset))
            )
        found.extend(Change((*steps, at), REMOVED, before=before[at]) for at in range(from_ + paired, to))
        found.extend(Change((*steps, at), ADDED, after=after[at]) for at in range(start + paired, end))
    yield from _with_moves(found, len(steps))


def _blocks(before: list[Json], after: list[Json]) -> Sequence[Opcode]:
    if max(len(before), len(after)) > _LONGEST_LIST:
        return [("replace", 0, len(before), 0, len(after))]
    texts = [[_text(item) for item in side] for side in (before, after)]
    return _opcodes(texts[0], texts[1])[0]


def _opcodes(old: list[str], new: list[str], *, budget: int = _MOST_PAIRS) -> tuple[Sequence[Opcode], int]:
    """Return what turns one list into the other, and how much of the budget is left.

    Comparing takes time by the pairs of equal parts, which a text of few words has by the million: where the
    budget does not suffice, everything between the common beginning and end counts as replaced.
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middles = old[head : len(old) - tail], new[head : len(new) - tail]
    known = Counter(part for part in middles[1] if not _is_blank(part))
    pairs = sum(known[part] for part in middles[0])
    if pairs > budget:
        inner: Sequence[Opcode] = [("replace", 0, len(middles[0]), 0, len(middles[1]))]
    else:
        inner = SequenceMatcher(_is_blank, middles[0], middles[1], autojunk=False).get_opcodes()
    found: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    found.extend(
        (tag, from_ + head, to + head, start + head, end + head) for tag, from_, to, start, end in inner
    )
    if tail:
        found.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return found, budget - min(pairs, budget)


def _is_blank(part: str) -> bool:
    return not part.strip()


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many parts are the same from the beginning on."""
    pairs = zip(left, right, strict=False)
    return next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(left), len(right)))


def _with_moves(found: list[Change], depth: int) -> Iterator[Change]:
    """Yield the changes of one list, an item that was removed here and added there told as one move.

    Each removal pairs with one addition in the same list: of two equal items one may move and one go.
    """
    gone: dict[str, deque[Change]] = defaultdict(deque)
    for change in found:
        if change.kind == REMOVED and len(change.steps) == depth + 1:
            gone[_text(change.before)].append(change)
    moved: dict[int, Change] = {}  # by the identity of the removal, and of the addition
    for change in found:
        if change.kind == ADDED and len(change.steps) == depth + 1 and (waiting := gone[_text(change.after)]):
            source = waiting.popleft()
            moved[id(source)] = moved[id(change)] = source
    for change in found:
        old = moved.get(id(change))
        if old is None:
            yield change
        elif old is not change:
            yield replace(change, kind=MOVED, before=change.after, came_from=int(old.steps[-1]))


def _text(item: Json) -> str:
    return json.dumps(item, sort_keys=True)


def text_lines(before: str, after: str) -> tuple[Line, ...]:
    """Return the difference of two texts: long ones by line, short ones in one line each."""
    return tuple(each_line(before, after))


def each_line(before: str, after: str) -> Iterator[Line]:
    """Yield the same lines one by one, for a reader who may stop."""
    words = _Words()
    if max(len(before), len(after)) <= LONG_TEXT and "\n" not in before + after:
        yield from words.pair(before, after)
        return
    old, new = before.split("\n"), after.split("\n")
    for tag, from_, to, start, end in _opcodes(old, new)[0]:
        if tag == "equal":
            yield from _context(old[from_:to], is_first=from_ == 0, is_last=to == len(old))
            continue
        paired = min(to - from_, end - start)
        for offset in range(paired):
            yield from words.pair(old[from_ + offset], new[start + offset])
        yield from (Line("del", ((text, True),)) for text in old[from_ + paired : to])
        yield from (Line("ins", ((text, True),)) for text in new[start + paired : end])


def _context(lines: list[str], *, is_first: bool, is_last: bool) -> Iterator[Line]:
    head = 0 if is_first else _CONTEXT
    tail = 0 if is_last else _CONTEXT
    if len(lines) <= head + tail + 1:
        yield from (Line("same", ((text, False),)) for text in lines)
        return
    yield from (Line("same", ((text, False),)) for text in lines[:head])
    yield Line("skip", skipped=len(lines) - head - tail)
    yield from (Line("same", ((text, False),)) for text in lines[len(lines) - tail :])


class _Words:
    """Compares lines word by word, as far as one budget for all of them goes."""

    def __init__(self) -> None:
        self.budget = _MOST_PAIRS

    def pair(self, before: str, after: str) -> tuple[Line, Line]:
        """Return both lines with the words marked that differ."""
        old, new = _WORD.findall(before), _WORD.findall(after)
        opcodes, self.budget = _opcodes(old, new, budget=self.budget)
        dels = [("".join(old[from_:to]), tag != "equal") for tag, from_, to, _, _ in opcodes]
        inss = [("".join(new[start:end]), tag != "equal") for tag, _, _, start, end in opcodes]
        return Line("del", _parts(dels)), Line("ins", _parts(inss))


def _parts(parts: list[tuple[str, bool]]) -> tuple[tuple[str, bool], ...]:
    return tuple(part for part in parts if part[0])
