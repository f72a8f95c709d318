"""The only caller of the channel layer: hints that something changed, sent after commit.

A hint names a thing and its version, never its content; whoever gets one reads the database with their
own rights. A lost hint loses nothing: pages catch up when they connect. So a failing layer is logged, not
raised.

Pages get their hints in groups. Who waits at the API for a task, or for a run to come to rest, hears the
names of what is told to all.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any
from uuid import UUID

import structlog
from channels.layers import get_channel_layer
from django.db import transaction

from reviewer.models import ReviewTask

log = structlog.get_logger(__name__)
MAX_WAITING = 1_000
REST = "run.rest"
TOLD = frozenset({REST, "task.hint"})
"""Whose groups are told to all by name."""
SECONDS_TO_GATHER = 0.02
SECONDS_BETWEEN = 0.1
"""How long hints that keep coming wait for more: nobody sees a tenth of a second, but programs do."""


def queue_group(queue_id: int) -> str:
    """Return the group of everyone who may see a queue."""
    return f"queue.{queue_id}"


def run_group(run_id: UUID | str) -> str:
    """Return the group of everyone who watches a run."""
    return f"run.{run_id}"


def rest(run_id: UUID | str) -> str:
    """Return the name that is told when a run, or a pause of it, may have come to rest."""
    return f"rest.{run_id}"


def user_group(user_id: int) -> str:
    """Return the group of one person's open pages."""
    return f"user.{user_id}"


def task_changed(task: ReviewTask, *, left_queue: int | None = None) -> None:
    """Tell the task's queue (and the one it left), the person it is assigned to, and its run's page."""
    hint = {"type": "task.hint", "task": str(task.pk), "version": task.version, "queue": task.queue_id}
    groups = {queue_group(task.queue_id), run_group(task.run_id)}
    if left_queue is not None:
        groups.add(queue_group(left_queue))
    if task.assigned_to_id is not None:
        groups.add(user_group(task.assigned_to_id))
    _after_commit(sorted(groups), hint)


def run_changed(run_id: UUID, *, at_work: bool = False) -> None:
    """Tell the pages that watch the run, and who waits for it to rest unless it is sure to be at work."""
    _after_commit([run_group(run_id)], {"type": "run.hint", "run": str(run_id)})
    if not at_work:
        _after_commit([rest(run_id)], {"type": REST, "run": str(run_id)})


def run_produced(run_id: UUID, tokens: Sequence[tuple[str, str]]) -> None:
    """Pass new text of a run on to the pages that watch it; not tied to any transaction."""
    _send(
        run_group(run_id),
        {"type": "run.tokens", "run": str(run_id), "tokens": [list(pair) for pair in tokens]},
    )


def person_changed(user_id: int) -> None:
    """Tell a person's pages that their rights changed: they check again at once."""
    _after_commit([user_group(user_id)], {"type": "user.hint"})


def _after_commit(groups: Sequence[str], message: Mapping[str, Any]) -> None:
    transaction.on_commit(partial(_send_all, groups, message), robust=True)


def _send_all(groups: Sequence[str], message: Mapping[str, Any]) -> None:
    for group in groups:
        _send(group, message)


def _send(group: str, message: Mapping[str, Any]) -> None:
    """Hand a hint to the sending thread and return at once, whatever the layer does."""
    if not _current().take(group, dict(message)):
        log.warning("hint_lost", group=group, problem="the layer takes none")


class _Sender:
    """One thread, so that hints keep their order and the layer its connection.

    What comes within a moment is sent together: soon after a quiet time, or once a run has come to rest, else
    ten times a second. A hint that is waiting already is not sent twice: one step of a run tells its page a
    dozen times that it changed, and the page looks once.
    """

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="live")
        self._lock = threading.Lock()
        self._waiting: dict[object, tuple[str, dict[str, Any]]] = {}
        self._is_urgent = threading.Event()
        self._sent_at = 0.0

    def take(self, group: str, message: dict[str, Any]) -> bool:
        """Let a hint wait for its turn; say no if too many do."""
        kind, thing = message["type"], message.get("task") or message.get("run")
        key = object() if kind == "run.tokens" else (group, kind, thing)
        with self._lock:
            is_first = not self._waiting
            if key not in self._waiting and len(self._waiting) >= MAX_WAITING:
                return False
            self._waiting[key] = group, message
            if kind == REST:
                self._is_urgent.set()
        if is_first:
            self.thread.submit(self.send_waiting)
        return True

    def send_waiting(self) -> None:
        """Send what waits; only in the sending thread."""
        self._is_urgent.wait(self._sent_at + SECONDS_BETWEEN - SECONDS_TO_GATHER - time.monotonic())
        time.sleep(SECONDS_TO_GATHER)
        with self._lock:
            hints, self._waiting = list(self._waiting.values()), {}
            self._is_urgent.clear()
        self._sent_at = time.monotonic()
        _send_each(hints)


def _send_each(hints: Sequence[tuple[str, dict[str, Any]]]) -> None:
    told = {group for group, message in hints if message["type"] in TOLD}
    messages = [hint for hint in hints if hint[1]["type"] != REST]
    try:
        get_channel_layer().group_send_all(messages, told=told)
    except Exception as problem:  # noqa: BLE001  (whatever the layer's transport raises; hints may be lost)
        log.warning("hints_lost", groups=sorted({group for group, _ in hints}), problem=repr(problem))


@cache
def _sender_of(_pid: int) -> _Sender:
    return _Sender()


def _current() -> _Sender:
    """Return this process's sender; a forked child makes its own."""
    return _sender_of(os.getpid())
