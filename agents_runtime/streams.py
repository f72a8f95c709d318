"""What a run shows while it works: steps for its timeline, and text as the model speaks.

Lives here: taking the graph's own stream of tasks and the words of its models, and reporting both at most ten
times a second from a thread of its own; what is left at the end is stored with what the step came to.
Reporting never slows or breaks a step: it is bounded, and what goes wrong with it is only logged. Steps carry
the ids of messages and tasks as keys, so that a repeated step writes no second row.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tracers._streaming import _StreamingCallbackHandler
from langgraph.constants import TAG_NOSTREAM

from agents_runtime.canonical import encode, storable
from agents_runtime.desk import Progress, get_desk
from agents_runtime.messages import text_of
from agents_runtime.models import Run, RunStep
from agents_runtime.records import as_name
from agents_runtime.writing import insert_new

T = TypeVar("T")
log = logging.getLogger(__name__)
STREAM_MODE = "tasks"
SECONDS_BETWEEN_REPORTS = 0.1
MAX_WAITING = 2_000
MAX_TEXT = 100_000
MAX_DATA = 200_000
MAX_KEY = 200


class Listener(BaseCallbackHandler, _StreamingCallbackHandler[Any]):
    """Hears every model of a step as it speaks; that one listens is what makes models stream.

    The library's own stream of messages tells the same, and has a thread wait for it beside every node.
    """

    run_inline = True
    ignore_chain = ignore_agent = ignore_retriever = ignore_custom_event = True  # only models speak

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._unheard: set[UUID] = set()

    def tap_output_iter(self, run_id: UUID, output: Iterator[T]) -> Iterator[T]:  # noqa: ARG002
        """Leave what a chain puts out as it is."""
        return output

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[T]) -> AsyncIterator[T]:  # noqa: ARG002
        """Leave what a chain puts out as it is."""
        return output

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002  the library gives it by position
        messages: list[list[BaseMessage]],  # noqa: ARG002  the library gives it by position
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        **_: Any,
    ) -> None:
        """Leave alone what the agent's author says is not to be streamed."""
        if tags and TAG_NOSTREAM in tags:
            self._unheard.add(run_id)

    def on_llm_new_token(
        self, token: str | list[str | dict[str, Any]], *, chunk: Any = None, run_id: UUID, **_: Any
    ) -> None:
        """Pass on what it said."""
        del token  # the chunk holds it, with the message that it is part of
        if isinstance(chunk, ChatGenerationChunk) and run_id not in self._unheard:
            self._reporter.hear(chunk.message)


class Reporter:
    """Takes what one step's graph and models say, and tells the desk; use it as a context manager."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tokens: deque[tuple[str, str]] = deque(maxlen=MAX_WAITING)
        self._steps: deque[RunStep] = deque(maxlen=MAX_WAITING)
        self._starts: dict[str, float] = {}
        self._told: set[str] = set()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        """End the reports; the step is over, so that the last words may take a moment."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(timeout=2.0)
        self._report([])

    def report_meanwhile(self) -> None:
        """From now on tell what there is while the step goes on: it takes long enough to be looked at."""
        self._thread = threading.Thread(target=self._report_now_and_then, name="reporter", daemon=True)
        self._thread.start()

    def rest(self) -> Sequence[RunStep]:
        """Return the steps that are not stored yet; ``keep`` stores them."""
        return list(_drain(self._steps))

    def hear(self, message: BaseMessage) -> None:
        """Take what a model just added to a message."""
        try:
            self._take_token(message)
        except Exception:
            log.warning("the words of a model could not be shown", exc_info=True)

    def take(self, chunk: Any) -> None:
        """Take one chunk of the stream: mode and payload, after a namespace where there are subgraphs."""
        try:
            *_, mode, payload = chunk
            if mode == STREAM_MODE:
                self._take_task(payload)
        except Exception:
            log.warning("a chunk of a run's stream could not be shown", exc_info=True)

    def _take_token(self, message: BaseMessage) -> None:
        text = text_of(message)
        if not isinstance(message, AIMessageChunk) or not text or not message.id:
            return
        self._tokens.append((message.id, text))

    def _take_task(self, task: Mapping[str, Any]) -> None:
        if "input" in task:
            self._starts[task["id"]] = time.monotonic()
            return
        began = self._starts.pop(task["id"], None)
        took = None if began is None else round((time.monotonic() - began) * 1000)
        if task.get("interrupts") or task.get("error"):
            return
        steps = list(_steps_of(self._run.pk, task, took))
        self._steps.extend(step for step in steps if step.key not in self._told)
        self._told.update(step.key for step in steps)

    def _report_now_and_then(self) -> None:
        while not self._over.wait(SECONDS_BETWEEN_REPORTS):
            self._report(self.rest())
            connection.close()  # back into the pool: the step's own gates may wait for one

    def _report(self, steps: Sequence[RunStep]) -> None:
        try:
            keep(self._run, steps, tokens=_joined(list(_drain(self._tokens))))
        except Exception:
            log.warning("a run's progress could not be shown", exc_info=True)


def keep(run: Run, steps: Sequence[RunStep], *, tokens: Sequence[tuple[str, str]] = ()) -> None:
    """Store the steps that are not stored yet, and tell the desk of what there is."""
    if not (tokens or steps):
        return
    if steps:
        insert_new(steps)
    try:
        get_desk().run_progressed(run, Progress(tokens=tokens, steps=[step.key for step in steps]))
    except Exception:
        log.warning("a run's progress could not be told", exc_info=True)


def _steps_of(run_id: UUID, task: Mapping[str, Any], took: int | None) -> Iterator[RunStep]:
    """Yield what one finished task did: each message it made, or else just that it finished."""
    result = task.get("result")
    found = result.get("messages") if isinstance(result, Mapping) else None
    messages = (
        [message for message in found if isinstance(message, BaseMessage)] if isinstance(found, list) else []
    )
    for message in messages:
        step = _message_step(run_id, message, task["id"])
        if step is not None:
            step.duration_ms = took
            yield step
    if not messages and result:
        yield RunStep(
            run_id=run_id,
            key=_key("task", task["id"]),
            kind=RunStep.Kind.NODE,
            name=as_name(task["name"]),
            duration_ms=took,
        )


def _message_step(run_id: UUID, message: BaseMessage, task_id: str) -> RunStep | None:
    text = storable(text_of(message)[:MAX_TEXT])
    if isinstance(message, ToolMessage):
        data = {"tool_call_id": message.tool_call_id, "status": message.status}
        return RunStep(
            run_id=run_id,
            key=_key("tool", task_id, message.tool_call_id),
            kind=RunStep.Kind.TOOL,
            name=as_name(message.name or ""),
            text=text,
            data=encode(data),
        )
    if isinstance(message, AIMessage):
        calls = encode({"tool_calls": message.tool_calls}) if message.tool_calls else ""
        return RunStep(
            run_id=run_id,
            key=_key("message", message.id),
            kind=RunStep.Kind.MODEL,
            text=text,
            name=as_name(message.name or ""),
            data=calls[:MAX_DATA],
        )
    return None


def _key(kind: str, *ids: object) -> str:
    return storable(":".join([kind, *map(str, ids)]))[:MAX_KEY]


def _joined(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join what was added to each message, in order."""
    texts: dict[str, list[str]] = {}
    for message_id, text in tokens:
        texts.setdefault(message_id, []).append(text)
    return [(message_id, "".join(parts)) for message_id, parts in texts.items()]


def _drain(waiting: deque[Any]) -> Iterator[Any]:
    while waiting:
        yield waiting.popleft()
