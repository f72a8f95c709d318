"""What a reviewer changed is told by type, by item and by line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_runtime.canonical import decode, encode_in_order
from reviewer import cards
from reviewer.cards import render
from reviewer.cards.diff import Change, text_lines
from reviewer.cards.values import MISSING
from tests.cards.browser import Page

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "0", "a.b/~"]), inner),
    max_leaves=8,
)


def told(before: Any, after: Any) -> list[tuple[str, str, Any, Any]]:
    return [(change.name, change.kind, change.before, change.after) for change in cards.diff(before, after)]


@pytest.mark.parametrize("left", [1, 1.0, True, "1", None, [], {}, "", 0, -0.0, 0.0, False, [1], {"a": 1}])
@pytest.mark.parametrize("right", [1, 1.0, True, "1", None, [], {}, "", 0, -0.0, 0.0, False, [1], {"a": 1}])
def test_values_of_different_types_always_differ(left: Any, right: Any) -> None:
    is_same = type(left) is type(right) and json.dumps(left) == json.dumps(right)
    assert (cards.diff({"x": left}, {"x": right}) == ()) == is_same


def test_changes_are_told_where_they_are() -> None:
    before = {"subject": "a", "to": [{"n": 1, "x": 1}], "gone": None, "a.b/c": 1}
    after = {"subject": "b", "to": [{"n": 2, "x": 1}], "new": [], "a.b/c": 2}
    assert told(before, after) == [
        ("subject", "changed", "a", "b"),
        ("to[0].n", "changed", 1, 2),
        ("gone", "removed", None, MISSING),
        ('["a.b/c"]', "changed", 1, 2),
        ("new", "added", MISSING, []),
    ]
    assert [change.pointer for change in cards.diff(before, after)][3] == "/a.b~1c"


def test_an_item_added_in_front_is_one_addition() -> None:
    assert told(["a", "b", "c"], ["new", "a", "b", "c"]) == [("[0]", "added", MISSING, "new")]


def test_a_removed_object_is_one_removal_and_its_neighbour_keeps_its_own_change() -> None:
    before = [{"id": 1}, {"id": 2}, {"id": 3, "v": "x"}]
    after = [{"id": 1}, {"id": 3, "v": "x"}]
    assert told(before, after) == [("[1]", "removed", {"id": 2}, MISSING)]


def test_an_item_that_changed_places_is_told_as_moved() -> None:
    changes = cards.diff(["a", "b", "c"], ["b", "c", "a"])
    assert [(change.kind, change.came_from, change.steps) for change in changes] == [("moved", 0, (2,))]
    assert "Moved from place 1 to 3" in render.render_diff(changes)


def test_equal_items_are_told_apart_by_number() -> None:
    assert told(["a", "a"], ["a"]) == [("[1]", "removed", "a", MISSING)]


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ([[], 7], [[7]], ["added", "removed"]),  # what came deeper is another item
        ([7, 1, 7], [1, 9, 7], ["removed", "added"]),
        (["x", "x", "b", "c"], ["b", "c", "x"], ["moved", "removed"]),
    ],
)
def test_a_removal_is_told_unless_that_very_item_moved(before: Any, after: Any, kinds: list[str]) -> None:
    assert sorted(change.kind for change in cards.diff(before, after)) == sorted(kinds)


@given(st.lists(VALUES, max_size=6), st.lists(VALUES, max_size=6))
def test_as_many_items_are_told_to_come_and_go_as_do(before: list[Any], after: list[Any]) -> None:
    own = [change for change in cards.diff(before, after) if len(change.steps) == 1]
    came = sum(change.kind == "added" for change in own)
    went = sum(change.kind == "removed" for change in own)
    assert came - went == len(after) - len(before)


def test_a_difference_is_stored_as_plain_json() -> None:
    stored = [change.to_json() for change in cards.diff({"a": 1, "c": None}, {"b": 2, "c": 0})]
    assert stored == [
        {"pointer": "/a", "steps": ["a"], "kind": "removed", "before": 1},
        {"pointer": "/c", "steps": ["c"], "kind": "changed", "before": None, "after": 0},
        {"pointer": "/b", "steps": ["b"], "kind": "added", "after": 2},
    ]


@settings(deadline=None)
@given(VALUES, VALUES)
def test_a_stored_difference_is_read_back_as_it_was(before: Any, after: Any) -> None:
    found = cards.diff(before, after)
    stored = encode_in_order([change.to_json() for change in found])
    read = [Change.from_json(told) for told in decode(stored)]
    assert encode_in_order([change.to_json() for change in read]) == stored
    assert [change.name for change in read] == [change.name for change in found]


def test_short_text_marks_the_words_that_differ() -> None:
    old, new = text_lines("Refund 15 now", "Refund 180 now")
    assert [text for text, marked in old.parts if marked] == ["15"]
    assert [text for text, marked in new.parts if marked] == ["180"]


def test_long_text_is_compared_by_line_with_a_little_around() -> None:
    before = "\n".join(f"line {number}" for number in range(40))
    after = before.replace("line 20\n", "line twenty\n")
    kinds = [line.kind for line in text_lines(before, after)]
    assert kinds == ["skip", "same", "same", "del", "ins", "same", "same", "skip"]
    assert sum(line.skipped for line in text_lines(before, after)) == 35


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\ntwo\n\nthree " + "x" * 90, "one\n2\n\nthree " + "x" * 89 + "y\n"),
        ("a " * 1000, "b " * 1000),
        ("a b c d " * 300 + "end", "x " + "b a d c " * 300),
        ("a\n\n}\n" * 900, "b\n\n}\n" * 900),
        ("\n".join(["word " * 300] * 100), "\n".join(["word other " * 150] * 100)),
    ],
    ids=["short", "one word", "few words", "few lines", "long lines"],
)
def test_every_character_of_both_texts_is_in_their_difference_in_time(before: str, after: str) -> None:
    for side, whole in (("del", before), ("ins", after)):
        lines = [line for line in text_lines(before, after) if line.kind in {"same", side}]
        assert "\n".join("".join(text for text, _ in line.parts) for line in lines) == whole


def test_a_changed_type_is_visible_in_the_difference() -> None:
    text = "".join(Page(str(render.render_diff(cards.diff({"n": 1}, {"n": "1"})))).text)
    assert '"1"' in text


def test_hidden_characters_in_a_difference_are_shown() -> None:
    html = render.render_diff(cards.diff({"a": "x"}, {"a": "x\u202e"}))
    assert "U+202E" in html


def test_nothing_changed_is_said() -> None:
    assert "Nothing is changed yet." in render.render_diff(())


def test_a_long_list_is_compared_in_time() -> None:
    before = [{"n": number} for number in range(3000)]
    after = [*before[:-1], {"n": -1}]
    assert told(before, after) == [("[2999].n", "changed", 2999, -1)]


def test_a_huge_list_that_is_replaced_and_cut_is_compared_in_time() -> None:
    changes = cards.diff(list(range(20_000)), list(range(50_000, 60_000)))
    assert [change.kind for change in changes[:1] + changes[-1:]] == ["changed", "removed"]
    assert len(changes) == 20_000


def test_a_difference_too_large_to_draw_says_so_and_how_much_is_left() -> None:
    before, after = {str(n): n for n in range(2_000)}, {str(n): -1 for n in range(2_000)}
    drawn = render.render_diff(cards.diff(before, after))
    assert drawn.count("diff__f") == render.MOST_CHANGES
    assert "1,500 more changes are not drawn here" in drawn
    old, new = ("\n".join(f"{n}{end}" for n in range(9_000)) for end in ("", "!"))
    drawn = render.render_diff(cards.diff({"a": old}, {"a": new}))
    assert drawn.count("<ins>") + drawn.count("<del>") == render.MOST_LINES
    assert "What follows differs, too" in drawn
