"""The payment agent: async tools, nested arguments, and a choice between three ways to pay."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from agents_runtime.agents import vendor_payment
from tests.agents_shipped.conversation import Conversation

Talk = Callable[..., Conversation]


@pytest.fixture
def proposed(talk: Talk) -> Conversation:
    """A run that waits for a decision on a bank transfer."""
    conversation = talk(vendor_payment, is_async=True)
    conversation.give({"invoice": "V-7781"})
    return conversation


def test_the_edit_form_offers_the_three_ways_to_pay(proposed: Conversation) -> None:
    schema = proposed.pauses["pay_vendor"].response_schema
    assert isinstance(schema, dict)
    destination = schema["$defs"]["pay_vendor"]["properties"]["destination"]
    assert destination["discriminator"]["propertyName"] == "method"
    assert set(destination["discriminator"]["mapping"]) == {"card", "iban", "wallet"}
    assert proposed.proposed("pay_vendor")["vendor"]["address"]["city"] == "Bremen"


def test_an_approved_payment_is_made(proposed: Conversation) -> None:
    proposed.approve("pay_vendor")
    assert [tool for tool, _ in proposed.effects] == ["pay_vendor"]
    assert "Invoice V-7781 was paid with 1840.00 EUR by bank transfer as P-" in proposed.said


def test_a_payment_can_be_moved_to_another_way_to_pay(proposed: Conversation) -> None:
    card = {"method": "card", "last_four": "4421", "network": "visa"}
    proposed.edit("pay_vendor", destination=card, amount="1000.00")
    assert proposed.effects[0][1]["destination"] == card
    assert "paid with 1000.00 EUR by card" in proposed.said
    assert "The reviewer changed: amount, destination." in proposed.said


def test_an_edit_that_mixes_two_ways_to_pay_is_refused_and_can_be_answered_again(
    proposed: Conversation,
) -> None:
    with pytest.raises(ValidationError):
        proposed.edit("pay_vendor", destination={"method": "card", "iban": "DE89370400440532013000"})
    assert proposed.effects == []
    proposed.approve("pay_vendor")
    assert len(proposed.effects) == 1


def test_a_rejected_payment_puts_the_invoice_on_hold(proposed: Conversation) -> None:
    proposed.reject("pay_vendor", "The account number is new.")
    assert proposed.is_over
    assert proposed.effects == []
    assert "invoice V-7781 is on hold. No money was moved." in proposed.said


def test_more_than_the_open_amount_is_declined(proposed: Conversation) -> None:
    proposed.edit("pay_vendor", amount="99999.00")
    assert proposed.effects == []
    assert "declined the payment" in proposed.said
