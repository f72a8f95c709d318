"""The gate: it stands before every tool of every run, and no gated tool passes without its decision.

It is a LangChain callback in each run's config, so that it also stands before the tools of graphs that their
authors wrote without knowing of it, sync and async, in subagents too. To stop a tool it raises a
``GraphBubbleUp``: nothing has run, nothing is stored, and the pause stays as it was. To give the result of a
call that ran before, it raises the library's own command to the current task: the task ends with that result.

It is a synchronous handler on purpose: from an asynchronous one, the library swallows what a sync tool's
start raises. On an event loop it does its database work in a thread and waits for it: a few milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import xxhash
from django.db import connection
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp, ParentCommand, is_invalid_resume
from langgraph.types import Command

from agents_runtime import ledger
from agents_runtime.canonical import Json, encode, to_json
from agents_runtime.checkpointer import serializer
from agents_runtime.messages import is_message, plain
from agents_runtime.states import ExecutionStatus
from agents_runtime.thread_state import GateStop

MAX_ANSWERS_IN_A_TASK = 50
NOT_AGAIN = "It ran before, and its result cannot be given again."
EDITED = (
    "Note: a human reviewer replaced this tool call before it ran. It ran with these arguments: {args}.\n"
)
# Says nothing of how a tool ended: it was torn down from outside.
TORN_DOWN = (asyncio.CancelledError, KeyboardInterrupt, SystemExit)

Result = TypeVar("Result")
_database_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="gate")


class ToolStopped(GraphBubbleUp):
    """A tool was stopped before its code ran, or its end could not be recorded."""


class Gate(BaseCallbackHandler):
    """The gate of one step of one run."""

    raise_error = True
    run_inline = True

    def __init__(self, run_id: UUID, epoch: int) -> None:
        self.run = run_id
        self.epoch = epoch
        self.stops: list[GateStop] = []
        self._open: dict[UUID, int] = {}
        self._lock = threading.Lock()

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        tool_call_id: str | None = None,
        **_: Any,
    ) -> None:
        """Let the tool run, stop it, or give the result it had before."""
        namespace = str((metadata or {}).get("langgraph_checkpoint_ns") or "")
        call = ledger.Call(
            run_id=self.run,
            epoch=self.epoch,
            tool=str(serialized.get("name") or ""),
            tool_call_id=str(tool_call_id or ""),
            namespace=namespace,
            arguments=to_json(input_str if inputs is None else inputs),
            interrupt_ids=interrupt_ids(namespace),
        )
        answer = self._ask(call)
        if isinstance(answer, ledger.Started):
            with self._lock:
                self._open[run_id] = answer.execution_id
        if isinstance(answer, GateStop):
            self._stop(answer)
        if isinstance(answer, ledger.Finished):
            self._give_again(call, answer)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Record the result before the graph stores it."""
        self._close(run_id, lambda: _ended(output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Record that it raised, or that it paused itself."""
        if not isinstance(error, TORN_DOWN):
            self._close(run_id, lambda: _raised(error))

    def _ask(self, call: ledger.Call) -> ledger.Started | ledger.Finished | GateStop | None:
        try:
            return _in_database(lambda: ledger.open_call(call))
        except Exception as problem:
            logging.getLogger(__name__).exception("the gate could not ask the ledger")
            return GateStop("refused", call.tool, f"The ledger could not be asked: {problem}")

    def _stop(self, stop: GateStop) -> NoReturn:
        self.stops.append(stop)
        raise ToolStopped(stop.reason)

    def _give_again(self, call: ledger.Call, answer: ledger.Finished) -> None:
        result = _stored_result(call, answer)
        if result is None:
            self._stop(GateStop("refused", call.tool, NOT_AGAIN))
        raise ParentCommand(Command(graph=call.namespace, **result))

    def _close(self, tool_run: UUID, describe: Callable[[], dict[str, Any]]) -> None:
        with self._lock:
            execution_id = self._open.pop(tool_run, None)
        if execution_id is None:
            return
        try:
            ending = describe()
            _in_database(lambda: ledger.close_call(execution_id, epoch=self.epoch, **ending))
        except Exception as problem:
            logging.getLogger(__name__).exception("the end of a tool could not be recorded")
            self.stops.append(
                GateStop("in_doubt", "", f"The end of the tool could not be recorded: {problem}")
            )
            raise ToolStopped("The end of the tool could not be recorded.") from problem


def interrupt_ids(namespace: str) -> list[str]:
    """Return the ids of the interrupts that the task of a namespace may have raised, latest first."""
    later = (f"{namespace}|{answered}" for answered in range(MAX_ANSWERS_IN_A_TASK, 0, -1))
    return [xxhash.xxh3_128_hexdigest(name.encode()) for name in (*later, namespace)]


def _in_database(work: Callable[[], Result]) -> Result:
    """Do database work of a tool's thread, and give its connection back to the pool."""

    def and_give_back() -> Result:
        try:
            return work()
        finally:
            connection.close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return and_give_back()
    return _database_threads.submit(and_give_back).result()


def _ended(output: Any) -> dict[str, Any]:
    return {
        "status": ExecutionStatus.SUCCEEDED,
        "result": encode(plain(output)),
        "replay": serializer().dumps_typed(output),
    }


def _raised(error: BaseException) -> dict[str, Any]:
    if isinstance(error, ParentCommand):
        return _ended(error.args[0])
    if isinstance(error, GraphBubbleUp) or is_invalid_resume(error):
        return {"status": ExecutionStatus.SUSPENDED}
    return {"status": ExecutionStatus.RAISED, "error": f"{type(error).__name__}: {error}"}


def _stored_result(call: ledger.Call, answer: ledger.Finished) -> dict[str, Any] | None:
    """Return what the task ends with, as the fields of a command; None if it cannot be made again."""
    if not call.tool_call_id:
        return None
    if answer.replay is None:
        return {"update": {"messages": [_asserted(call, answer)]}}
    result = serializer().loads_typed((answer.replay_type, answer.replay))
    if isinstance(result, ToolMessage):
        return {"update": {"messages": [_noted(result, answer.edited)]}}
    if isinstance(result, Command) and result.graph is None:
        return {"update": result.update, "goto": result.goto}
    return None


def _asserted(call: ledger.Call, answer: ledger.Finished) -> ToolMessage:
    told = answer.asserted
    content = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
    return _noted(ToolMessage(content, tool_call_id=call.tool_call_id, name=call.tool), answer.edited)


def _noted(message: ToolMessage, edited: Json) -> ToolMessage:
    """Tell the model that a reviewer changed the call, as the library does for a call that runs."""
    if edited is None or not isinstance(message.content, str) or not is_message(message):
        return message
    note = EDITED.format(args=json.dumps(edited, ensure_ascii=False))
    return message.model_copy(update={"content": f"{note}\n{message.content}"})
