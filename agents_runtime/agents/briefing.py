"""From the fields of a form to the message that a model reads.

An agent that takes ``{"order_id": ..., "complaint": ...}`` is easier to start than one that takes a list of
messages. This middleware writes the message; the fields stay in the state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NotRequired, cast

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.graph import add_messages
from langgraph.runtime import Runtime
from typing_extensions import override


class BriefedState(AgentState[Any]):
    """A state whose messages may be left out of the input, because the briefing writes the first one."""

    messages: NotRequired[Annotated[list[AnyMessage], add_messages]]  # type: ignore[misc]


def agent_state(schema: type[BriefedState]) -> type[AgentState[Any]]:
    """Return the schema as ``create_agent`` takes it: a type checker minds messages that may be missing."""
    return cast("type[AgentState[Any]]", schema)


class Briefing(AgentMiddleware[Any, Any, Any]):
    """Puts what ``write`` makes of the state before the model, once for each new input."""

    def __init__(self, state_schema: type[BriefedState], write: Callable[[Any], str]) -> None:
        super().__init__()
        self.state_schema = state_schema
        self._write = write

    @override
    def before_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Add the message, unless the input was a message itself."""
        messages = state.get("messages")
        if messages and isinstance(messages[-1], HumanMessage):
            return None
        return {"messages": [HumanMessage(self._write(state))]}
