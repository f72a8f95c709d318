"""Outgoing mail: finds the right people at a customer and drafts a letter to them.

A refused draft takes another path: the agent proposes a short holding reply, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, Field

from agents_runtime.agents.briefing import BriefedState, Briefing, agent_state
from agents_runtime.agents.effects import record
from agents_runtime.agents.history import Outcome, Turn
from agents_runtime.chat_model import Call, Say, get_model

SYSTEM_PROMPT = """You write letters to business customers for a payment company. Find the customer's
contacts first. Write plainly and politely, promise nothing that you were not told, and give dates in
full. Write to the people whom the matter concerns and copy our own account manager. Then call send_email
once. A person reads every letter before it goes out. If it is refused, read the reason and propose one
short holding reply that commits us to nothing. If that is refused as well, stop, and say that nothing was
sent. If the letter was changed, say what was changed."""

Company = Annotated[str, Field(description="The customer's name, such as Halden Freight.", min_length=1)]
Topic = Literal["fee_change", "late_payment", "service_interruption"]
Priority = Literal["low", "normal", "high"]
TOPICS: dict[str, tuple[str, str]] = {
    "fee_change": (
        "Change of your transaction fees",
        "from 1 January 2027 the fee for card payments is 1.5 % instead of 1.4 %. Other fees stay the same.",
    ),
    "late_payment": (
        "Your invoice 2026-1187 is still open",
        "our invoice 2026-1187 of 12 October 2026 has not been paid yet. Please pay it by 15 December 2026.",
    ),
    "service_interruption": (
        "Interruption of payouts on 24 November",
        "on 24 November 2026, payouts were up to four hours late. By now, all have been made in full.",
    ),
}


class Recipient(BaseModel):
    """A person who gets the letter."""

    name: Annotated[str, Field(min_length=1)]
    address: Annotated[str, Field(description="E-mail address.", pattern=r"^[^@\s]+@[^@\s]+$")]


SIGNATURE = "Kind regards\nLedgerline Payments\nCustomer desk"

CONTACTS: dict[str, dict[str, list[dict[str, str]]]] = {
    "halden freight": {
        "contacts": [
            {"name": "Liv Halden", "address": "liv.halden@halden-freight.example", "role": "Finance"},
            {"name": "Erik Moe", "address": "erik.moe@halden-freight.example", "role": "Operations"},
        ],
        "account_manager": [{"name": "Sam Ortiz", "address": "sam.ortiz@ledgerline.example"}],
    },
    "north pier books": {
        "contacts": [
            {"name": "Agnes Keel", "address": "agnes@northpierbooks.example", "role": "Owner"},
        ],
        "account_manager": [{"name": "Sam Ortiz", "address": "sam.ortiz@ledgerline.example"}],
    },
}


class MailState(BriefedState):
    """What the agent is asked with."""

    company: Company
    topic: Annotated[Topic, Field(description="What the letter is about.")]
    remarks: Annotated[str, Field(description="What else the letter should say.", default="")]


@tool
def look_up_contacts(company: Company) -> dict[str, Any]:
    """Look up the contacts of a customer and our account manager for it."""
    return CONTACTS.get(company.lower()) or {"error": f"There is no customer named {company}."}


@tool
def send_email(
    to: Annotated[list[Recipient], Field(description="Who gets the letter.", min_length=1, max_length=20)],
    subject: Annotated[str, Field(min_length=1, max_length=200)],
    body: Annotated[str, Field(description="Plain text.", min_length=1)],
    runtime: ToolRuntime,
    cc: Annotated[list[Recipient] | None, Field(description="Who gets a copy.")] = None,
    priority: Priority = "normal",
) -> dict[str, Any]:
    """Send a letter by e-mail."""
    people = [person.address for person in [*to, *(cc or [])]]
    key = record("send_email", runtime, recipients=people, subject=subject, body=body, priority=priority)
    return {"status": "sent", "message": f"M-{key[-6:]}", "recipients": len(people)}


send_email.metadata = {"title": "Send “{subject}” by e-mail"}


def write_briefing(state: MailState) -> str:
    """Return the message that the form stands for."""
    remarks = state.get("remarks", "")
    text = f"Write to a customer.\nCompany: {state['company']}\nTopic: {state['topic']}"
    return f"{text}\nRemarks: {remarks}" if remarks else text


def script(messages: Sequence[BaseMessage]) -> Say:
    """Say what comes next: look up, draft, and conclude from what the reviewer decided."""
    turn = Turn.read(messages)
    company, topic = turn.field("Company"), turn.field("Topic")
    if not company or topic not in TOPICS:
        return Say("Please give me a company and a topic; then I can draft a letter.")
    letters, found = turn.all("send_email"), turn.last("look_up_contacts")
    if found is None:
        return Say(
            f"I will look up whom to write to at {company}.",
            (Call("look_up_contacts", {"company": company}),),
        )
    if "contacts" not in found.result:
        return Say(f"There is no customer named {company}, so I wrote no letter.")
    if not letters:
        return _draft(turn, found.result)
    if not letters[-1].was_rejected:
        return Say(_sent(letters[-1]))
    if len(letters) == 1:
        return _holding_reply(letters[-1])
    return Say(
        "Both the letter and the holding reply were refused. Nothing was sent; I leave the writing to you."
    )


def _draft(turn: Turn, found: dict[str, Any]) -> Say:
    subject, matter = TOPICS[turn.field("Topic")]
    people = [_recipient(person) for person in found["contacts"]]
    names = " and ".join(person["name"] for person in people)
    paragraphs = [
        f"Dear {names},",
        matter[0].upper() + matter[1:],
        turn.task.partition("\nRemarks: ")[2],
        "If you have questions, please answer this letter or call us between 8 and 17 o'clock.",
        "Your account manager reads along and will call you back on the same day.",
        SIGNATURE,
    ]
    arguments = {
        "to": people,
        "cc": [_recipient(person) for person in found["account_manager"]],
        "subject": subject,
        "body": "\n\n".join(paragraph for paragraph in paragraphs if paragraph),
        "priority": "high" if turn.field("Topic") == "service_interruption" else "normal",
    }
    return Say(
        f"I drafted a letter to {names}. Our account manager gets a copy.",
        (Call("send_email", arguments),),
    )


def _recipient(person: dict[str, str]) -> dict[str, str]:
    return {"name": person["name"], "address": person["address"]}


def _sent(letter: Outcome) -> str:
    ran = letter.ran or {}
    people = ", ".join(person["name"] for person in ran["to"])
    number = letter.result.get("message")
    text = f"The letter “{ran['subject']}” was sent to {people}" + (f" as {number}." if number else ".")
    changed = ", ".join(sorted(letter.changed))
    return f"{text} The reviewer changed before it went out: {changed}." if changed else text


def _holding_reply(refused: Outcome) -> Say:
    because = f" because: {refused.reason}" if refused.reason else ""
    names = " and ".join(person["name"] for person in refused.proposed["to"])
    body = (
        f"Dear {names},\n\n"
        f"we are looking into this matter and will write again within two working days.\n\n{SIGNATURE}"
    )
    arguments = {
        "to": refused.proposed["to"],
        "subject": refused.proposed["subject"],
        "body": body,
        "priority": "normal",
    }
    return Say(
        f"The letter was refused{because}. In its place I propose a short reply that commits us to nothing.",
        (Call("send_email", arguments),),
    )


def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the agent."""
    return create_agent(
        get_model(script),
        tools=[look_up_contacts, send_email],
        system_prompt=SYSTEM_PROMPT,
        middleware=[
            Briefing(MailState, write_briefing),
            HumanInTheLoopMiddleware(
                {
                    "send_email": {
                        "allowed_decisions": ["approve", "edit", "reject"],
                        "description": "The letter goes out to the customer as soon as this is approved.",
                    },
                },
                interrupt_mode="per_call",
            ),
        ],
        state_schema=agent_state(MailState),
        name="outgoing_mail",
    )
