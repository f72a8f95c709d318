"""``COUNTERSIGN_MODEL`` puts a real chat model in the scripts' place; here it is a server on the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pytest_django.fixtures import Settings

from agents_runtime.agents import records_cleanup, refunds, vendor_payment
from agents_runtime.reviewed import rehearsal
from tests.agents_shipped.conversation import Conversation
from tests.agents_shipped.model_server import MODEL, Answer, ModelServer, model_server

REFUND = {"order_id": "A-1043", "amount": "12.00", "currency": "EUR", "reason": "late"}
LOOKUP = Answer("Let me look.", (("call_a", "lookup_order", {"order_id": "A-1043"}),))
PROPOSAL = Answer("I propose a refund.", (("call_b", "issue_refund", REFUND),))
INPUT = {"order_id": "A-1043", "complaint": "It came late."}


@pytest.fixture
def provider(home: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A provider that the shipped agents are told to use."""
    with model_server() as server:
        settings.COUNTERSIGN_MODEL = f"openai:{MODEL}"
        monkeypatch.setenv("OPENAI_BASE_URL", server.address)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
        yield server


def test_the_refund_runs_on_the_real_model_from_lookup_to_payment(provider: ModelServer, home: Path) -> None:
    provider.answers += [LOOKUP, PROPOSAL, Answer("Paid.")]
    run = Conversation(refunds.make_graph(), home=home)
    run.give(INPUT)
    assert run.proposed("issue_refund") == REFUND
    assert run.effects == []
    run.approve("issue_refund")
    assert [tool for tool, _ in run.effects] == ["issue_refund"]
    assert run.said == "Paid."
    assert provider.keys == ["Bearer sk-not-a-key"] * 3


def test_the_model_gets_prompt_task_tools_and_the_looked_up_order(provider: ModelServer, home: Path) -> None:
    provider.answers += [LOOKUP, PROPOSAL]
    Conversation(refunds.make_graph(), home=home).give(INPUT)
    first, second = provider.requests
    assert first["model"] == MODEL
    assert first["messages"][0] == {"role": "system", "content": refunds.SYSTEM_PROMPT}
    assert "It came late." in first["messages"][1]["content"]
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in first["tools"]}
    assert set(tools) == {"lookup_order", "issue_refund", "offer_store_credit"}
    assert "runtime" not in tools["issue_refund"]["properties"]
    assert second["messages"][-1]["role"] == "tool"
    assert "Jo Brandt" in second["messages"][-1]["content"]


def test_the_model_is_told_of_a_refusal_and_can_take_another_path(provider: ModelServer, home: Path) -> None:
    credit = {"order_id": "A-1043", "amount": "12.00", "currency": "EUR", "valid_months": 12}
    provider.answers += [
        LOOKUP,
        PROPOSAL,
        Answer("Then credit.", (("call_c", "offer_store_credit", credit),)),
    ]
    run = Conversation(refunds.make_graph(), home=home)
    run.give(INPUT)
    run.reject("issue_refund", "Too much.")
    told: dict[str, Any] = provider.requests[-1]["messages"][-1]
    assert told["role"] == "tool"
    assert told["content"].endswith("with reason: Too much.")
    assert run.proposed("offer_store_credit") == credit
    assert run.effects == []


def test_several_calls_of_one_turn_pause_one_by_one(provider: ModelServer, home: Path) -> None:
    provider.answers.append(
        Answer(
            "All at once.",
            (
                ("call_1", "delete_record", {"record_id": "C-20417", "reason": "Erasure."}),
                ("call_2", "archive_record", {"record_id": "C-11764", "retention": "1 year"}),
                ("call_3", "read_record", {"record_id": "C-19550"}),
            ),
        )
    )
    run = Conversation(records_cleanup.make_graph(), home=home)
    run.give({"scope": "nightly_check", "ticket": "T-1"})
    assert set(run.pauses) == {"delete_record", "archive_record"}


def test_tokens_and_tool_calls_are_streamed(provider: ModelServer) -> None:
    provider.answers += [LOOKUP, PROPOSAL]
    graph = refunds.make_graph().copy(update={"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "t"}}
    streamed = [message for message, _ in graph.stream(INPUT, config, stream_mode="messages")]
    words = [one.text for one in streamed if isinstance(one, AIMessageChunk) and one.text]
    assert words == ["Let ", "me ", "look. ", "I ", "propose ", "a ", "refund. "]
    assert all(request["stream"] for request in provider.requests)
    (pause,) = graph.get_state(config).interrupts
    assert pause.value["args"] == REFUND


def test_an_async_agent_streams_from_the_real_model_too(provider: ModelServer, home: Path) -> None:
    provider.answers += [
        Answer("Looking.", (("call_a", "look_up_invoice", {"invoice": "V-7790"}),)),
        Answer(calls=(("call_b", "pay_vendor", _payment()),)),
        Answer("Done."),
    ]
    graph = vendor_payment.make_graph().copy(update={"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "t"}}

    async def run() -> list[str]:
        words = [text async for text in _words({"invoice": "V-7790"})]
        (pause,) = (await graph.aget_state(config)).interrupts
        return words + [text async for text in _words(Command(resume={pause.id: {"type": "approve"}}))]

    async def _words(given: Any) -> Any:
        async for message, _ in graph.astream(given, config, stream_mode="messages"):
            if isinstance(message, AIMessageChunk) and message.text:
                yield message.text

    with rehearsal():
        assert asyncio.run(run()) == ["Looking. ", "Done. "]
    assert (home / "demo-effects.jsonl").read_text().count("\n") == 1


def _payment() -> dict[str, Any]:
    invoice = vendor_payment.INVOICES["V-7790"]
    return {
        "invoice": "V-7790",
        "vendor": invoice["vendor"],
        "amount": invoice["open_amount"],
        "currency": invoice["currency"],
        "destination": invoice["destination"],
    }
