"""The mail agent sends what the reviewer let it send, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents_runtime.agents import outgoing_mail
from tests.agents_shipped.conversation import Conversation

Talk = Callable[..., Conversation]


@pytest.fixture
def drafted(talk: Talk) -> Conversation:
    """A run that waits for a decision on a letter to two people."""
    conversation = talk(outgoing_mail)
    conversation.give(
        {"company": "Halden Freight", "topic": "service_interruption", "remarks": "First.\nSecond."}
    )
    return conversation


def test_the_letter_goes_to_several_people_and_is_long(drafted: Conversation) -> None:
    letter = drafted.proposed("send_email")
    assert [person["name"] for person in letter["to"]] == ["Liv Halden", "Erik Moe"]
    assert [person["name"] for person in letter["cc"]] == ["Sam Ortiz"]
    assert letter["priority"] == "high"
    assert "First.\nSecond." in letter["body"]
    assert letter["body"].count("\n") > 8
    assert drafted.effects == []


def test_an_approved_letter_is_sent(drafted: Conversation) -> None:
    drafted.approve("send_email")
    (tool, sent) = drafted.effects[0]
    assert tool == "send_email"
    assert len(sent["recipients"]) == 3
    assert "was sent to Liv Halden, Erik Moe as M-" in drafted.said


def test_an_edited_letter_tells_what_was_changed(drafted: Conversation) -> None:
    to = drafted.proposed("send_email")["to"][:1]
    drafted.edit("send_email", to=to, cc=None, subject="A shorter subject", body="Short.")
    assert drafted.effects[0][1]["recipients"] == ["liv.halden@halden-freight.example"]
    assert "“A shorter subject” was sent to Liv Halden as" in drafted.said
    assert "changed before it went out: body, cc, subject, to." in drafted.said


def test_a_rejected_letter_leads_to_a_holding_reply(drafted: Conversation) -> None:
    first = drafted.proposed("send_email")
    drafted.reject("send_email", "Legal has to read this first.")
    assert "refused because: Legal has to read this first." in drafted.said
    second = drafted.proposed("send_email")
    assert second["to"] == first["to"]
    assert len(second["body"]) < len(first["body"])
    drafted.approve("send_email")
    assert len(drafted.effects) == 1
    assert drafted.is_over


def test_two_refusals_end_with_nothing_sent(drafted: Conversation) -> None:
    drafted.reject("send_email")
    drafted.reject("send_email")
    assert drafted.effects == []
    assert "Nothing was sent" in drafted.said
    assert drafted.is_over


def test_an_unknown_company_gets_no_letter(talk: Talk) -> None:
    conversation = talk(outgoing_mail)
    conversation.give({"company": "Nobody & Sons", "topic": "fee_change"})
    assert conversation.is_over
    assert "There is no customer named Nobody & Sons" in conversation.said
