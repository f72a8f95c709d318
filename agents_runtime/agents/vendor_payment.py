"""Vendor payment: pays an approved invoice by bank transfer, card or wallet. Its tools are all async.

A refused payment takes another path: the agent puts the invoice on hold and says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, Discriminator, Field

from agents_runtime.agents.briefing import BriefedState, Briefing, agent_state
from agents_runtime.agents.effects import record
from agents_runtime.agents.history import Outcome, Turn
from agents_runtime.chat_model import Call, Say, get_model

SYSTEM_PROMPT = """You pay the invoices of a company's vendors. Look up the invoice first. Pay exactly the
open amount, to the account that the vendor's master data names, and give the invoice number as reference.
Then call pay_vendor once. A person checks every payment. If the payment is refused, call hold_invoice
with the reason and do not try again. If it was changed, say how."""

InvoiceNumber = Annotated[str, Field(description="Invoice number, such as V-7781.", pattern=r"^V-\d{4}$")]
Amount = Annotated[
    str, Field(description="Amount with two decimals, such as 1840.00.", pattern=r"^\d{1,7}\.\d{2}$")
]


class Iban(BaseModel):
    """A bank account."""

    method: Literal["iban"]
    holder: str
    iban: Annotated[str, Field(title="IBAN", pattern=r"^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$")]
    bic: Annotated[str | None, Field(title="BIC")] = None


class Card(BaseModel):
    """A company card on file."""

    method: Literal["card"]
    last_four: Annotated[str, Field(pattern=r"^\d{4}$")]
    network: Literal["visa", "mastercard"]


class Wallet(BaseModel):
    """An account with a payment provider."""

    method: Literal["wallet"]
    provider: Literal["paypal", "wise"]
    account: Annotated[str, Field(description="The account's e-mail address.")]


class Address(BaseModel):
    """A postal address."""

    street: str
    city: str
    postal_code: str
    country: Annotated[str, Field(description="Two letters, such as DE.", pattern=r"^[A-Z]{2}$")]


class Vendor(BaseModel):
    """Whom we pay."""

    name: str
    vat_number: str | None = None
    address: Address


# Not Field(discriminator=...): LangChain would lose that on its way to the model's and the reviewer's schema.
Destination = Annotated[
    Iban | Card | Wallet, Discriminator("method"), Field(description="Where the money goes.")
]

WAYS = {"iban": "by bank transfer", "card": "by card", "wallet": "through a wallet"}

INVOICES: dict[str, dict[str, Any]] = {
    "V-7781": {
        "vendor": {
            "name": "Kappel Logistik GmbH",
            "vat_number": "DE301228475",
            "address": {
                "street": "Hafenstraße 12",
                "city": "Bremen",
                "postal_code": "28217",
                "country": "DE",
            },
        },
        "open_amount": "1840.00",
        "currency": "EUR",
        "due": "2026-12-04",
        "destination": {
            "method": "iban",
            "holder": "Kappel Logistik GmbH",
            "iban": "DE89370400440532013000",
            "bic": None,
        },
    },
    "V-7790": {
        "vendor": {
            "name": "Brightdesk Ltd",
            "vat_number": None,
            "address": {"street": "4 Mill Lane", "city": "Leeds", "postal_code": "LS1 4DY", "country": "GB"},
        },
        "open_amount": "312.75",
        "currency": "GBP",
        "due": "2026-12-01",
        "destination": {"method": "wallet", "provider": "wise", "account": "billing@brightdesk.example"},
    },
}


class PaymentState(BriefedState):
    """What the agent is asked with."""

    invoice: InvoiceNumber
    instructions: Annotated[str, Field(description="Anything the payer should know.", default="")]


@tool
async def look_up_invoice(invoice: InvoiceNumber) -> dict[str, Any]:
    """Look up an approved invoice: vendor, open amount, due date and where the vendor wants the money."""
    return INVOICES.get(invoice) or {"error": f"There is no approved invoice {invoice}."}


@tool
async def pay_vendor(
    invoice: InvoiceNumber,
    vendor: Vendor,
    amount: Amount,
    currency: Literal["EUR", "GBP", "USD"],
    destination: Destination,
    runtime: ToolRuntime,
    urgent: Annotated[bool, Field(description="Same-day payment, for a fee.")] = False,
) -> dict[str, Any]:
    """Pay an invoice."""
    known = INVOICES.get(invoice)
    if known is None or Decimal(amount) > Decimal(known["open_amount"]):
        return {"status": "declined", "why": "More than the open amount of the invoice cannot be paid."}
    key = await asyncio.to_thread(
        record, "pay_vendor", runtime, invoice=invoice, vendor=vendor.name, amount=amount, currency=currency,
        destination=destination.model_dump(), urgent=urgent,
    )  # fmt: skip
    return {"status": "paid", "payment": f"P-{key[-6:]}", "amount": amount, "currency": currency}


@tool
async def hold_invoice(invoice: InvoiceNumber, reason: str) -> dict[str, str]:
    """Put an invoice on hold, so that nobody pays it until it was looked at again."""
    return {"status": "on hold", "invoice": invoice, "reason": reason}


pay_vendor.metadata = {"title": "Pay {amount} {currency} for invoice {invoice}"}


def write_briefing(state: PaymentState) -> str:
    """Return the message that the form stands for."""
    instructions = state.get("instructions", "")
    text = f"Pay a vendor's invoice.\nInvoice: {state['invoice']}"
    return f"{text}\nInstructions: {instructions}" if instructions else text


def script(messages: Sequence[BaseMessage]) -> Say:
    """Say what comes next: look up, pay, and conclude from what the reviewer decided."""
    turn = Turn.read(messages)
    number = turn.field("Invoice")
    if not number:
        return Say("Please give me an invoice number; then I can prepare the payment.")
    found, paid, held = (turn.last(name) for name in ("look_up_invoice", "pay_vendor", "hold_invoice"))
    if held:
        return Say(f"The payment was refused, so invoice {number} is on hold. No money was moved.")
    if paid:
        return _after_payment(number, paid)
    if found is None:
        return Say(f"I will look up invoice {number}.", (Call("look_up_invoice", {"invoice": number}),))
    if "vendor" not in found.result:
        return Say(f"There is no approved invoice {number}, so I prepared no payment.")
    return _propose(turn, number, found.result)


def _propose(turn: Turn, number: str, invoice: dict[str, Any]) -> Say:
    vendor, destination = invoice["vendor"], invoice["destination"]
    text = (
        f"Invoice {number} of {vendor['name']} is approved and due on {invoice['due']}. I propose to pay "
        f"the {invoice['open_amount']} {invoice['currency']} that are open {WAYS[destination['method']]}."
    )
    arguments = {
        "invoice": number,
        "vendor": vendor,
        "amount": invoice["open_amount"],
        "currency": invoice["currency"],
        "destination": destination,
        "urgent": "urgent" in turn.field("Instructions").lower(),
    }
    return Say(text, (Call("pay_vendor", arguments),))


def _after_payment(number: str, payment: Outcome) -> Say:
    if payment.was_rejected:
        reason = payment.reason or "The payment was refused without a reason."
        return Say(
            f"The payment was refused. I will put invoice {number} on hold.",
            (Call("hold_invoice", {"invoice": number, "reason": reason}),),
        )
    if payment.result.get("status") == "declined":
        return Say(f"The bank declined the payment: {payment.result['why']} No money was moved.")
    ran = payment.ran or {}
    paid_as = payment.result.get("payment")
    way = WAYS.get(ran["destination"].get("method"), "")
    text = f"Invoice {number} was paid with {ran['amount']} {ran['currency']} {way}".rstrip()
    text += f" as {paid_as}." if paid_as else "."
    changed = ", ".join(sorted(payment.changed))
    return Say(f"{text} The reviewer changed: {changed}." if changed else text)


def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the agent."""
    return create_agent(
        get_model(script),
        tools=[look_up_invoice, pay_vendor, hold_invoice],
        system_prompt=SYSTEM_PROMPT,
        middleware=[
            Briefing(PaymentState, write_briefing),
            HumanInTheLoopMiddleware(
                {
                    "pay_vendor": {
                        "allowed_decisions": ["approve", "edit", "reject"],
                        "description": "The bank executes the payment as soon as this is approved.",
                    },
                },
                interrupt_mode="per_call",
            ),
        ],
        state_schema=agent_state(PaymentState),
        name="vendor_payment",
    )
