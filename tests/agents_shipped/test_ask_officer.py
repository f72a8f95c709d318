"""The screening agent asks a person, and goes on with the answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents_runtime.agents import ask_officer
from tests.agents_shipped.conversation import Conversation

Talk = Callable[..., Conversation]


@pytest.fixture
def asked(talk: Talk) -> Conversation:
    """A run that waits for the officer's answer."""
    conversation = talk(ask_officer)
    conversation.give({"customer_name": "Viktor Hale", "born": "1974-05-19", "country": "Austria"})
    return conversation


def test_the_only_thing_one_can_do_is_answer(asked: Conversation) -> None:
    pause = asked.pauses["ask_user"]
    assert isinstance(pause.response_schema, dict)
    assert pause.response_schema["properties"]["type"]["const"] == "respond"
    assert "Viktor A. HALE" in pause.value["args"]["question"]
    assert "the year of birth is the same" in pause.value["args"]["question"]


@pytest.mark.parametrize(
    ("answer", "conclusion"),
    [
        ("No, our customer is twenty years younger.", "can be accepted; the match was false"),
        ("Yes, same passport number.", "must not be accepted; the account stays blocked"),
        ("I need to see the file.", "stays on hold"),
    ],
)
def test_the_conclusion_quotes_and_follows_the_answer(
    asked: Conversation, answer: str, conclusion: str
) -> None:
    asked.answer("ask_user", {"type": "respond", "message": answer})
    assert asked.is_over
    assert f"“{answer}”" in asked.said
    assert conclusion in asked.said


def test_a_name_on_no_list_needs_no_person(talk: Talk) -> None:
    conversation = talk(ask_officer)
    conversation.give({"customer_name": "Ada Example", "born": "1990-01-01", "country": "Norway"})
    assert conversation.is_over
    assert "on none of the lists" in conversation.said
