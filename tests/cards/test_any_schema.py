"""Any schema and any value: nothing raises, nothing is lost, and only what was touched changes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer import cards
from reviewer.cards import check, render
from reviewer.cards.compile import compile_form
from reviewer.cards.diff import diff
from reviewer.cards.read import read
from reviewer.cards.schema import Document
from reviewer.cards.tree import Fixed, walk
from reviewer.cards.values import same
from tests.cards.browser import Page
from tests.cards.grammar import JSON, KINDS, NONSENSE, Kind, document, schema_and_value
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
