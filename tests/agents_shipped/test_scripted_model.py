"""The scripted model behaves as a chat model does: it streams, calls tools, and claims no usage."""

from __future__ import annotations

import time
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from agents_runtime.agents import refunds
from agents_runtime.chat_model import Call, Say, ScriptedChatModel

TEXT = "One two  three\nfour."
CALLS = (Call("first", {"x": 1}), Call("second", {"y": ["ä", None, 0.5]}))


def _script(messages: Sequence[BaseMessage]) -> Say:
    return Say(TEXT, CALLS)


def _sum(chunks: Sequence[AIMessageChunk]) -> AIMessageChunk:
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    return total


def _check(answer: AIMessage) -> None:
    assert answer.text == TEXT
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [
        ("first", {"x": 1}),
        ("second", {"y": ["ä", None, 0.5]}),
    ]
    assert len({call["id"] for call in answer.tool_calls}) == 2
    assert answer.usage_metadata is None


def test_it_answers_at_once_when_nobody_streams() -> None:
    model = ScriptedChatModel(script=_script, delay=60)
    _check(model.invoke("hello"))


async def test_it_answers_on_an_event_loop() -> None:
    _check(await ScriptedChatModel(script=_script).ainvoke("hello"))


def test_it_streams_word_by_word() -> None:
    chunks = list(ScriptedChatModel(script=_script).stream("hello"))
    assert [chunk.text for chunk in chunks if chunk.text] == ["One ", "two  ", "three\n", "four."]
    _check(_sum(chunks))


async def test_it_streams_on_an_event_loop() -> None:
    model = ScriptedChatModel(script=_script)
    _check(_sum([chunk async for chunk in model.astream("hello")]))


def test_streaming_takes_its_time() -> None:
    started = time.monotonic()
    list(ScriptedChatModel(script=_script, delay=0.01).stream("hello"))
    assert time.monotonic() - started >= 0.06


def test_call_ids_are_new_in_each_turn_and_the_same_when_a_turn_is_repeated() -> None:
    model = ScriptedChatModel(script=_script)
    first = [HumanMessage("hello", id="1")]
    second = [*first, model.invoke(first), HumanMessage("again", id="2")]
    ids = [[call["id"] for call in model.invoke(messages).tool_calls] for messages in (first, first, second)]
    assert ids[0] == ids[1]
    assert not set(ids[0]) & set(ids[2])


def test_a_run_streams_tokens_to_whoever_listens(home: object) -> None:
    graph = refunds.make_graph().copy(update={"checkpointer": InMemorySaver()})
    streamed = graph.stream(
        {"order_id": "A-1043", "complaint": "Broken."},
        {"configurable": {"thread_id": "t"}},
        stream_mode="messages",
    )
    words = [message.text for message, _ in streamed if isinstance(message, AIMessageChunk) and message.text]
    assert words[:4] == ["I ", "will ", "look ", "up "]
    assert len(words) > 20
