"""The engine: the only room that calls a graph. It reads a thread and runs one step of it, nothing else.

A step is one call of the graph, which goes on until the graph pauses, ends or raises. Whatever it returns or
raises is only a hint: what became of the thread is read from the checkpoint afterwards, by the caller.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import logging
import threading
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_STRICT_RESUME
from langgraph._internal._serde import build_serde_allowlist
from langgraph.channels import DeltaChannel
from langgraph.constants import END, START
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.pregel._task_status import CONTROL_WRITES
from langgraph.runtime import RunControl
from langgraph.types import Command, Interrupt, PregelTask, StateSnapshot
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agents_runtime import checkpointer, registry
from agents_runtime.anatomy import examine
from agents_runtime.canonical import Json, storable, to_json
from agents_runtime.errors import Problem, StaleEpoch
from agents_runtime.fence import Fence
from agents_runtime.gate import Gate, interrupt_ids
from agents_runtime.lending import give_back
from agents_runtime.messages import messages_of, unanswered_calls
from agents_runtime.models import Run
from agents_runtime.refusals import pointer
from agents_runtime.response_schemas import keep_response_schemas
from agents_runtime.streams import SECONDS_BETWEEN_REPORTS, STREAM_MODE, Listener, Reporter
from agents_runtime.thread_state import (
    AskAgain,
    CloseReviews,
    Delivery,
    GiveAnswer,
    GiveInput,
    Outcome,
    RaisedInterrupt,
    ThreadState,
)

log = logging.getLogger(__name__)
FIRST_EPOCH = 1
EDIT_SECONDS = 30.0
RESUME = "__resume__"
CLOSED_CALL = "Nobody decided on this call, and it was not run: the run was given new input instead."
OUT_OF_TIME = "This step took longer than {seconds} seconds and was ended."
keep_response_schemas()


class Engine:
    """One run's graph under one epoch. ``build`` is the fingerprint of the agent as this process has it."""

    def __init__(self, run: Run, epoch: int) -> None:
        self._run = run
        self._fence = Fence(run.pk, epoch)
        self._is_async = run.agent.is_async
        graph = registry.load_graph(run.agent)
        self.build = _build(graph)
        self._tool_nodes = _tool_nodes(graph)
        self._has_inner_graphs = _has_inner_graphs(graph)
        self._has_inner_breakpoints = _has_inner_breakpoints(graph)
        gathers = not self._is_async and not _stores_changes(graph)  # either would wait for it itself
        self._saver = checkpointer.fenced_saver(self._fence, _allowed_types(graph), gathers=gathers)
        self._graph: Pregel[Any, Any, Any, Any] = graph.copy({"checkpointer": self._saver})

    def read_first(self) -> ThreadState:
        """Return what the checkpoint says; to the first worker that a run has, it cannot say anything."""
        if self._fence.epoch != FIRST_EPOCH:
            return self.read()
        self._saver.know_of_nothing()
        return ThreadState(exists=False)

    def read(self) -> ThreadState:
        """Return what the checkpoint says now."""
        config = self._config()
        snapshot = self._graph.get_state(config)
        saved = self._saver.latest
        if not (self._has_inner_breakpoints and snapshot.tasks):
            return _thread_state(self._graph, snapshot, saved)
        within = self._graph.get_state(config, subgraphs=True)
        return _thread_state(self._graph, snapshot, saved, within, inner_id=self._latest_id(config))

    def _latest_id(self, config: RunnableConfig) -> str:
        """Return the id of the thread's latest checkpoint, those of its subgraphs included."""
        latest = next(self._saver.list(config, limit=1))
        return str(latest.config["configurable"]["checkpoint_id"])

    def step(self, delivery: Delivery) -> Outcome:
        """Hand something to the graph and let it run until it stops by itself or its time is over.

        The graph goes on from what was read last.
        """
        if isinstance(delivery, CloseReviews):
            return self._edited(self._close_reviews())
        if isinstance(delivery, AskAgain):
            forgotten = self._edited(self._forget_answers())
            if forgotten.error:
                return forgotten
            self.read()
        gate = Gate(self._run.pk, self._fence.epoch, tool_nodes=self._tool_nodes)
        with Reporter(self._run) as reporter, gate.standing():
            call = {
                "config": self._config() | {"callbacks": [gate, Listener(reporter)]},
                "stream_mode": [STREAM_MODE],
                "subgraphs": self._has_inner_graphs,  # to listen to any has every node run in another thread
                "durability": "sync",
                "control": RunControl(),
            }
            with self._saver.going_on_from_what_was_read():
                error = self._call(_given(delivery), call, reporter)
        return replace(_outcome(error, gate, delivery), steps=reporter.rest())

    def _edited(self, edit: Coroutine[Any, Any, None]) -> Outcome:
        """Edit the thread without running any of its nodes."""
        try:
            checkpointer.on_loop(edit).result(timeout=EDIT_SECONDS)
        except StaleEpoch:
            raise
        except Exception as error:  # noqa: BLE001  what the thread is then is read afterwards
            return Outcome(error=storable(f"{type(error).__name__}: {error}"))
        return Outcome()

    async def _close_reviews(self) -> None:
        """End the step that waits, keep what its finished tasks produced, and answer the calls left."""
        await self._update(None, END)
        state = await self._in_own_way(self._graph.aget_state, self._graph.get_state, self._config())
        answers = [
            ToolMessage(CLOSED_CALL, tool_call_id=str(call.get("id")), name=call.get("name"), status="error")
            for call in unanswered_calls(messages_of(state.values))
        ]
        if answers:
            await self._update({"messages": answers}, START)
            await self._update(None, END)

    async def _forget_answers(self) -> None:
        """Copy the checkpoint without the answers that its task has stored: the task will ask anew."""
        await self._update(None, "__copy__")

    async def _update(self, values: Any, as_node: str) -> None:
        await self._in_own_way(
            self._graph.aupdate_state, self._graph.update_state, self._config(), values, as_node
        )

    async def _in_own_way(self, on_loop: Any, elsewhere: Any, *arguments: Any) -> Any:
        """Call the library on the loop for an async graph, and in a thread for any other one."""
        if self._is_async:
            return await on_loop(*arguments)
        return await asyncio.to_thread(elsewhere, *arguments)

    def _config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self._run.thread_id, CONFIG_KEY_STRICT_RESUME: True}}

    def _call(self, given: Any, call: dict[str, Any], reporter: Reporter) -> BaseException | None:
        """Run the call apart, so that its time can end; return what it raised."""
        work = (
            self._start_async(given, call, reporter) if self._is_async else self._start(given, call, reporter)
        )
        deadline = float(self._run.agent.step_seconds or settings.COUNTERSIGN_STEP_DEADLINE)
        began = time.monotonic()
        try:
            concurrent.futures.wait([work], timeout=min(SECONDS_BETWEEN_REPORTS, deadline))
            if not work.done():
                reporter.report_meanwhile()
            work.result(timeout=max(0.0, began + deadline - time.monotonic()))
        except concurrent.futures.TimeoutError:
            if work.done():  # the agent's own timeout, not ours
                return work.exception()
            self._end(work, call["control"])
            return _OutOfTime(OUT_OF_TIME.format(seconds=round(deadline)))
        except BaseException as error:
            if not work.done():  # this worker is being ended, not the step
                self._end(work, call["control"])
                raise
            return error
        return None

    def _end(self, work: concurrent.futures.Future[None], control: RunControl) -> None:
        """Let nothing more of this step take effect; a thread cannot be killed, but it can be shut out."""
        self._fence.broken.set()
        control.request_drain("deadline")
        work.cancel()
        if self._is_async:
            checkpointer.leave_loop_if_kept()

    def _start(self, given: Any, call: dict[str, Any], reporter: Reporter) -> concurrent.futures.Future[None]:
        work: concurrent.futures.Future[None] = concurrent.futures.Future()

        def run() -> None:
            try:
                for chunk in self._graph.stream(given, **call):
                    reporter.take(chunk)
            except BaseException as error:  # noqa: BLE001  handed on through the future
                work.set_exception(error)
            else:
                work.set_result(None)
            finally:
                give_back()

        work.set_running_or_notify_cancel()
        threading.Thread(  # a copied context: the gate stands in it, too
            target=contextvars.copy_context().run,
            args=(run,),
            name=f"step {self._run.short_id}",
            daemon=True,
        ).start()
        return work

    def _start_async(
        self, given: Any, call: dict[str, Any], reporter: Reporter
    ) -> concurrent.futures.Future[None]:
        async def run() -> None:
            async for chunk in self._graph.astream(given, **call):
                reporter.take(chunk)

        return checkpointer.on_loop(run())


class _OutOfTime(Exception):
    """The step's time was over."""


def _given(delivery: Delivery) -> Any:
    if isinstance(delivery, GiveInput):
        return delivery.value
    if isinstance(delivery, GiveAnswer):
        return Command(resume={delivery.interrupt_id: delivery.value})
    return None


def _outcome(error: BaseException | None, gate: Gate, delivery: Delivery) -> Outcome:
    stops = tuple(gate.stops)
    if error is None or (isinstance(error, GraphBubbleUp) and stops):
        return Outcome(stops=stops)
    if isinstance(error, ValidationError) and is_invalid_resume(error):
        answer = delivery.value if isinstance(delivery, GiveAnswer) else None
        return Outcome(refusal=_problems(error, answer), refusal_detail=_detail(error), stops=stops)
    if not isinstance(error, _OutOfTime):
        log.info("a step of a run raised", exc_info=error)
    message = str(error) if isinstance(error, _OutOfTime) else f"{type(error).__name__}: {error}"
    return Outcome(error=storable(message), stops=stops)


def _problems(error: ValidationError, answer: Json) -> tuple[Problem, ...]:
    return tuple(
        Problem(pointer(item["loc"], answer, is_missing=item["type"] == "missing"), storable(_words(item)))
        for item in error.errors()
    )


def _words(item: ErrorDetails) -> str:
    """Return what a check of the agent's author says, without the class that Pydantic names before it."""
    is_authors = item["type"] in {"value_error", "assertion_error"}
    return (is_authors and str(item.get("ctx", {}).get("error", ""))) or item["msg"]


def _detail(error: ValidationError) -> Sequence[Json]:
    return [to_json({"loc": item["loc"], "type": item["type"]}) for item in error.errors()]


def _thread_state(
    graph: Pregel[Any, Any, Any, Any],
    snapshot: StateSnapshot,
    saved: Any,
    within: StateSnapshot | None = None,
    *,
    inner_id: str = "",
) -> ThreadState:
    """Return a reading; ``within`` is the same with its subgraphs, where one of them may be held."""
    if saved is None:
        return ThreadState(exists=False)
    writes = saved.pending_writes or ()
    answered = _answers_by_task(writes)
    finished = {task_id for task_id, channel, _ in writes if channel not in CONTROL_WRITES}
    unfinished = [task for task in snapshot.tasks if task.id not in finished]
    interrupts = [
        _raised(task, interrupt, answered.get(task.id, 0))
        for task in sorted(unfinished, key=_place)
        for interrupt in task.interrupts
    ]
    checkpoint_id = str(snapshot.config["configurable"]["checkpoint_id"])
    has_failed = any(task.error is not None for task in snapshot.tasks)
    is_free = bool(unfinished) and not interrupts and not has_failed
    is_held = _is_one_free(within, finished) if within else is_free and _may_hold(graph, snapshot.next)
    return ThreadState(
        exists=True,
        checkpoint_id=checkpoint_id,
        values=snapshot.values,
        next=snapshot.next,
        tasks=tuple(task.name for task in snapshot.tasks),
        interrupts=tuple(interrupts),
        errors=tuple(storable(str(task.error)) for task in unfinished if task.error is not None),
        breakpoint_id=f"static:{inner_id or checkpoint_id}" if is_held else "",
    )


def _is_one_free(within: StateSnapshot, finished: Collection[str] = ()) -> bool:
    """Say whether a task, however deep, is not done, asks nothing and has not failed: it may be held."""
    unfinished = [task for task in within.tasks if task.id not in finished and task.result is None]
    return any(
        _is_one_free(task.state)
        if isinstance(task.state, StateSnapshot) and task.state.tasks
        else not task.interrupts and task.error is None
        for task in unfinished
    )


def _place(task: PregelTask) -> list[tuple[int, int, str]]:
    """Order tasks as their step made them: the tenth call comes after the second one."""
    return [(0, step, "") if isinstance(step, int) else (1, 0, str(step)) for step in task.path]


def _answers_by_task(writes: Any) -> Mapping[str, int]:
    """Return how many answers are stored for each task."""
    return {
        task_id: len(value) if isinstance(value, (list, tuple)) else 1
        for task_id, channel, value in writes
        if channel == RESUME
    }


def _raised(task: PregelTask, interrupt: Interrupt[Any], answers: int) -> RaisedInterrupt:
    namespace = f"{task.name}:{task.id}"
    own = interrupt_ids(namespace)[::-1]
    place = own.index(interrupt.id) if interrupt.id in own else None
    return RaisedInterrupt(
        id=interrupt.id,
        value=interrupt.value,
        response_schema=interrupt.response_schema,
        namespace=storable(namespace)[:500],
        was_answered=place is not None and answers > place,
    )


def _may_hold(graph: Pregel[Any, Any, Any, Any], next_nodes: Sequence[str]) -> bool:
    """Say whether a static breakpoint may hold the thread here; where one *may*, a person is asked."""
    before = graph.interrupt_before_nodes
    is_before = before == "*" or any(name in before for name in next_nodes)
    return is_before or bool(graph.interrupt_after_nodes)


@functools.cache
def _has_inner_graphs(graph: Pregel[Any, Any, Any, Any]) -> bool:
    """Say whether there are subgraphs, or graphs that tools call."""
    return bool(examine(graph).inner)


@functools.cache
def _has_inner_breakpoints(graph: Pregel[Any, Any, Any, Any]) -> bool:
    """Say whether a subgraph, or a graph that a tool calls, stops by itself: the root shows none of that."""
    return any(shape.stops_before or shape.stops_after for shape in examine(graph).inner)


@functools.cache
def _stores_changes(graph: Pregel[Any, Any, Any, Any]) -> bool:
    """Say whether a channel stores its changes only: its checkpoints wait until those are stored."""
    return any(isinstance(channel, DeltaChannel) for channel in graph.channels.values())


@functools.cache
def _build(graph: Pregel[Any, Any, Any, Any]) -> str:
    return registry.graph_fingerprint(graph)


@functools.cache
def _tool_nodes(graph: Pregel[Any, Any, Any, Any]) -> frozenset[str]:
    """Return the root's nodes that run tools and nothing else, and put what they return into ``messages``."""
    nodes = ((name, node.bound) for name, node in graph.nodes.items())
    return frozenset(
        name
        for name, bound in nodes
        if isinstance(bound, ToolNode) and getattr(bound, "_messages_key", "") == "messages"
    )


@functools.cache
def _allowed_types(graph: Pregel[Any, Any, Any, Any]) -> frozenset[tuple[str, ...]]:
    """Return the types that the agent declares its state with; the library loses its own list in copies."""
    builder = getattr(graph, "builder", None)
    schemas = [getattr(builder, name, None) for name in ("state_schema", "input_schema", "output_schema")]
    allowed = build_serde_allowlist(
        schemas=[schema for schema in schemas if schema], channels=dict(graph.channels)
    )
    return frozenset(allowed)
