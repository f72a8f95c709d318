"""What a run shows while it works: steps for its timeline, and text as the model speaks.

Lives here: reading the graph's own stream, and reporting it at most ten times a second from a thread of its
own. Reporting never slows or breaks a step: it is bounded, and what goes wrong with it is only logged.
Steps carry the ids of messages and tasks as keys, so that a repeated step writes no second row.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from django.db import connection
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from agents_runtime.canonical import encode, storable
from agents_runtime.compiled import insert_new
from agents_runtime.desk import Progress, get_desk
from agents_runtime.messages import text_of
from agents_runtime.models import Run, RunStep

log = logging.getLogger(__name__)
STREAM_MODES = ("tasks", "messages")
SECONDS_BETWEEN_REPORTS = 0.1
MAX_WAITING = 2_000
MAX_TEXT = 100_000
MAX_DATA = 200_000


class Reporter:
    """Takes the chunks of one step's stream and tells the desk; use it as a context manager."""

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
        """Tell what is left; the step is over, so that this may take a moment."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(timeout=2.0)
        self._report()

    def take(self, chunk: Any) -> None:
        """Take one chunk of the stream: (namespace, mode, payload)."""
        try:
            _, mode, payload = chunk
            if mode == "messages":
                self._take_token(payload[0])
            elif mode == "tasks":
                self._take_task(payload)
        except Exception:
            log.warning("a chunk of a run's stream could not be shown", exc_info=True)

    def _take_token(self, message: BaseMessage) -> None:
        text = text_of(message)
        if not isinstance(message, AIMessageChunk) or not text or not message.id:
            return
        self._tokens.append((message.id, text))
        if self._thread is None:
            self._thread = threading.Thread(target=self._report_now_and_then, name="reporter", daemon=True)
            self._thread.start()

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
        try:
            while not self._over.wait(SECONDS_BETWEEN_REPORTS):
                self._report()
        finally:
            connection.close()

    def _report(self) -> None:
        try:
            tokens, steps = list(_drain(self._tokens)), list(_drain(self._steps))
            ids = insert_new(steps) if steps else []
            if tokens or ids:
                get_desk().run_progressed(self._run, Progress(tokens=_joined(tokens), steps=ids))
        except Exception:
            log.warning("a run's progress could not be shown", exc_info=True)


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
            key=f"task:{task['id']}",
            kind=RunStep.Kind.NODE,
            name=task["name"][:200],
            duration_ms=took,
        )


def _message_step(run_id: UUID, message: BaseMessage, task_id: str) -> RunStep | None:
    text = storable(text_of(message)[:MAX_TEXT])
    if isinstance(message, ToolMessage):
        data = {"tool_call_id": message.tool_call_id, "status": message.status}
        return RunStep(
            run_id=run_id,
            key=f"tool:{task_id}:{message.tool_call_id}"[:200],
            kind=RunStep.Kind.TOOL,
            name=storable(message.name or "")[:200],
            text=text,
            data=encode(data),
        )
    if isinstance(message, AIMessage):
        calls = encode({"tool_calls": message.tool_calls}) if message.tool_calls else ""
        return RunStep(
            run_id=run_id,
            key=f"message:{message.id}"[:200],
            kind=RunStep.Kind.MODEL,
            text=text,
            name=storable(message.name or "")[:200],
            data=calls[:MAX_DATA],
        )
    return None


def _joined(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join what was added to each message, in order."""
    texts: dict[str, list[str]] = {}
    for message_id, text in tokens:
        texts.setdefault(message_id, []).append(text)
    return [(message_id, "".join(parts)) for message_id, parts in texts.items()]


def _drain(waiting: deque[Any]) -> Iterator[Any]:
    while waiting:
        yield waiting.popleft()
