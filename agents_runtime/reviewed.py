"""Reviewed tools: opt-in middleware for agent authors. It works with the gate that every run has anyway.

The gate (``gate``) stands before every tool of every run, whether an agent uses this or not, and alone keeps
the ledger. Alone it stops calls that nobody allowed, and records every attempt. Where a task is one tool
call, as in agents of ``create_agent`` or in a ``ToolNode`` whose turn has one, it also gives stored and
asserted results again without a run.

Only with this middleware:

* stored and asserted results are given again in any ``ToolNode``, also one that runs several calls in one
  task (``ToolNode(tools, wrap_tool_call=reviewed.wrap_tool_call)``), and results that are lists or commands
  to a parent graph; they pass other middleware like any result, and edits are told in the library's words;
* a reviewed tool runs in a run of the product only. Whoever resumes the graph by hand, or calls it from a raw
  thread, where no gate stands, is refused before the tool's code;
* the card shows what the agent said around the call in subagents too, and knows a batch's call by its id.

It is a subclass of LangChain's ``HumanInTheLoopMiddleware`` and keeps its name, so that it takes its place in
agents that others build, and so that runs that paused under the library's own go on under this one.

Also here: ``idempotency_key`` for tools, and ``rehearsal`` for authors' own tests. ``policy.review_policy``
makes this middleware from tiers of risk.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain.agents.middleware.human_in_the_loop import ActionRequest, InterruptMode, ReviewConfig
from langchain.agents.middleware.types import AgentState, ToolCallRequest
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from agents_runtime.canonical import Json
from agents_runtime.gate import (
    ResultGiven,
    ResultTaker,
    ToolStopped,
    current_call_key,
    standing_gate,
    taking_results,
)
from agents_runtime.listings import Hints, problem_with
from agents_runtime.messages import messages_of, text_of, tool_calls_of
from agents_runtime.payloads import REVIEWED_CONTEXT

NO_RUN = (
    "{tool} is reviewed: it runs in a run of Countersign only, with the decision that is recorded there. "
    "This graph was called by hand, or in a thread that does not know its run. Tests use rehearsal()."
)
NO_CALL = "There is no tool call of a run here: an idempotency key exists only while a tool runs in one."

Answer = ToolMessage | Command[Any]
_rehearsal: ContextVar[bool] = ContextVar("countersign_rehearsal", default=False)


class ReviewedTools(HumanInTheLoopMiddleware[Any, Any, Any]):
    """The library's middleware, with stored results given again and without tools outside of a run.

    Takes what ``HumanInTheLoopMiddleware`` takes, but asks for each call by itself unless told otherwise.
    ``hints``: tool -> what its requests' cards say of risk, queue and expiry where no policy of the
    organisation does. ``harmless``: tool -> errors after which nothing has happened, so that a retry
    middleware behind this one may try again without a person. Raises ``ValueError`` if nothing would be
    gated, or if a hint belongs to no gate.
    """

    def __init__(
        self,
        interrupt_on: Mapping[str, bool | InterruptOnConfig],
        *,
        interrupt_mode: InterruptMode = "per_call",
        hints: Mapping[str, Hints] | None = None,
        harmless: Mapping[str, tuple[type[Exception], ...]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(dict(interrupt_on), interrupt_mode=interrupt_mode, **options)
        self.hints = dict(hints or {})
        self.harmless = dict(harmless or {})
        if not self.interrupt_on:
            raise ValueError("This middleware gates no tool: name at least one.")
        for tool, hint in self.hints.items():
            problem = problem_with(hint) if tool in self.interrupt_on else "hints belong to a gated tool."
            if problem:
                raise ValueError(f"{tool}: {problem}")

    @property
    def name(self) -> str:
        """The library's own name: agents know and replace this middleware by it."""
        return HumanInTheLoopMiddleware.__name__

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]
    ) -> Answer:
        """Ask, then let the gate decide: run the tool, give its stored result, or stop."""

        def run(allowed: ToolCallRequest) -> Answer:
            with self._before_the_gate(allowed) as taker:
                try:
                    return handler(allowed)
                except ResultGiven as given:
                    return _taken(given, taker)

        return super().wrap_tool_call(request, run)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """Do the same on an event loop."""

        async def run(allowed: ToolCallRequest) -> Answer:
            with self._before_the_gate(allowed) as taker:
                try:
                    return await handler(allowed)
                except ResultGiven as given:
                    return _taken(given, taker)

        return await super().awrap_tool_call(request, run)

    @contextmanager
    def _before_the_gate(self, request: ToolCallRequest) -> Iterator[ResultTaker]:
        """Refuse a reviewed call where no gate stands; else say that its stored result can be taken here."""
        tool = request.tool_call["name"]
        if standing_gate() is None and tool in self.interrupt_on and not _rehearsal.get():
            raise ToolStopped(NO_RUN.format(tool=tool))
        metadata = request.runtime.config.get("metadata") or {}
        namespace = str(metadata.get("langgraph_checkpoint_ns") or "")
        call_id = str(request.tool_call["id"] or "")
        with taking_results(ResultTaker(namespace, call_id, self.harmless.get(tool, ()))) as taker:
            yield taker

    def _create_action_and_config(
        self,
        tool_call: ToolCall,
        config: InterruptOnConfig,
        state: AgentState[Any],
        runtime: Runtime[Any],
    ) -> tuple[ActionRequest, ReviewConfig]:
        """Add what only this place sees: a subagent's messages are in no state that the product can read."""
        action, review = super()._create_action_and_config(tool_call, config, state, runtime)
        told: Any = {**action, REVIEWED_CONTEXT: _context(tool_call, state)}
        return told, review

    def _tool_approval_request(self, request: ToolCallRequest, config: InterruptOnConfig) -> Any:
        told = super()._tool_approval_request(request, config)
        return {**told, REVIEWED_CONTEXT: _context(request.tool_call, request.state)}


@contextmanager
def rehearsal() -> Iterator[None]:
    """Let reviewed tools run without a run, for an author's own tests on a checkpointer in memory.

    Nothing is recorded, and a call's idempotency key is made up anew each time. In a run it changes nothing:
    the gate stands there all the same.
    """
    token = _rehearsal.set(True)
    try:
        yield
    finally:
        _rehearsal.reset(token)


def idempotency_key() -> str:
    """Return what names the tool call that is running here, for whoever carries it out: 64 hex digits.

    Call it in a tool's own code, sync or async, and hand it on, as a payment's ``Idempotency-Key`` say.
    It is the same for every attempt at the same decided call, whichever worker makes it and whatever died
    before, and no two calls share one. Raises ``LookupError`` outside of a tool of a run.
    """
    if key := current_call_key():
        return key
    if _rehearsal.get():
        return secrets.token_hex(32)
    raise LookupError(NO_CALL)


def _taken(given: ResultGiven, taker: ResultTaker) -> Answer:
    if given.taker is not taker:
        raise given
    result: Answer = given.result
    return result


def _context(tool_call: ToolCall, state: Any) -> Json:
    """Return where the call stands in its turn and what the agent said there; untrusted."""
    for message in reversed(messages_of(state)):
        if not isinstance(message, AIMessage):
            continue
        for place, call in enumerate(tool_calls_of(message)):
            if call.get("id") == tool_call["id"]:
                return {"tool_call_id": tool_call["id"] or "", "place": place, "said": text_of(message)}
    return {"tool_call_id": tool_call["id"] or "", "place": 0, "said": ""}
