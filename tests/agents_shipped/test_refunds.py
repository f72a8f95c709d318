"""The refunds agent reacts to what the reviewer did."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from agents_runtime.agents import refunds
from agents_runtime.agents.effects import FILE_NAME
from tests.agents_shipped.conversation import Conversation

Talk = Callable[..., Conversation]
BROKEN_LAMP = {"order_id": "A-1043", "complaint": "The lamp arrived broken."}


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def asked(talk: Talk, request: pytest.FixtureRequest) -> Conversation:
    """A run that waits for a decision on a refund."""
    conversation = talk(refunds, is_async=request.param)
    conversation.give(BROKEN_LAMP)
    return conversation


def test_nothing_is_paid_before_somebody_decides(asked: Conversation) -> None:
    assert list(asked.pauses) == ["issue_refund"]
    assert asked.proposed("issue_refund") == {
        "order_id": "A-1043",
        "amount": "49.90",
        "currency": "EUR",
        "reason": "damaged",
        "notify_customer": True,
        "note": "Brass desk lamp: damaged, as the customer told us.",
    }
    assert asked.effects == []


def test_an_approved_refund_is_paid_once_as_proposed(asked: Conversation) -> None:
    proposed = asked.proposed("issue_refund")
    asked.approve("issue_refund")
    assert asked.effects == [("issue_refund", proposed)]
    assert "The refund of 49.90 EUR for order A-1043 was paid as RF-" in asked.said
    assert "reviewer" not in asked.said
    assert asked.is_over


def test_an_edited_refund_pays_and_names_the_changed_amount(asked: Conversation) -> None:
    asked.edit("issue_refund", amount="20.00", notify_customer=False)
    assert asked.effects[0][1]["amount"] == "20.00"
    assert "The refund of 20.00 EUR" in asked.said
    assert "changed the amount from 49.90 to 20.00" in asked.said
    assert "The reviewer also set: notify customer." in asked.said
    assert "The customer was told" not in asked.said


def test_a_rejected_refund_takes_the_other_path(asked: Conversation) -> None:
    asked.reject("issue_refund", "Over the limit for this month.")
    assert asked.effects == []
    assert "refused because: Over the limit for this month. I will" in asked.said
    assert asked.proposed("offer_store_credit") == {
        "order_id": "A-1043",
        "amount": "49.90",
        "currency": "EUR",
        "valid_months": 12,
    }


def test_store_credit_can_be_edited_too(asked: Conversation) -> None:
    asked.reject("issue_refund")
    asked.edit("offer_store_credit", amount="10.00", valid_months=6)
    assert [name for name, _ in asked.effects] == ["offer_store_credit"]
    assert "store credit of 10.00 EUR, valid for 6 months" in asked.said
    assert "No refund was paid." in asked.said


def test_after_two_refusals_the_agent_stops_and_says_that_nothing_was_given(asked: Conversation) -> None:
    asked.reject("issue_refund")
    asked.reject("offer_store_credit", "Not this customer.")
    assert asked.effects == []
    assert "No money and no credit was given" in asked.said
    assert "(Not this customer)" in asked.said
    assert asked.is_over


def test_an_amount_above_the_order_is_declined_and_told_honestly(asked: Conversation) -> None:
    asked.edit("issue_refund", amount="999.00")
    assert asked.effects == []
    assert "declined the refund" in asked.said
    assert "Nothing was paid." in asked.said


@pytest.mark.parametrize(
    ("complaint", "reason", "amount"),
    [
        ("You charged me twice!", "duplicate_charge", "34.50"),
        ("It never arrived.", "not_delivered", "69.00"),
        ("Three weeks too late.", "late", "34.50"),
        ("I do not like it.", "goodwill", "34.50"),
    ],
)
def test_the_complaint_leads_to_the_reason(talk: Talk, complaint: str, reason: str, amount: str) -> None:
    conversation = talk(refunds)
    conversation.give({"order_id": "A-1062", "complaint": complaint})
    proposed = conversation.proposed("issue_refund")
    assert (proposed["reason"], proposed["amount"]) == (reason, amount)


def test_an_unknown_order_leads_to_no_proposal(talk: Talk) -> None:
    conversation = talk(refunds)
    conversation.give({"order_id": "A-9999", "complaint": "Broken."})
    assert conversation.is_over
    assert "There is no order A-9999" in conversation.said


def test_a_second_input_starts_a_second_turn_of_its_own(asked: Conversation) -> None:
    asked.approve("issue_refund")
    asked.give({"order_id": "A-1057", "complaint": "The pots are scratched."})
    assert asked.proposed("issue_refund")["order_id"] == "A-1057"


def test_a_plain_message_is_understood_as_one(asked: Conversation) -> None:
    asked.approve("issue_refund")
    asked.give({"messages": [{"role": "user", "content": "Thank you!"}]})
    assert "give me an order number" in asked.said


def test_each_effect_has_its_idempotency_key_in_a_private_file(asked: Conversation, home: Path) -> None:
    asked.approve("issue_refund")
    line = json.loads((home / FILE_NAME).read_text())
    assert line["thread"] == "a-thread"
    assert re.fullmatch("[0-9a-f]{64}", line["key"])
    assert stat.S_IMODE((home / FILE_NAME).stat().st_mode) == 0o600
