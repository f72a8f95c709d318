"""Records clean-up: goes through what a nightly check found and tidies the customer records.

In one turn it deletes, merges and archives (three gated calls, decided one by one) and reads a record, which
nobody need be asked about. Then it tells what was really done.
"""

from __future__ import annotations

from collections.abc import Sequence
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

SYSTEM_PROMPT = """You keep the customer records of a payment company tidy. Find the problem records
first. Then, in one turn, call everything that is needed: delete_record for records that must not be kept,
merge_records for two records of one person, archive_record for records that are only old, and read_record
where you are not sure. A person decides on each change by itself. Do not ask again for what was refused.
At the end, say of each change whether it was done, done in another way, or refused and why."""

RecordId = Annotated[str, Field(description="Record number, such as C-20417.", pattern=r"^C-\d{5}$")]
Scope = Literal["nightly_check", "closed_accounts"]
Retention = Literal["1 year", "5 years", "10 years"]

PROBLEMS: dict[str, dict[str, str]] = {
    "nightly_check": {
        "delete": "C-20417",
        "keep": "C-18302",
        "duplicate": "C-20988",
        "archive": "C-11764",
        "unclear": "C-19550",
    },
    "closed_accounts": {
        "delete": "C-14006",
        "keep": "C-15091",
        "duplicate": "C-15377",
        "archive": "C-10288",
        "unclear": "C-16610",
    },
}
RECORDS: dict[str, dict[str, str]] = {
    "C-19550": {
        "name": "T. Lindqvist",
        "opened": "2019-03-02",
        "last_order": "2025-07-30",
        "status": "active",
    },
    "C-16610": {"name": "Orla Byrne", "opened": "2016-10-11", "last_order": "2021-02-14", "status": "closed"},
}


class CleanupState(BriefedState):
    """What the agent is asked with."""

    scope: Annotated[Scope, Field(description="Which list of findings to work through.")]
    ticket: Annotated[str, Field(description="The ticket that asks for the clean-up.", min_length=1)]


@tool
def find_problem_records(scope: Scope) -> dict[str, str]:
    """List the records that the check found: one to delete, two of one person, an old one, an unclear one."""
    return PROBLEMS[scope]


@tool
def read_record(record_id: RecordId) -> dict[str, str]:
    """Read a record without changing it."""
    return RECORDS.get(record_id) or {"error": f"There is no record {record_id}."}


@tool
def delete_record(
    record_id: RecordId,
    reason: Annotated[str, Field(description="Why it must not be kept.", min_length=1)],
    runtime: ToolRuntime,
    keep_invoices: Annotated[bool, Field(description="Keep invoices for the tax office.")] = True,
) -> str:
    """Delete a customer record for good."""
    record("delete_record", runtime, record_id=record_id, reason=reason, keep_invoices=keep_invoices)
    return f"{record_id} was deleted; invoices were {'kept' if keep_invoices else 'deleted too'}."


@tool
def merge_records(
    keep: RecordId,
    duplicate: RecordId,
    runtime: ToolRuntime,
    take_from_duplicate: Annotated[
        list[Literal["phone", "address", "notes"]], Field(description="What to copy over.")
    ],
) -> str:
    """Merge a duplicate into the record to keep."""
    record("merge_records", runtime, keep=keep, duplicate=duplicate, take_from_duplicate=take_from_duplicate)
    return f"{duplicate} was merged into {keep}."


@tool
def archive_record(record_id: RecordId, retention: Retention, runtime: ToolRuntime) -> str:
    """Move a record to the archive, where it can be read but not used."""
    record("archive_record", runtime, record_id=record_id, retention=retention)
    return f"{record_id} was archived for {retention.replace('_', ' ')}."


delete_record.metadata = {"title": "Delete record {record_id}"}
merge_records.metadata = {"title": "Merge record {duplicate} into {keep}"}
archive_record.metadata = {"title": "Archive record {record_id} for {retention}"}

# What the script calls its changes when it tells what came of them.
CHANGES = {"delete_record": "Deletion", "merge_records": "Merge", "archive_record": "Archiving"}


def write_briefing(state: CleanupState) -> str:
    """Return the message that the form stands for."""
    return f"Clean up the customer records.\nScope: {state['scope']}\nTicket: {state['ticket']}"


def script(messages: Sequence[BaseMessage]) -> Say:
    """Say what comes next: find, change, and tell what was done."""
    turn = Turn.read(messages)
    scope, found = turn.field("Scope"), turn.last("find_problem_records")
    if scope not in PROBLEMS:
        return Say("Please name the list of findings to work through, and the ticket that asks for it.")
    if found is None:
        text = f"I will go through the findings of the {scope.replace('_', ' ')}."
        return Say(text, (Call("find_problem_records", {"scope": scope}),))
    done = [outcome for outcome in turn.outcomes if outcome.tool in CHANGES]
    return _conclude(turn, done) if done else _propose(turn, found.result)


def _propose(turn: Turn, found: dict[str, str]) -> Say:
    text = (
        f"The check found one record to delete ({found['delete']}), two of the same person "
        f"({found['duplicate']} and {found['keep']}) and one that has long been inactive "
        f"({found['archive']}). I propose a change for each, and read {found['unclear']}, which is unclear."
    )
    reason = f"The customer asked for erasure in ticket {turn.field('Ticket') or 'unknown'}."
    return Say(
        text,
        (
            Call("delete_record", {"record_id": found["delete"], "reason": reason, "keep_invoices": True}),
            Call(
                "merge_records",
                {
                    "keep": found["keep"],
                    "duplicate": found["duplicate"],
                    "take_from_duplicate": ["phone", "address"],
                },
            ),
            Call("archive_record", {"record_id": found["archive"], "retention": "5 years"}),
            Call("read_record", {"record_id": found["unclear"]}),
        ),
    )


def _conclude(turn: Turn, changes: Sequence[Outcome]) -> Say:
    lines = [f"- {CHANGES[change.tool]}: {_told(change)}" for change in changes]
    read = turn.last("read_record")
    if read and "name" in read.result:
        lines.append(
            f"- {read.proposed['record_id']} belongs to {read.result['name']} and was left as it is."
        )
    refused = sum(change.was_rejected for change in changes)
    done = len(changes) - refused
    return Say(f"{done} of {len(changes)} changes were made, {refused} refused.\n" + "\n".join(lines))


def _told(change: Outcome) -> str:
    if change.was_rejected:
        return f"refused, because: {change.reason}." if change.reason else "refused; no reason was given."
    if not change.changed:
        return change.text
    return f"{change.text} The reviewer changed: {', '.join(sorted(change.changed))}."


TOOLS = [find_problem_records, read_record, delete_record, merge_records, archive_record]


def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the agent."""
    return create_agent(
        get_model(script),
        tools=TOOLS,
        system_prompt=SYSTEM_PROMPT,
        middleware=review_policy(
            TOOLS,
            high=[delete_record, merge_records, archive_record],
            low=[find_problem_records, read_record],
            rules={
                "delete_record": ReviewRule(description="A deleted record cannot be brought back."),
                "merge_records": ReviewRule(description="Merged records cannot be taken apart again."),
                "archive_record": ReviewRule(description="An archived record can still be read.", risk="low"),
            },
            middleware=[Briefing(CleanupState, write_briefing)],
        ),
        state_schema=agent_state(CleanupState),
        name="records_cleanup",
    )
