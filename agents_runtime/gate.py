"""The gate: it stands before every tool of every run, and no gated tool passes without its decision.

It is a LangChain callback in each run's config, so that it also stands before the tools of graphs that their
authors wrote without knowing of it, sync and async, in subagents too; a context variable adds it where an
agent replaces its callbacks. To stop a tool it raises a ``GraphBubbleUp``: nothing has run, nothing is
stored, and the pause stays as it was.

To give the result of a call that ran before, or that a person says has happened, it needs a way to end the
call. Where the task is one tool call (agents of ``create_agent``, a ``ToolNode`` with one call) it raises the
library's own command to that task, which ends with the result. Any other task would lose what else it does,
so there the call is refused, unless the agent uses ``reviewed``: that middleware takes it and goes on.

It is a synchronous handler on purpose: from an asynchronous one, the library swallows what a sync tool's
start raises. On an event loop it does its database work in a thread and waits for it: a few milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import xxhash
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tracers.context import register_configure_hook
from langgraph.errors import GraphBubbleUp, ParentCommand, is_invalid_resume
from langgraph.types import Command

from agents_runtime import ledger
from agents_runtime.canonical import Json, digest, encode, to_json
from agents_runtime.checkpointer import serializer
from agents_runtime.lending import Loan, give_back
from agents_runtime.messages import is_message, messages_of, plain, tool_calls_of
from agents_runtime.models import ToolExecution
from agents_runtime.states import ExecutionStatus
from agents_runtime.thread_state import GateStop

MAX_ANSWERS_IN_A_TASK = 50
NOT_AGAIN = (
    "{tool} ran before, and its result cannot be given again here: its task does more than this one call. "
    "An agent that uses agents_runtime.reviewed can take it."
)
STEP_OVER = "The step that it was part of is over."
EDITED = (
    "Note: a human reviewer replaced this tool call before it ran. It ran with these arguments: {args}.\n"
)
# Says nothing of how a tool ended: it was torn down from outside.
TORN_DOWN = (asyncio.CancelledError, KeyboardInterrupt, SystemExit)

Result = TypeVar("Result")
_standing: ContextVar[Any] = ContextVar("countersign_gate", default=None)
_taker: ContextVar[ResultTaker | None] = ContextVar("countersign_result_taker", default=None)
_call_key: ContextVar[str] = ContextVar("countersign_call_key", default="")
# The library adds the handler that this variable holds to every set of callbacks made in its context.
register_configure_hook(_standing, inheritable=True)
_database_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="gate")


class ToolStopped(GraphBubbleUp):
    """A tool was stopped before its code ran, or its end could not be recorded."""


@dataclass(frozen=True, eq=False)
class ResultTaker:
    """Somebody around a call that can go on with a result instead of running it.

    ``harmless`` are the errors of which it knows that the call did nothing when it raises them.
    """

    namespace: str
    tool_call_id: str
    harmless: tuple[type[Exception], ...] = ()

    def is_of(self, call: ledger.Call) -> bool:
        """Say whether it stands around this call, and not around one that this call is part of."""
        return (self.namespace, self.tool_call_id) == (call.namespace, call.tool_call_id)


class ResultGiven(GraphBubbleUp):
    """Carries the result of a call that ran before, as the tool returned it, to whoever takes it."""

    def __init__(self, taker: ResultTaker, result: Any) -> None:
        super().__init__()
        self.taker, self.result = taker, result


class Gate(BaseCallbackHandler):
    """The gate of one step of one run."""

    raise_error = True
    run_inline = True
    # Of a model's turn it hears nothing; the library would write all of its messages out as one text for it.
    ignore_llm = ignore_chat_model = ignore_retriever = ignore_custom_event = True

    def __init__(self, run_id: UUID, epoch: int, *, tool_nodes: Collection[str] = ()) -> None:
        self.run = run_id
        self.epoch = epoch
        self._tool_nodes = tool_nodes
        self.stops: list[GateStop] = []
        self._open: dict[UUID, _Running] = {}
        self._one_call_tasks: dict[str, str] = {}
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._is_over = False
        self._loan = Loan()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Stand before every tool that is called within, whatever callbacks the agent gives it.

        What a step that was ended leaves behind begins nothing any more, and what is just beginning has
        begun: whoever settles the step then sees all of its attempts.
        """
        with self._loan.standing():
            token = _standing.set(self)
            try:
                yield
            finally:
                _standing.reset(token)
                with self._asking:
                    self._is_over = True

    def on_chain_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002  the library gives it by position
        inputs: Any,
        *,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Note the tasks that are one tool call and nothing else."""
        namespace = _namespace(metadata)
        is_tool_node = "|" not in namespace and (metadata or {}).get("langgraph_node") in self._tool_nodes
        if tool_call_id := _only_call(inputs) or (_only_call_of_turn(inputs) if is_tool_node else ""):
            self._one_call_tasks[namespace] = tool_call_id

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
        namespace = _namespace(metadata)
        call = ledger.Call(
            run_id=self.run,
            epoch=self.epoch,
            tool=str(serialized.get("name") or ""),
            tool_call_id=str(tool_call_id or ""),
            namespace=namespace,
            arguments=to_json(input_str if inputs is None else inputs),
            interrupt_ids=interrupt_ids(namespace),
        )
        answer = self.ask(call.tool, lambda: ledger.open_call(call))
        if isinstance(answer, ledger.Finished):
            self._give_again(call, answer)
        call_key = _ungated_key(call) if answer is None else answer.call_key
        execution = None if answer is None else answer.execution
        token, taker = _call_key.set(outside_key(self.run, call_key)), _taker.get()
        harmless = taker.harmless if taker is not None and taker.is_of(call) else ()
        with self._lock:
            self._open[run_id] = _Running(execution, token, harmless)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Record the result before the graph stores it."""
        self._close(run_id, lambda: ended(output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Record that it raised, or that it paused itself."""
        with self._lock:
            running = self._open.get(run_id)
        harmless = running.harmless if running else ()
        self._close(run_id, None if isinstance(error, TORN_DOWN) else lambda: _raised(error, harmless))

    def ask(self, tool: str, opens: Callable[[], ledger.Answer | GateStop]) -> ledger.Answer:
        """Ask the ledger; return its answer, or stop here if that is the answer or there is none."""
        with self._asking:  # one by one: in the database they would wait for the run's row
            answer = GateStop("stale", tool, STEP_OVER) if self._is_over else self._ask(tool, opens)
        if isinstance(answer, GateStop):
            self._stop(answer)
        return answer

    def _ask(self, tool: str, opens: Callable[[], ledger.Answer | GateStop]) -> ledger.Answer | GateStop:
        try:
            return in_database(lambda: self._loan.use(opens))
        except Exception as problem:
            logging.getLogger(__name__).exception("the gate could not ask the ledger")
            return GateStop("refused", tool, f"The ledger could not be asked: {problem}")

    def _stop(self, stop: GateStop) -> NoReturn:
        """Remember why, and stop what was about to run."""
        self.stops.append(stop)
        raise ToolStopped(stop.reason)

    def _give_again(self, call: ledger.Call, answer: ledger.Finished) -> NoReturn:
        taker = _taker.get()
        if taker is not None and taker.is_of(call):
            raise ResultGiven(taker, _result(call, answer))
        ending = _as_ending(call, answer) if self._is_whole_task(call) else None
        if ending is None:
            self._stop(GateStop("refused", call.tool, NOT_AGAIN.format(tool=call.tool)))
        raise ParentCommand(Command(graph=call.namespace, **ending))

    def _is_whole_task(self, call: ledger.Call) -> bool:
        return bool(call.tool_call_id) and self._one_call_tasks.get(call.namespace) == call.tool_call_id

    def _close(self, tool_run: UUID, describe: Callable[[], dict[str, Any]] | None) -> None:
        """Record the end of a call; ``describe`` is None where nobody can say how it ended."""
        with self._lock:
            running = self._open.pop(tool_run, None)
        if running is None:
            return
        running.leave()
        if running.execution is None or describe is None:
            give_back()
            return
        self.close(running.execution, describe)

    def close(self, execution: ToolExecution, describe: Callable[[], dict[str, Any]]) -> None:
        """Record how an attempt ended, or stop the run here: an end that nobody recorded is in doubt."""
        try:
            ending = describe()
            in_database(
                lambda: self._loan.use(lambda: ledger.close_call(execution, epoch=self.epoch, **ending))
            )
        except Exception as problem:
            logging.getLogger(__name__).exception("the end of a tool could not be recorded")
            self.stops.append(
                GateStop("in_doubt", "", f"The end of the tool could not be recorded: {problem}")
            )
            raise ToolStopped("The end of the tool could not be recorded.") from problem
        finally:
            give_back()


@dataclass(frozen=True)
class _Running:
    """A call between its start and its end; ``execution`` is None for one that is not gated."""

    execution: ToolExecution | None
    token: Token[str]
    harmless: tuple[type[Exception], ...]

    def leave(self) -> None:
        """Give the name of the call back, so that the next one in this thread does not carry it."""
        try:
            _call_key.reset(self.token)
        except ValueError:  # it ended in another context than it began in; that one is over
            _call_key.set("")


def standing_gate() -> Gate | None:
    """Return the gate of the run that this code is part of; None outside of one, and in a raw thread."""
    gate: Gate | None = _standing.get()
    return gate


@contextmanager
def taking_results(taker: ResultTaker) -> Iterator[ResultTaker]:
    """Say that whoever calls this can take the stored result of the call that it is about to make."""
    token = _taker.set(taker)
    try:
        yield taker
    finally:
        _taker.reset(token)


def current_call_key() -> str:
    """Return what names the tool call that is running here; "" outside of one."""
    return _call_key.get()


def outside_key(run_id: UUID, call_key: str) -> str:
    """Return 64 hex digits that name a call of a run to the outside world."""
    return digest([str(run_id), call_key])


@lru_cache(maxsize=256)
def interrupt_ids(namespace: str) -> Sequence[str]:
    """Return the ids of the interrupts that the task of a namespace may have raised, latest first."""
    later = (f"{namespace}|{answered}" for answered in range(MAX_ANSWERS_IN_A_TASK, 0, -1))
    return tuple(xxhash.xxh3_128_hexdigest(name.encode()) for name in (*later, namespace))


def in_database(work: Callable[[], Result]) -> Result:
    """Do database work of an agent's thread; on an event loop Django lets none be done."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return _database_threads.submit(work).result()


def ended(output: Any) -> dict[str, Any]:
    """Return how the ledger keeps a result: readable, and so that it can be given again."""
    return {
        "status": ExecutionStatus.SUCCEEDED,
        "result": encode(plain(output)),
        "replay": serializer().dumps_typed(output),
    }


def _raised(error: BaseException, harmless: tuple[type[Exception], ...]) -> dict[str, Any]:
    if isinstance(error, ParentCommand):
        return ended(error.args[0])
    if isinstance(error, GraphBubbleUp) or is_invalid_resume(error):
        return {"status": ExecutionStatus.SUSPENDED}
    return {
        "status": ExecutionStatus.RAISED,
        "error": f"{type(error).__name__}: {error}",
        "may_run_again": isinstance(error, harmless),
    }


def _namespace(metadata: dict[str, Any] | None) -> str:
    return str((metadata or {}).get("langgraph_checkpoint_ns") or "")


def _only_call(inputs: object) -> str:
    """Return the id of the tool call that a task gets as its whole input; "" if it gets anything else."""
    if isinstance(inputs, dict) and inputs.get("__type") == "tool_call_with_context":
        inputs = [inputs.get("tool_call")]
    if not (isinstance(inputs, list) and len(inputs) == 1 and isinstance(inputs[0], dict)):
        return ""
    return str(inputs[0].get("id") or "") if {"name", "args", "id"} <= inputs[0].keys() else ""


def _only_call_of_turn(inputs: object) -> str:
    """Return the id of the tool call that a tool node finds in the state; "" if it finds several."""
    message = next(iter(reversed(messages_of(inputs))), None)
    calls = tool_calls_of(message)
    return str(calls[0].get("id") or "") if len(calls) == 1 else ""


def _ungated_key(call: ledger.Call) -> str:
    """A call without an id is told apart by what it does."""
    own = call.tool_call_id or [call.tool, call.arguments]
    return digest([call.namespace, own])


def _result(call: ledger.Call, answer: ledger.Finished) -> Any:
    """Return what the tool returned, or a message with what a person said that it did."""
    if answer.replay is None:
        return _asserted(call, answer)
    return serializer().loads_typed((answer.replay_type, answer.replay))


def _as_ending(call: ledger.Call, answer: ledger.Finished) -> dict[str, Any] | None:
    """Return what the task ends with, as the fields of a command; None if it cannot be made again."""
    result = _result(call, answer)
    if isinstance(result, ToolMessage):
        return {"update": {"messages": [_noted(result, answer.edited)]}}
    if isinstance(result, Command) and result.graph is None:
        return {"update": result.update, "goto": result.goto}
    return None


def _asserted(call: ledger.Call, answer: ledger.Finished) -> ToolMessage:
    told = answer.asserted
    content = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
    return ToolMessage(content, tool_call_id=call.tool_call_id, name=call.tool)


def _noted(message: ToolMessage, edited: Json) -> ToolMessage:
    """Tell the model that a reviewer changed the call, as the library does for a call that runs."""
    if edited is None or not isinstance(message.content, str) or not is_message(message):
        return message
    note = EDITED.format(args=json.dumps(edited, ensure_ascii=False))
    return message.model_copy(update={"content": f"{note}\n{message.content}"})
