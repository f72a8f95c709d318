"""Every kind of every union in every sample is chosen, filled in and sent once; all of it is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents.middleware.human_in_the_loop import (
    ApproveDecision,
    EditDecision,
    RejectDecision,
    RespondDecision,
)
from pydantic import TypeAdapter

from reviewer.cards import check
from reviewer.cards.schema import Document
from reviewer.cards.tree import Choice, Entry, Items, Lazy, Mapping, Multi, Node, Raw, State, Union, walk
from tests.cards import types
from tests.cards.making import SAMPLES, Reviewer, card_of, schema_of

DECISIONS = {
    "approve": ApproveDecision,
    "edit": EditDecision,
    "reject": RejectDecision,
    "respond": RespondDecision,
}
TEXTS = {
    "date": "2026-12-01",
    "date-time": "2026-12-01T10:00:00Z",
    "time": "10:00:00",
    "email": "ann@example.org",
    "uri": "https://example.org/",
    "uuid": "7b0a1d9e-3f7f-4b7b-9a3a-0f2f9c8e5a11",
    r"^\d{3,4}$": "123",
    r"^\d{5}$": "89073",
}


def text_for(node: Entry) -> str:
    """Return what a reviewer might type into an empty field."""
    schema = node.schema
    if node.kind != "string":
        return str(schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1))
    known = TEXTS.get(schema.get("format", "")) or TEXTS.get(schema.get("pattern", ""))
    return known or ("typed text " * 9)[: max(10, schema.get("minLength", 0))]


def mended(node: Node, reviewer: Reviewer) -> dict[str, str]:
    """Mend one field: press what has to be pressed, and return what has to be typed."""
    if node.state is State.ABSENT:
        reviewer.press(f"set:value:{node.path}")
        return {}
    match node:
        case Entry():
            return {f"v:{node.path}": text_for(node)}
        case Choice() | Multi():
            return {f"v:{node.path}": "0"}
        case Raw():
            return {f"v:{node.path}": "{}"}
        case Union():
            reviewer.press("refresh", **{f"b:{node.path}": "0"})
        case Items() | Mapping():
            reviewer.press(f"add:{node.path}")
        case Lazy():
            reviewer.press(f"set:value:{node.path}")
    return {}


def sent(reviewer: Reviewer) -> Any:
    """Send the form, mending what it complains of, as somebody would who has nothing to say."""
    typed: dict[str, str] = {}
    for _ in range(12):
        reading = reviewer.send(**typed)
        if not reading.errors or reading.errors[0].code == "unchanged":
            return reading.answer
        nodes = {node.path: node for node in walk(reviewer.form.tree.root)}
        typed = {}
        for error in reading.errors:
            if error.code == "unseen":
                continue  # shown now
            typed.update(mended(nodes[error.path or ""], reviewer))
    raise AssertionError(reading.errors)


def answers_of(name: str) -> Iterator[tuple[str, Any]]:
    """Yield an answer of every decision, and one for every kind of every union in it."""
    card = card_of(SAMPLES[name])
    for choice in card.choices:
        yield choice.verdict, sent(Reviewer.at(card, choice.verdict))
        unions = [node for node in walk(card.open(choice.verdict).tree.root) if isinstance(node, Union)]
        for union in unions:
            for at in range(len(union.branches)):
                reviewer = Reviewer.at(card, choice.verdict)
                reviewer.press("refresh", **{f"b:{union.path}": str(at)})
                yield choice.verdict, sent(reviewer)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_branch_is_sent_valid_and_accepted_by_the_type_behind_it(name: str) -> None:
    schema = schema_of(SAMPLES[name])
    seen = 0
    for verdict, answer in answers_of(name):
        assert check.accepts(Document(schema), schema, answer), answer
        if verdict in DECISIONS:
            TypeAdapter(DECISIONS[verdict]).validate_python(answer)
        if name in types.ANSWERS:
            TypeAdapter(types.ANSWERS[name]).validate_python(answer)
        if name in types.ARGUMENTS and verdict == "edit":
            TypeAdapter(types.ARGUMENTS[name]).validate_python(answer["edited_action"]["args"])
        seen += 1
    assert seen


@pytest.mark.parametrize("name", types.ANSWERS)
def test_the_types_behind_questions_have_the_schemas_of_their_samples(name: str) -> None:
    assert TypeAdapter(types.ANSWERS[name]).json_schema() == schema_of(SAMPLES[name])


@pytest.mark.parametrize("name", types.ARGUMENTS)
def test_the_types_behind_tools_have_the_schemas_of_their_samples(name: str) -> None:
    schema = schema_of(SAMPLES[name])
    tool = schema["$defs"][schema["$defs"]["EditedAction"]["properties"]["name"]["const"]]
    made = TypeAdapter(types.ARGUMENTS[name]).json_schema()
    assert made["properties"] == tool["properties"]
    assert made["required"] == tool["required"]
    assert all(schema["$defs"][part] == known for part, known in made.get("$defs", {}).items())
