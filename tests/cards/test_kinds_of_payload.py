"""Every kind of payload from what the agent raised to what the agent gets, through the card and its form."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from agents_runtime.canonical import Json, encode
from agents_runtime.models import AgentSpec, Pause
from agents_runtime.payloads import Asked, read, read_breakpoint, resume_value
from agents_runtime.thread_state import RaisedInterrupt
from reviewer import cards
from reviewer.cards import render
from tests.cards.browser import Page
from tests.cards.making import Reviewer

ARGS: Json = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "amount": {"anyOf": [{"type": "number"}, {"type": "string"}]},
        "copies": {"type": "integer", "default": 1},
    },
    "required": ["to", "amount"],
}
PAY: Json = {"to": "Ann", "amount": "19.90"}
SPEC = AgentSpec(tools=encode({"pay": {"title": "Pay {amount} to {to}", "args_schema": ARGS}}))
TURN = [AIMessage("I pay.", tool_calls=[{"name": "pay", "args": PAY, "id": "c1"}])]
AT = "/edited_action/args"


def asked(value: object, schema: Json = None) -> Asked:
    return read(RaisedInterrupt("0" * 32, value, schema, "tools:1"), SPEC, TURN)


def cards_of(found: Asked) -> list[cards.Card]:
    """Return the card of each request, as the desk stores it and ``shown.card_of`` makes it again."""
    return [
        cards.build(
            cards.CardRequest(
                card_id=f"t{request.position}",
                tool=request.tool,
                args=request.arguments,
                response_schema=request.response_schema,
                description=request.description,
                title_template=request.title_template,
                args_schema=request.args_schema,
            )
        )
        for request in found.requests
    ]


def resumed(found: Asked, *answers: Json) -> Json:
    """Return what the graph gets for these answers."""
    return resume_value(Pause(kind=found.kind, answers=encode(list(answers))))


def sent(card: cards.Card, verdict: str, **typed: str) -> Json:
    """Return the answer that a form sends, after checking that it stands."""
    reading = Reviewer.at(card, verdict).send(**typed)
    assert reading.errors == ()
    return reading.answer


def verdicts(card: cards.Card) -> list[str]:
    return [choice.verdict for choice in card.choices]


def text_of(html: str) -> str:
    return " ".join(" ".join(Page(html).text).split())


def test_a_call_of_its_own_is_edited_in_the_fields_of_its_schema() -> None:
    decision = asked({"action_requests": [{"name": "pay", "args": PAY}]}).requests[0].response_schema
    value = {"type": "tool_approval", "name": "pay", "args": PAY, "tool_call_id": "c1"}
    found = asked(value, decision)
    (card,) = cards_of(found)
    assert card.title == "Pay 19.90 to Ann"
    assert resumed(found, sent(card, "approve")) == {"type": "approve"}
    found = asked(value, _with_edit())
    (card,) = cards_of(found)
    edited = resumed(found, sent(card, "edit", **{f"v:{AT}/to": "Bo"}))
    assert edited == {
        "type": "edit",
        "edited_action": {"name": "pay", "args": {"to": "Bo", "amount": "19.90"}},
    }


def _with_edit() -> Json:
    reviews = [{"action_name": "pay", "allowed_decisions": ["approve", "edit", "reject", "respond"]}]
    return (
        asked({"action_requests": [{"name": "pay", "args": PAY}], "review_configs": reviews})
        .requests[0]
        .response_schema
    )


def test_each_action_of_a_batch_is_a_card_and_the_answers_keep_its_order() -> None:
    actions = [
        {"name": "pay", "args": PAY},
        {"name": "ghost", "arguments": {"deep": [1, {"x": None}]}},
        {"name": "pay", "args": {**PAY, "to": "Cy"}},
    ]
    allowed = {"pay": ["approve", "edit"], "ghost": ["edit", "reject"]}
    reviews = [{"action_name": name, "allowed_decisions": may} for name, may in allowed.items()]
    found = asked({"action_requests": actions, "review_configs": reviews})
    first, ghost, last = cards_of(found)
    assert [verdicts(card) for card in (first, ghost, last)] == [
        ["approve", "edit"],
        ["edit", "reject"],
        ["approve", "edit"],
    ]
    fields = {control.name for control in Reviewer.at(first).page.controls}
    assert {f"v:{AT}/to", f"v:{AT}/amount/~1", f"s:{AT}/copies"} <= fields  # the tool's own schema
    raw = next(control for control in Reviewer.at(ghost).page.controls if control.name == f"v:{AT}")
    assert json.loads(raw.value) == {"deep": [1, {"x": None}]}  # nothing is known of it: JSON
    answers = [
        sent(first, "approve"),
        sent(ghost, "edit", **{f"v:{AT}": '{"deep": []}'}),
        sent(last, "edit", **{f"v:{AT}/amount/~1": "5.00"}),
    ]
    assert resumed(found, *answers) == {
        "decisions": [
            {"type": "approve"},
            {"type": "edit", "edited_action": {"name": "ghost", "args": {"deep": []}}},
            {"type": "edit", "edited_action": {"name": "pay", "args": {"to": "Cy", "amount": "5.00"}}},
        ]
    }


FLAGS = ("allow_accept", "allow_edit", "allow_ignore", "allow_respond")
LEGACY: dict[str, tuple[str, dict[str, str], Json]] = {
    "allow_accept": ("approve", {}, {"type": "accept", "args": None}),
    "allow_edit": (
        "edit",
        {f"v:{AT}/to": "Bo"},
        {"type": "edit", "args": {"action": "pay", "args": {"to": "Bo", "amount": "19.90"}}},
    ),
    "allow_ignore": ("reject", {}, {"type": "ignore", "args": None}),
    "allow_respond": (
        "respond",
        {"v:/message": "Ask\nher."},
        {"type": "response", "args": "Ask\nher."},
    ),
}


@pytest.mark.parametrize("config", list(itertools.product([True, False], repeat=4)))
def test_all_sixteen_legacy_requests_offer_what_their_flags_allow(config: tuple[bool, ...]) -> None:
    flags = dict(zip(FLAGS, config, strict=True))
    request = {"action_request": {"action": "pay", "args": PAY}, "config": flags, "description": "**Now**"}
    found = asked([request])
    (card,) = cards_of(found)
    allowed = [flag for flag in FLAGS if flags[flag]] or ["allow_respond"]  # where nothing is, words are
    assert set(verdicts(card)) == {LEGACY[flag][0] for flag in allowed}
    for flag in allowed:
        verdict, typed, wanted = LEGACY[flag]
        assert resumed(found, sent(card, verdict, **typed)) == [wanted]


def test_a_legacy_request_stands_alone_or_in_a_list_and_the_answer_is_a_list() -> None:
    one = {"action_request": {"action": "pay", "args": PAY}, "config": {"allow_accept": True}}
    for value, count in ((one, 1), ([one], 1), ([one, one], 2)):
        found = asked(value)
        answers = [sent(card, "approve") for card in cards_of(found)]
        assert resumed(found, *answers) == [{"type": "accept", "args": None}] * count


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("Rule 12", "Rule 12"), ("12", "12"), ('"quoted"', '"quoted"'), (" two\nlines ", " two\nlines ")],
)
def test_a_plain_question_is_answered_in_words(typed: str, answer: str) -> None:
    found = asked("Which rule?")
    (card,) = cards_of(found)
    assert (card.title, verdicts(card)) == ("Which rule?", ["answer"])
    assert resumed(found, sent(card, "answer", **{"v:/~0": typed})) == answer


@pytest.mark.parametrize("text", ["12", "null", '{"a": [1.0, true]}', '""', '"text"', "[]"])
def test_a_plain_question_is_answered_in_any_json(text: str) -> None:
    found = asked({"question": "Which rule?"})
    reviewer = Reviewer.at(cards_of(found)[0], "answer")
    reviewer.press("refresh", **{"b:": "1"})
    reading = reviewer.send(**{"v:/~1": text})
    assert reading.errors == ()
    assert encode(resumed(found, reading.answer)) == encode(json.loads(text))


@pytest.mark.parametrize("typed", ["", "  \n"])
def test_a_question_that_nobody_answered_is_not_answered_by_nothing(typed: str) -> None:
    reviewer = Reviewer.at(cards_of(asked("Which rule?"))[0], "answer")
    reading = reviewer.send(**{"v:/~0": typed})
    assert [error.code for error in reading.errors] == ["message"]
    assert 'aria-invalid="true"' in reviewer.html


def test_a_typed_question_is_answered_in_its_fields() -> None:
    schema = {
        "type": "object",
        "properties": {"pass": {"type": "boolean"}, "score": {"type": "integer", "maximum": 10}},
        "required": ["pass", "score"],
    }
    found = asked({"question": "Is it safe?"}, schema)
    (card,) = cards_of(found)
    assert Reviewer.at(card, "answer").send().errors
    answer = sent(card, "answer", **{"v:/pass": "1", "v:/score": "7"})
    assert resumed(found, answer) == {"pass": False, "score": 7}


def test_a_draft_is_read_as_the_text_it_becomes_and_answered_in_its_own_schema() -> None:
    text = "# News\n\nWe **grew**.\n\n- Asia \u202e\n- Europe"
    schema = {"type": "string", "minLength": 1}
    found = asked({"draft": text, "channel": "blog"}, schema)
    (card,) = cards_of(found)
    html = str(render.render_arguments(card))
    assert "<p><strong>News</strong></p>" in html
    assert "<li>Asia <span" in html
    assert html.count("U+202E</span>") == 3  # formatted, as written, as data
    assert text_of(html).count("blog") == 1
    mended = sent(card, "answer", **{"v:": "# News\n\nWe grew."})
    assert resumed(found, mended) == "# News\n\nWe grew."


@pytest.mark.parametrize(
    "value", [{"a": [1, {"b": None}], "": 1.0}, [[1, 2], []], 12, None, True, [], {}, {"x": {"y": {}}}]
)
def test_any_other_json_is_shown_whole_and_takes_any_answer(value: Any) -> None:
    found = asked(value)
    (card,) = cards_of(found)
    text = text_of(str(render.render_arguments(card)))
    for scalar in _scalars(value):
        assert scalar in text
    assert resumed(found, sent(card, "answer", **{"v:/~0": "ok"})) == "ok"


def test_a_breakpoint_takes_nothing_but_going_on() -> None:
    found = read_breakpoint(["act"])
    (card,) = cards_of(found)
    assert verdicts(card) == ["answer"]
    assert resumed(found, sent(card, "answer")) == "continue"
    assert card.validate("stop")


def _scalars(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [part for item in value.values() for part in _scalars(item)]
    if isinstance(value, list):
        return [part for item in value for part in _scalars(item)]
    return [json.dumps(value)]
