"""Ask the officer: screens a new customer and, where the lists leave a doubt, asks a person.

The tool ``ask_user`` never runs: its result is what the reviewer answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field

from agents_runtime.agents.briefing import BriefedState, Briefing, agent_state
from agents_runtime.agents.history import Outcome, Turn
from agents_runtime.chat_model import Call, Say, get_model

SYSTEM_PROMPT = """You screen new customers of a payment company against sanctions lists. Screen the name
first. A full match or no match needs no question: say so and stop. If there is a partial match, ask the
compliance officer with ask_user whether it is the same person; give what speaks for it and against it.
Base your conclusion on the officer's answer and quote it. You never decide on a partial match by
yourself."""

CustomerName = Annotated[str, Field(description="The customer's full name.", min_length=1)]
Born = Annotated[str, Field(description="Date of birth, such as 1974-05-19.", pattern=r"^\d{4}-\d{2}-\d{2}$")]

LISTED: dict[str, dict[str, str]] = {
    "viktor hale": {
        "listed_as": "Viktor A. HALE",
        "born": "1974",
        "list": "EU consolidated list",
        "since": "2022",
    },
    "samira nouri": {"listed_as": "Samira al-NOURI", "born": "1981", "list": "UN 1267 list", "since": "2019"},
}

# How an answer in words reads to the script; "" if neither fits.
NO = re.compile(r"\b(no|not|different|clear|release|false)\b", re.IGNORECASE)
YES = re.compile(r"\b(yes|same|match|confirmed|block|reject)\b", re.IGNORECASE)


class ScreeningState(BriefedState):
    """What the agent is asked with."""

    customer_name: CustomerName
    born: Born
    country: Annotated[str, Field(description="Where the customer lives.", min_length=2)]


@tool
def screen_name(name: CustomerName, born: Born) -> dict[str, str]:
    """Compare a name and a date of birth with the sanctions lists."""
    entry = LISTED.get(name.lower())
    if entry is None:
        return {"match": "none"}
    return {"match": "partial", "same_year": "yes" if born.startswith(entry["born"]) else "no", **entry}


@tool
def ask_user(question: Annotated[str, Field(description="What to ask the compliance officer.")]) -> str:
    """Ask the compliance officer, and wait for the answer."""
    raise RuntimeError(f"Only a person can answer this: {question}")


ask_user.metadata = {"title": "Answer a question about a customer"}


def write_briefing(state: ScreeningState) -> str:
    """Return the message that the form stands for."""
    return (
        f"Screen a new customer.\nName: {state['customer_name']}\nBorn: {state['born']}\n"
        f"Country: {state['country']}"
    )


def script(messages: Sequence[BaseMessage]) -> Say:
    """Say what comes next: screen, ask, and conclude from the answer."""
    turn = Turn.read(messages)
    name, born = turn.field("Name"), turn.field("Born")
    if not name or not born:
        return Say("Please give me a name and a date of birth; then I can screen the customer.")
    screened, asked = turn.last("screen_name"), turn.last("ask_user")
    if screened is None:
        return Say(
            f"I will compare {name} with the lists.", (Call("screen_name", {"name": name, "born": born}),)
        )
    if screened.result.get("match") != "partial":
        return Say(f"{name} is on none of the lists. The customer can be accepted.")
    return _ask(turn, screened.result) if asked is None else _conclude(name, asked)


def _ask(turn: Turn, entry: dict[str, str]) -> Say:
    year = "the same" if entry["same_year"] == "yes" else "another"
    question = (
        f"Is our customer {turn.field('Name')}, born {turn.field('Born')}, of {turn.field('Country')}, "
        f"the person on the {entry['list']} as {entry['listed_as']}, born {entry['born']}, since "
        f"{entry['since']}? The name is nearly the same, and the year of birth is {year}."
    )
    return Say(
        "There is a partial match, which I must not decide by myself. I will ask the compliance officer.",
        (Call("ask_user", {"question": question}),),
    )


def _conclude(name: str, asked: Outcome) -> Say:
    answer = asked.text.strip()
    quoted = f"The compliance officer answered: “{answer}”"
    if NO.search(answer):
        return Say(f"{quoted} So this is a different person. {name} can be accepted; the match was false.")
    if YES.search(answer):
        return Say(
            f"{quoted} So this is the listed person. {name} must not be accepted; the account stays blocked."
        )
    return Say(f"{quoted} That does not settle whether it is the same person, so {name} stays on hold.")


def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the agent."""
    return create_agent(
        get_model(script),
        tools=[screen_name, ask_user],
        system_prompt=SYSTEM_PROMPT,
        middleware=[
            Briefing(ScreeningState, write_briefing),
            HumanInTheLoopMiddleware(
                {
                    "ask_user": {
                        "allowed_decisions": ["respond"],
                        "description": "The agent goes on with your answer, word for word.",
                    },
                },
                interrupt_mode="per_call",
            ),
        ],
        state_schema=agent_state(ScreeningState),
        name="ask_officer",
    )
