"""Refunds: looks up the order a customer complains about and proposes a refund.

A refused refund takes another path: the agent proposes store credit instead, which is gated, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from agents_runtime.agents.briefing import BriefedState, Briefing, agent_state
from agents_runtime.agents.effects import record
from agents_runtime.agents.history import Outcome, Turn
from agents_runtime.chat_model import Call, Say, get_model
from agents_runtime.policy import ReviewRule, review_policy

SYSTEM_PROMPT = """You handle refund requests for an online shop that sells household goods. Look up the
order first. Refund only what the customer is owed: the price of the article that was damaged, late,
missing or charged twice, never more than the order's total. Say in one or two sentences what you found
and why you propose this amount, then call issue_refund. A person checks every refund before it is paid.
If the refund is refused, do not ask for it again: read the reason and offer store credit once. If that is
refused as well, stop, and say what is left to be done. If the amount was changed, name the amount that
was really paid."""

OrderId = Annotated[
    str, Field(title="Order", description="Order number, such as A-1043.", pattern=r"^A-\d{4}$")
]
Amount = Annotated[
    str, Field(description="Amount with two decimals, such as 49.90.", pattern=r"^\d{1,6}\.\d{2}$")
]
Currency = Literal["EUR", "GBP", "USD"]
Reason = Literal["damaged", "not_delivered", "late", "duplicate_charge", "goodwill"]

# What in a complaint points to which reason, most telling first; only the script needs it.
CLUES: tuple[tuple[Reason, tuple[str, ...]], ...] = (
    ("duplicate_charge", ("twice", "double", "duplicate")),
    ("not_delivered", ("never arrived", "not arrived", "missing", "lost")),
    ("damaged", ("broken", "damaged", "cracked", "scratched")),
    ("late", ("late", "delay", "weeks")),
)


@dataclass(frozen=True)
class Order:
    """An order of the demo shop; amounts are decimal text."""

    order_id: str
    customer: str
    article: str
    article_price: str
    total: str
    currency: Currency
    paid_with: str


ORDERS = {
    order.order_id: order
    for order in (
        Order("A-1043", "Jo Brandt", "brass desk lamp", "49.90", "128.40", "EUR", "card ending 4421"),
        Order("A-1057", "Priya Nair", "enamel cookware set", "189.00", "189.00", "GBP", "bank transfer"),
        Order("A-1062", "Marcus Webb", "folding step stool", "34.50", "69.00", "USD", "card ending 0097"),
    )
}


class RefundState(BriefedState):
    """What the agent is asked with."""

    order_id: OrderId
    complaint: Annotated[str, Field(description="What the customer wrote.", min_length=1)]


@tool
def lookup_order(order_id: OrderId) -> dict[str, Any]:
    """Look up an order: customer, article, prices and payment."""
    order = ORDERS.get(order_id)
    return asdict(order) if order else {"error": f"There is no order {order_id}."}


@tool
def issue_refund(
    order_id: OrderId,
    amount: Amount,
    currency: Currency,
    reason: Reason,
    runtime: ToolRuntime,
    notify_customer: Annotated[bool, Field(description="Send the customer a confirmation.")] = True,
    note: Annotated[
        str | None, Field(description="Note for the books; the customer does not see it.")
    ] = None,
) -> dict[str, Any]:
    """Pay money back to the customer, to where the payment came from."""
    order = ORDERS.get(order_id)
    if order is None:
        return {"status": "declined", "why": f"There is no order {order_id}."}
    if Decimal(amount) > Decimal(order.total) or currency != order.currency:
        return {"status": "declined", "why": f"The order was paid with {order.total} {order.currency}."}
    key = record(
        "issue_refund", runtime, order_id=order_id, amount=amount, currency=currency, reason=reason,
        notify_customer=notify_customer, note=note,
    )  # fmt: skip
    return {
        "status": "paid",
        "refund": f"RF-{key[-6:]}",
        "amount": amount,
        "currency": currency,
        "to": order.paid_with,
    }


@tool
def offer_store_credit(
    order_id: OrderId, amount: Amount, currency: Currency, valid_months: Annotated[int, Field(ge=1, le=36)],
    runtime: ToolRuntime,
) -> dict[str, Any]:  # fmt: skip
    """Give the customer a voucher in place of a refund."""
    key = record(
        "offer_store_credit", runtime, order_id=order_id, amount=amount, currency=currency,
        valid_months=valid_months,
    )  # fmt: skip
    return {"status": "sent", "voucher": f"SC-{key[-6:]}", "amount": amount, "currency": currency}


issue_refund.metadata = {"title": "Refund {amount} {currency} for order {order_id}"}
offer_store_credit.metadata = {"title": "Offer {amount} {currency} of store credit for order {order_id}"}


def write_briefing(state: RefundState) -> str:
    """Return the message that the form stands for."""
    text = f"A customer asks for a refund.\nOrder: {state['order_id']}"
    return f"{text}\nThe customer writes:\n{state['complaint']}"


def script(messages: Sequence[BaseMessage]) -> Say:
    """Say what comes next: look up, propose, and conclude from what the reviewer decided."""
    turn = Turn.read(messages)
    order_id = turn.field("Order")
    if not order_id:
        return Say(
            "Please give me an order number and what the customer wrote; then I can look into a refund."
        )
    found, refund, credit = (
        turn.last(name) for name in ("lookup_order", "issue_refund", "offer_store_credit")
    )
    if credit:
        return _after_credit(credit)
    if refund:
        return _after_refund(refund)
    if found is None:
        return Say(f"I will look up order {order_id} first.", (Call("lookup_order", {"order_id": order_id}),))
    return _propose_refund(turn, found.result)


def _propose_refund(turn: Turn, order: dict[str, Any]) -> Say:
    if "order_id" not in order:
        return Say(f"There is no order {turn.field('Order')}, so I did not propose a refund.")
    reason = _reason(turn.task)
    amount = order["total"] if reason == "not_delivered" else order["article_price"]
    text = (
        f"Order {order['order_id']} of {order['customer']} came to {order['total']} {order['currency']}, "
        f"paid by {order['paid_with']}. The complaint is about the {order['article']}; the reason that "
        f"fits is: {reason.replace('_', ' ')}. I propose to refund {amount} {order['currency']}."
    )
    arguments = {
        "order_id": order["order_id"],
        "amount": amount,
        "currency": order["currency"],
        "reason": reason,
        "notify_customer": True,
        "note": f"{order['article'].capitalize()}: {reason.replace('_', ' ')}, as the customer told us.",
    }
    return Say(text, (Call("issue_refund", arguments),))


def _reason(complaint: str) -> Reason:
    text = complaint.lower()
    return next((reason for reason, clues in CLUES if any(clue in text for clue in clues)), "goodwill")


def _after_refund(refund: Outcome) -> Say:
    if refund.was_rejected:
        return _propose_credit(refund)
    if refund.result.get("status") == "declined":
        return Say(f"The payment system declined the refund: {refund.result['why']} Nothing was paid.")
    return Say(f"{_paid(refund)}{_told(refund)} Nothing else is left to do.")


def _paid(refund: Outcome) -> str:
    ran = refund.ran or {}
    number = refund.result.get("refund")
    text = f"The refund of {ran['amount']} {ran['currency']} for order {ran['order_id']} was paid"
    text += f" as {number}." if number else "."
    if "amount" in refund.changed:
        text += f" The reviewer changed the amount from {refund.proposed['amount']} to {ran['amount']}."
    others = [name.replace("_", " ") for name in refund.changed if name != "amount"]
    return f"{text} The reviewer also set: {', '.join(others)}." if others else text


def _told(refund: Outcome) -> str:
    return " The customer was told." if (refund.ran or {}).get("notify_customer", True) else ""


def _propose_credit(refund: Outcome) -> Say:
    proposed = refund.proposed
    because = f" because: {refund.reason}" if refund.reason else ""
    text = (
        f"The refund of {proposed['amount']} {proposed['currency']} was refused{because}. I will not ask for "
        "it again. As a gesture I propose store credit of the same amount in its place."
    )
    arguments = {
        "order_id": proposed["order_id"],
        "amount": proposed["amount"],
        "currency": proposed["currency"],
        "valid_months": 12,
    }
    return Say(text, (Call("offer_store_credit", arguments),))


def _after_credit(credit: Outcome) -> Say:
    if credit.was_rejected:
        because = f" ({credit.reason})" if credit.reason else ""
        return Say(
            f"Store credit was refused as well{because}. No money and no credit was given. Somebody should "
            "write to the customer and explain why."
        )
    ran = credit.ran or {}
    changed = " The reviewer changed what I had proposed." if credit.changed else ""
    return Say(
        f"No refund was paid. In its place, store credit of {ran['amount']} {ran['currency']}, valid for "
        f"{ran['valid_months']} months, was sent to the customer.{changed}"
    )


TOOLS = [lookup_order, issue_refund, offer_store_credit]


def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the agent."""
    return create_agent(
        get_model(script),
        tools=TOOLS,
        system_prompt=SYSTEM_PROMPT,
        middleware=review_policy(
            TOOLS,
            high=[issue_refund, offer_store_credit],
            low=[lookup_order],
            rules={
                "issue_refund": ReviewRule(
                    description="The money leaves the account as soon as this is approved.", queue="payments"
                ),
                "offer_store_credit": ReviewRule(
                    description="The customer gets the voucher at once, and it cannot be taken back.",
                    queue="payments",
                    risk="medium",
                ),
            },
            middleware=[Briefing(RefundState, write_briefing)],
        ),
        state_schema=agent_state(RefundState),
        name="refunds",
    )
