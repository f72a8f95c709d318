"""The lock of a thread: whoever holds it is the only one who may run that thread's graph.

LangGraph has none: two workers with one answer run every tool twice. The lock is a session advisory lock
on a direct connection (it must not go through a transaction pooler), over which the thread's checkpoints are
read and written, too. It ends with the connection, so a dead worker never keeps it. Taking it raises the
run's epoch *in the same statement*: a worker that lost its connection without noticing holds an old epoch,
and everything it still tries to write is refused.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import connection as django_connection
from psycopg.rows import DictRow, dict_row

from agents_runtime.direct import conninfo
from agents_runtime.records import TABLE
from agents_runtime.statement import run

HELD = """
    SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
TAKE = f"""
    WITH taken AS MATERIALIZED (SELECT pg_try_advisory_lock(%s) AS is_ours),
    raised AS (
        UPDATE public.{TABLE} SET epoch = epoch + 1 FROM taken WHERE id = %s AND is_ours RETURNING epoch
    )
    SELECT is_ours, epoch FROM taken LEFT JOIN raised ON true
"""  # noqa: S608  our own table's name
UNLOCK = "SELECT pg_advisory_unlock(%s)"
LIKE_A_SAVER: dict[str, Any] = {"autocommit": True, "row_factory": dict_row, "prepare_threshold": 0}
"""What the library asks of a connection that its savers use."""


class _Own(threading.local):
    """The direct connection of this thread of this process; a forked child never uses its parent's."""

    connection: psycopg.Connection[DictRow] | None = None
    process: int = 0


_own = _Own()


@contextmanager
def hold(run_id: UUID) -> Iterator[int | None]:
    """Hold the lock of a run's thread and yield the new epoch; yield None when another worker holds it."""
    is_ours, epoch = _take(run_id)
    if not is_ours:
        yield None
        return
    try:
        yield epoch
    finally:
        _unlock(run_id)


def held_keys() -> set[int]:
    """Return the keys of all advisory locks held now in this database."""
    with django_connection.cursor() as cursor:
        cursor.execute(HELD)
        return {row[0] for row in cursor.fetchall()}


def lock_key(run_id: UUID) -> int:
    """Return the key of a run's lock, a signed 64-bit integer."""
    digest = hashlib.sha256(b"countersign thread " + run_id.bytes).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _take(run_id: UUID) -> tuple[bool, int | None]:
    """Take the lock if it is free; return whether it is ours now, and the run's new epoch if there is one."""
    values = lock_key(run_id), run_id
    try:
        found = run(connection(), TAKE, *values)
    except psycopg.OperationalError:  # the server closed it while it was idle
        close()
        found = run(connection(), TAKE, *values)
    ((is_ours, epoch),) = found
    return is_ours, epoch


def _unlock(run_id: UUID) -> None:
    try:
        run(connection(), UNLOCK, lock_key(run_id))
    except psycopg.Error:  # its end is the lock's end
        close()


def connection() -> psycopg.Connection[DictRow]:
    """Return the direct connection of this thread of this process; the library's tables come first in it."""
    if _own.process != os.getpid():
        _own.connection = None
    if _own.connection is None or _own.connection.closed:
        schema = settings.COUNTERSIGN_CHECKPOINT_SCHEMA
        _own.connection = psycopg.connect(conninfo(application="thread", search_path=schema), **LIKE_A_SAVER)
        _own.process = os.getpid()
    return _own.connection


def close() -> None:
    """Close this thread's connection, and with it free what it holds."""
    if _own.connection is not None:
        _own.connection.close()
    _own.connection = None
