"""A chat model that says and calls what the first message tells it to, turn by turn.

The first message is the JSON of a list of turns: ``{"say": text, "calls": [{"name", "args", "id"?}]}``.
When the turns are over it says ``done: `` and what the tools answered.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult


class Playbook(BaseChatModel):
    """Stateless: what it says next depends on the messages alone."""

    @property
    def _llm_type(self) -> str:
        return "playbook"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Take any tools; the script names them."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=next_message(messages))])


class Talker(Playbook):
    """Speaks word by word, a few milliseconds apart."""

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for word in str(next_message(messages).content).split(" "):
            time.sleep(0.004)
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word + " "))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk


def next_message(messages: list[BaseMessage]) -> AIMessage:
    """Return the message of the next scripted turn."""
    start = max(place for place, message in enumerate(messages) if message.type == "human")
    turns = json.loads(str(messages[start].content))
    turn = sum(1 for message in messages[start:] if isinstance(message, AIMessage))
    if turn >= len(turns):
        answers = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
        return AIMessage("done: " + " | ".join(answers))
    played = turns[turn]
    calls = [
        {
            "type": "tool_call",
            "name": call["name"],
            "args": call["args"],
            "id": call.get("id", f"call_{turn}_{place}"),
        }
        for place, call in enumerate(played.get("calls", []))
    ]
    return AIMessage(played.get("say", ""), tool_calls=calls)
