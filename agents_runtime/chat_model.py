"""The chat model of the shipped agents: a script, or a real model that ``COUNTERSIGN_MODEL`` names.

Lives here: choosing between them, and the scripted model itself. A script is a plain function of the messages
so far, so that it reacts to what people decided, as a model does. What an agent says is in its own file.

The scripted model streams word by word and reports no token usage, because it used none.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCall, ToolCallChunk, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from typing_extensions import override

WORD = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True)
class Call:
    """A tool that the script wants to call."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Say:
    """One turn of a script: what it says, and the tools it calls in that turn."""

    text: str
    calls: tuple[Call, ...] = ()


Script = Callable[[Sequence[BaseMessage]], Say]


def get_model(script: Script) -> BaseChatModel:
    """Return the model that ``COUNTERSIGN_MODEL=provider:model`` names, or one that follows the script."""
    if settings.COUNTERSIGN_MODEL:
        return init_chat_model(settings.COUNTERSIGN_MODEL)
    return ScriptedChatModel(script=script, delay=settings.COUNTERSIGN_SCRIPT_DELAY)


class ScriptedChatModel(BaseChatModel):
    """Answers as ``script`` says, ``delay`` seconds a word while it is streamed."""

    script: Script
    delay: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Accept the tools: the script knows which there are."""
        return self.bind(tools=tools, **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        said = self.script(messages)
        answer = AIMessage(content=said.text, tool_calls=_tool_calls(messages, said))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(messages, self.script(messages)):
            time.sleep(self.delay)
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(messages, self.script(messages)):
            await asyncio.sleep(self.delay)
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _chunks(messages: Sequence[BaseMessage], said: Say) -> Iterator[ChatGenerationChunk]:
    """Give the words, then the tool calls, then the end: the order in which real models stream."""
    for word in WORD.findall(said.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    for place, call in enumerate(_tool_calls(messages, said)):
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="", tool_call_chunks=[_call_chunk(place, call)])
        )
    yield ChatGenerationChunk(message=AIMessageChunk(content="", chunk_position="last"))


def _tool_calls(messages: Sequence[BaseMessage], said: Say) -> list[ToolCall]:
    return [
        tool_call(name=call.tool, args=dict(call.arguments), id=_call_id(messages, place))
        for place, call in enumerate(said.calls)
    ]


def _call_chunk(place: int, call: ToolCall) -> ToolCallChunk:
    return tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=place)


def _call_id(messages: Sequence[BaseMessage], place: int) -> str:
    """Return an id that is new in every turn, but the same when a turn is done again after a crash."""
    history = json.dumps([place, [[message.id, message.text] for message in messages]])
    return f"call_{hashlib.sha256(history.encode()).hexdigest()[:24]}"
