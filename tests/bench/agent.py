"""The agent that every subject measures: one model turn, one gated call that does nothing, one reply."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

CALL = {
    "type": "tool_call",
    "name": "send_money",
    "args": {"to": "garden club", "amount": 120},
    "id": "call_1",
}


@tool
def send_money(to: str, amount: int) -> str:
    """Send money."""
    return f"sent {amount} to {to}"


class Payer(BaseChatModel):
    """Calls the tool once, and then says that it did."""

    @property
    def _llm_type(self) -> str:
        return "payer"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Take any tools."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        has_called = isinstance(messages[-1], ToolMessage)
        said = AIMessage("It is sent.") if has_called else AIMessage("I shall send it.", tool_calls=[CALL])
        return ChatResult(generations=[ChatGeneration(message=said)])


def one_gate() -> Any:
    """Return the agent, as its author would write it."""
    allowed: Any = {"send_money": {"allowed_decisions": ["approve", "edit", "reject"]}}
    gate = HumanInTheLoopMiddleware(interrupt_on=allowed, interrupt_mode="per_call")
    return create_agent(Payer(), [send_money], middleware=[gate])
