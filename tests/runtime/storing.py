"""Storing checkpoints through a saver, in each of its ways: sync and async, checkpoints and tasks' writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.conf import settings
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import DictRow

from agents_runtime import checkpointer, thread_lock
from agents_runtime.direct import conninfo
from agents_runtime.models import Run

Write = Callable[[Any, Any], None]


def put(saver: Any, config: Any) -> None:
    """Store a checkpoint."""
    saver.put(config, empty_checkpoint(), {}, {})


def put_writes(saver: Any, config: Any) -> None:
    """Store what a task wrote."""
    saver.put_writes(config, [("messages", "hello")], "task")


def aput(saver: Any, config: Any) -> None:
    """Store a checkpoint on the loop."""
    checkpointer.on_loop(saver.aput(config, empty_checkpoint(), {}, {})).result(timeout=60)


def aput_writes(saver: Any, config: Any) -> None:
    """Store what a task wrote, on the loop."""
    checkpointer.on_loop(saver.aput_writes(config, [("messages", "hello")], "task")).result(timeout=60)


WRITES = pytest.mark.parametrize("write", [put, put_writes, aput, aput_writes])


def at(thread: str, checkpoint_id: str) -> Any:
    """Return the config of a checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}}


def outside() -> psycopg.Connection[DictRow]:
    """Return a connection of a test's own to the library's tables."""
    where = conninfo(application="tests", search_path=settings.COUNTERSIGN_CHECKPOINT_SCHEMA)
    return psycopg.connect(where, **thread_lock.LIKE_A_SAVER)


def stored(thread: str) -> list[str]:
    """Return which checkpoints of a thread are stored, or have something written for them."""
    with outside() as link:
        rows = link.execute(
            "SELECT checkpoint_id FROM checkpoint_writes WHERE thread_id = %(thread)s"
            " UNION ALL SELECT checkpoint_id FROM checkpoints WHERE thread_id = %(thread)s",
            {"thread": thread},
        )
        return sorted(row["checkpoint_id"] for row in rows)


def delete_thread(run: Run) -> None:
    """Delete all checkpoints of a run, as somebody might behind its back."""
    with outside() as link:
        PostgresSaver(link).delete_thread(run.thread_id)
