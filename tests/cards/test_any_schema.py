"""Any schema and any value: nothing raises, nothing is lost, and only what was touched changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer import cards
from reviewer.cards import check, render
from reviewer.cards.compile import compile_form
from reviewer.cards.diff import diff
from reviewer.cards.names import pointer_step
from reviewer.cards.read import read
from reviewer.cards.schema import Document
from reviewer.cards.tree import Choice, Entry, Fixed, Group, Items, Mapping, Node, State, Union, walk
from reviewer.cards.values import same
from tests.cards.browser import Page
from tests.cards.grammar import FLOATS, JSON, KINDS, NONSENSE, Kind, document, schema_and_value
from tests.cards.making import Reviewer, tool_card


def fits(value: Any, schema: Any) -> bool:
    """Say whether the engine allows a value, asked about the whole schema at once."""
    return check.accepts(Document(schema), schema, value)


def text_of(value: Any) -> str:
    """Return a value as text that shows type, digits and the order of keys."""
    return json.dumps(value)


@given(schema_and_value())
@settings(max_examples=300, deadline=None)
def test_an_untouched_form_sends_the_very_same_value(pair: tuple[Any, Any]) -> None:
    schema, value = pair
    reading = Reviewer.before(schema, value).send()
    assert text_of(reading.answer) == text_of(value)
    assert bool(reading.errors) == (not fits(value, schema))


@given(schema_and_value())
@settings(max_examples=60, deadline=None)
def test_every_control_has_a_name_that_is_spoken_and_no_id_is_there_twice(pair: tuple[Any, Any]) -> None:
    page = Reviewer.before(*pair).page
    assert len(set(page.ids)) == len(page.ids)
    for control in page.controls:
        if control.type == "hidden" or control.tag == "button" or control.type in {"radio", "checkbox"}:
            continue
        assert control.attrs.get("aria-label") or control.attrs.get("id") in page.labels, control


@given(schema_and_value(), st.data())
@settings(max_examples=120, deadline=None)
def test_any_button_and_then_sending_never_breaks(pair: tuple[Any, Any], data: st.DataObject) -> None:
    reviewer = Reviewer.before(*pair)
    for _ in range(4):
        reviewer.press(data.draw(st.sampled_from(reviewer.page.buttons())))
    reading = reviewer.send()
    page = reviewer.page
    assert len(set(page.ids)) == len(page.ids)
    assert reading.errors or json.dumps(reading.answer)


@given(schema_and_value())
@settings(max_examples=60, deadline=None)
def test_going_to_json_and_back_changes_nothing(pair: tuple[Any, Any]) -> None:
    reviewer = Reviewer.before(*pair)
    raw = next((button for button in reviewer.page.buttons() if button.startswith("raw:")), None)
    if raw is None:
        return
    reviewer.press(raw)
    reviewer.press(raw.replace("raw:", "form:"))
    assert same(reviewer.send().answer, pair[1])


@given(schema_and_value(), st.data())
@settings(max_examples=60, deadline=None)
def test_an_error_at_any_field_is_linked_from_the_summary(pair: tuple[Any, Any], data: st.DataObject) -> None:
    reviewer = Reviewer.before(*pair)
    nodes = [node for node in walk(reviewer.form.tree.root) if node.path and not isinstance(node, Fixed)]
    chosen = data.draw(st.lists(st.sampled_from(nodes), max_size=3)) if nodes else []
    errors = [cards.FieldError("", "agent", {"message": "told"}, node.path) for node in chosen]
    page = Page(str(render.render_form(reviewer.form, errors)))
    links = [attrs["href"] or "" for tag, attrs in page.tags if tag == "a"]
    assert len(links) == len(errors)
    assert {link.removeprefix("#") for link in links} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)


@given(KINDS, st.data())
@settings(max_examples=60, deadline=None)
def test_changing_one_of_two_fields_leaves_the_other_alone(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(kind.values)
    schema = document(
        {
            "type": "object",
            "properties": {"a": kind.schema, "note": {"type": "string"}},
            "required": ["a", "note"],
        }
    )
    reading = Reviewer.before(schema, {"note": "old", "a": value}).send(**{"v:/note": "new"})
    assert bool(reading.errors) == (not fits(value, document(kind.schema)))
    assert text_of(reading.answer) == text_of({"note": "new", "a": value})


def editable(node: Node, pointer: str = "") -> Iterator[tuple[str, Entry | Choice]]:
    """Yield every text field and choice that is sent, with the JSON Pointer of its value."""
    if node.state is not State.VALUE:
        return
    match node:
        case Entry() | Choice():
            yield pointer, node
        case Group():
            for field in node.fields:
                yield from editable(field, f"{pointer}/{pointer_step(str(field.key))}")
            if isinstance(node.extra, Mapping):
                yield from editable(node.extra, pointer)
        case Items():
            for at, item in enumerate(node.items):
                yield from editable(item.node, f"{pointer}/{at}")
        case Mapping():
            for item in node.items:
                yield from editable(item.node, f"{pointer}/{pointer_step(item.key)}")
        case Union() if node.branch is not None:
            yield from editable(node.branch, pointer)


def typed_into(node: Entry | Choice, data: st.DataObject) -> tuple[str, Any]:
    """Return what a reviewer types or picks, and the value that it means."""
    if isinstance(node, Choice):
        at = data.draw(st.integers(0, len(node.options) - 1))
        return str(at), node.options[at]
    if node.kind == "string":
        text = data.draw(st.text(st.characters(categories=["L", "N", "P", "Z"]), min_size=1, max_size=12))
        return text, text
    number = data.draw(st.integers() | (st.nothing() if node.kind == "integer" else FLOATS))
    return repr(number), number


@given(schema_and_value(), st.data())
@settings(max_examples=200, deadline=None)
def test_what_is_typed_changes_its_own_place_and_no_other(pair: tuple[Any, Any], data: st.DataObject) -> None:
    schema, value = pair
    reviewer = Reviewer.before(schema, value)
    places = list(editable(reviewer.form.tree.root))
    if not places:
        return
    pointer, node = data.draw(st.sampled_from(places))
    typed, meant = typed_into(node, data)
    answer = reviewer.send(**{f"v:{node.path}": typed}).answer
    found = at_pointer(answer, pointer)
    assert same(found, meant) or found == meant == node.original
    assert text_of(with_value(answer, pointer, at_pointer(value, pointer))) == text_of(value)


def at_pointer(value: Any, pointer: str) -> Any:
    for step in steps_of(pointer):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def with_value(value: Any, pointer: str, new: Any) -> Any:
    """Return a copy with one place set."""
    *above, last = steps_of(pointer) or [""]
    if not pointer:
        return new
    copy = json.loads(json.dumps(value))
    place = at_pointer(copy, "".join(f"/{pointer_step(step)}" for step in above))
    place[int(last) if isinstance(place, list) else last] = new
    return copy


def steps_of(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


@given(NONSENSE, JSON)
@settings(max_examples=400, deadline=None)
def test_no_schema_and_no_value_make_a_card_fail(schema: Any, value: Any) -> None:
    tree = compile_form(schema, value)
    answer, errors = read(tree)
    assert errors or same(answer, value) or answer is cards.MISSING
    card = cards.build(cards.CardRequest("t", "tool", value, schema))
    assert card.choices
    Page(str(render.render_arguments(card)))
    for choice in card.choices:
        Page(str(render.render_form(card.open(choice.verdict))))
    cards.validate(value, schema)


@given(NONSENSE, JSON)
@settings(max_examples=100, deadline=None)
def test_nonsense_as_the_schema_of_arguments_still_edits(schema: Any, value: Any) -> None:
    card = tool_card(schema, value)
    reading = Reviewer.at(card).send()
    assert reading.errors  # nothing was changed, or the arguments are not what the schema asks for
    assert reading.changes == () or any(error.code != "unchanged" for error in reading.errors)


@given(JSON, JSON)
@settings(max_examples=200, deadline=None)
def test_a_difference_is_empty_only_for_equal_values(before: Any, after: Any) -> None:
    assert (diff(before, after) == ()) == same(before, after)
    Page(str(render.render_diff(diff(before, after))))
