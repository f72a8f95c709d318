"""Reading chat messages without knowing their classes: text, tool calls, and a plain form for display.

Lives here: duck-typed readers, so that rooms without LangChain can read a graph's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents_runtime.canonical import Json, to_json

SHOWN = ("name", "tool_calls", "tool_call_id", "status", "id")


def messages_of(values: object) -> Sequence[object]:
    """Return the messages in a graph's values; empty where it keeps none."""
    found = values.get("messages") if isinstance(values, Mapping) else getattr(values, "messages", None)
    return found if isinstance(found, (list, tuple)) else ()


def text_of(message: object) -> str:
    """Return the text of a message, whichever way its content is stored."""
    content = getattr(message, "content", "")
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return ""
    parts = (part if isinstance(part, str) else _block_text(part) for part in content)
    return "".join(parts)


def tool_calls_of(message: object) -> Sequence[Mapping[str, Any]]:
    """Return the tool calls of a message; empty for anything but a model's."""
    found = getattr(message, "tool_calls", None)
    return found if isinstance(found, (list, tuple)) else ()


def unanswered_calls(messages: Sequence[object]) -> list[Mapping[str, Any]]:
    """Return the tool calls of the model's last turn that no tool message answers."""
    turns = [place for place, message in enumerate(messages) if tool_calls_of(message)]
    if not turns:
        return []
    answered = {getattr(message, "tool_call_id", None) for message in messages[turns[-1] + 1 :]}
    return [call for call in tool_calls_of(messages[turns[-1]]) if call.get("id") not in answered]


def is_message(value: object) -> bool:
    """Say whether a value is a chat message."""
    return hasattr(value, "content") and isinstance(getattr(value, "type", None), str)


def plain(value: object) -> Json:
    """Return a graph's values as JSON, with messages as small mappings instead of tagged objects."""
    if is_message(value):
        return _plain_message(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return to_json(value)


def _plain_message(message: Any) -> Json:
    shown = {name: getattr(message, name, None) for name in SHOWN}
    filled = {name: to_json(item) for name, item in shown.items() if item}
    return {"type": str(message.type), "content": to_json(message.content), **filled}


def _block_text(block: object) -> str:
    if isinstance(block, Mapping) and block.get("type") == "text":
        return str(block.get("text", ""))
    return ""
