"""The savers of a process: PostgreSQL checkpoints for sync graphs, and for async graphs on one loop thread.

Each run in hand gets a saver of its own, over the connection that holds the lock on its thread. Savers are
fenced: they write nothing once their run's epoch is over, so that a worker without its lock cannot fork
the thread's history.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import os
import select
import threading
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection as django_connection
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.base import PRUNE_DELETE_THREADS_SQL
from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt
from psycopg.rows import DictRow

from agents_runtime import thread_lock
from agents_runtime.canonical import Plain, encode
from agents_runtime.direct import conninfo
from agents_runtime.fence import Fence, FencedWrites
from agents_runtime.gathering import Gathering

MOST_THREADS = 8
CANONICAL = "canonical+"
SECONDS_TO_COME_FREE = 1.0
ALSO_LOOK_IN = "SELECT set_config('search_path', %s || ', ' || current_setting('search_path'), true)"
Result = TypeVar("Result")


class Serializer(JsonPlusSerializer):
    """Known types only, never pickle. A question that has no form there is stored as our canonical text."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the type and bytes of a value. What a question shows is never read back by its agent."""
        try:
            return super().dumps_typed(obj)
        except (TypeError, ValueError, OverflowError):
            if not _are_interrupts(obj):
                raise
            kind, data = super().dumps_typed(tuple(replace(one, value=encode(one.value)) for one in obj))
            return CANONICAL + kind, data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value; of a question that is stored as canonical text, the JSON that it stands for."""
        if not data[0].startswith(CANONICAL):
            return super().loads_typed(data)
        found = super().loads_typed((data[0].removeprefix(CANONICAL), data[1]))
        return tuple(replace(one, value=Plain(json.loads(one.value))) for one in found)


def _are_interrupts(found: object) -> bool:
    return (
        isinstance(found, (list, tuple)) and bool(found) and all(isinstance(one, Interrupt) for one in found)
    )


@dataclass(frozen=True)
class _Known:
    """The latest checkpoint of a thread as its row is, with its JSON as text; None: there is none."""

    row: DictRow | None


class _Reading(threading.local):
    """What one thread of this process read last."""

    row: DictRow | None = None
    latest: CheckpointTuple | None = None
    known: _Known | None = None


class FencedSaver(PostgresSaver):
    """Writes only while its fence stands.

    For an async graph it does everything in a thread, and nothing on the loop: on the loop the gate waits for
    the run's row, so whoever holds that row must come to an end without the loop. What a cancelled task was
    storing is stored to its end, or finds the fence down; whoever reads the thread meanwhile waits for that.
    Tasks of a step read at once, and one that was ended may still; each gets what it asked for.
    """

    def __init__(
        self,
        link: psycopg.Connection[DictRow],
        fence: Fence,
        serde: JsonPlusSerializer,
        *,
        gathers: bool,
    ) -> None:
        super().__init__(link, serde=serde)
        self.fence = fence
        self._link = link
        self._gathers = gathers
        self._writer = psycopg.RawCursor(link)
        self._gathering = Gathering(fence, self._one_at_a_time)
        self._read = _Reading()
        self._known: list[_Known] = []
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint; those that this process stores from now on come after it."""
        is_latest = _asks_for_latest(config)
        known = self._known.pop() if is_latest and self._known else None
        if known and _has_news(self._link):
            known = None  # as a rule: the session is over, and the lock with it; reading anew finds that out
        self._read.row = None
        found = self._read.latest = self._made_of(known.row) if known else super().get_tuple(config)
        if is_latest:
            self._read.known = _Known(self._read.row)
        if found is not None:
            _let_ids_follow(found.checkpoint["id"])
        return found

    def _made_of(self, row: DictRow | None) -> CheckpointTuple | None:
        if row is None:
            return None
        return self._load_checkpoint_tuple(row | {"checkpoint": json.loads(row["checkpoint"])})

    def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        # as text: the library changes its own
        self._read.row = value | {"checkpoint": json.dumps(value["checkpoint"])}
        return super()._load_checkpoint_tuple(value)

    def know_of_nothing(self) -> None:
        """Take it as read that nothing is stored, where that is known."""
        self._read.known = _Known(None)

    @contextmanager
    def going_on_from_what_was_read(self) -> Iterator[None]:
        """Let the first who asks for the thread's latest checkpoint have what this thread read last.

        By that the caller chose what comes next, and nobody but this worker may have written since, unless
        its session ended: then the lock is no longer its own.
        """
        known, self._read.known = self._read.known, None
        self._known = [known] if known else []
        try:
            yield
        finally:
            self._known = []

    @property
    def latest(self) -> CheckpointTuple | None:
        """What the caller read last: reading a thread's state and its pending writes is one reading."""
        return self._read.latest

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint."""
        return await self._apart(lambda: self.get_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  the library's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Read checkpoints, latest first."""
        for found in await self._apart(
            lambda: list(self.list(config, filter=filter, before=before, limit=limit))
        ):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint."""
        return await self._apart(lambda: self.put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote."""
        await self._apart(lambda: self.put_writes(config, writes, task_id, task_path))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what channels that store changes only are made of."""
        return await self._apart(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def _apart(self, work: Callable[[], Result]) -> Result:
        """Do something in a thread; what comes meanwhile waits in line on its loop, and keeps no thread."""
        loop = asyncio.get_running_loop()
        in_context = functools.partial(contextvars.copy_context().run, work)
        async with self._lines.setdefault(loop, asyncio.Lock()):
            return await loop.run_in_executor(_current().threads, in_context)

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Any]:
        if not pipeline:
            with super()._cursor() as cursor:
                yield cursor
            return
        writes = FencedWrites()
        yield writes
        self._gathering.hand_in(writes, may_wait=self._gathers and writes.lead_to_more)

    @contextmanager
    def _one_at_a_time(self) -> Iterator[psycopg.RawCursor[DictRow]]:
        """Let one thread have the cursor that stores: whoever breaks the fence reads what got past it."""
        with self.lock:
            yield self._writer


def _has_news(link: psycopg.Connection[DictRow]) -> bool:
    """Say whether the server ended the session, or sent what nobody asked for; it is not asked for that."""
    waiting = select.poll()
    waiting.register(link.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def _let_ids_follow(checkpoint_id: str) -> None:
    """Make no id after this that sorts before that one, however far this machine's clock is behind.

    The library takes the latest checkpoint to be the one with the highest id, and makes ids from the clock:
    what a worker with a slow clock stored would read as older than what the worker before it did.
    """
    try:
        taken = ids.UUID(checkpoint_id).time
    except ValueError:  # an id of somebody's own making
        return
    made = vars(ids)  # it offers no other way
    made["_last_v6_timestamp"] = max(taken, made["_last_v6_timestamp"] or 0)


def _asks_for_latest(config: RunnableConfig) -> bool:
    """Say whether this asks for the latest checkpoint of the thread itself."""
    asked = config["configurable"]
    return not asked.get("checkpoint_id") and not asked.get("checkpoint_ns")


class _Process:
    """What one process holds open."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.threads = ThreadPoolExecutor(MOST_THREADS, "checkpoints")
        self.loop: asyncio.AbstractEventLoop | None = None
        self.loop_thread: threading.Thread | None = None


_process = _Process()


@functools.cache
def serializer(allowed: frozenset[tuple[str, ...]] = frozenset()) -> JsonPlusSerializer:
    """Return the serialiser of checkpoints and stored results: known types only, never pickle.

    ``allowed`` are the types that the state of an agent declares.
    """
    if not _msgpack.STRICT_MSGPACK_ENABLED:
        raise ImproperlyConfigured("LANGGRAPH_STRICT_MSGPACK must be true before langgraph is imported.")
    known = Serializer(allowed_msgpack_modules=None, pickle_fallback=False)
    return known.with_msgpack_allowlist(allowed)


def fenced_saver(fence: Fence, allowed: Collection[tuple[str, ...]], *, gathers: bool = False) -> Any:
    """Return a saver for one run in one epoch; ``allowed`` are the types that its state declares.

    ``gathers``: what a task wrote waits a moment for the checkpoint that follows, to be stored with it.
    """
    return FencedSaver(thread_lock.connection(), fence, serializer(frozenset(allowed)), gathers=gathers)


def on_loop(work: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Run a coroutine on the one loop thread of this process."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def leave_loop_if_kept() -> None:
    """Let what comes next have another loop if something that never waits keeps this one.

    The old one ends with what is on it, if that ever ends.
    """
    process, is_free = _current(), threading.Event()
    kept = process.loop
    if kept is None:
        return
    kept.call_soon_threadsafe(is_free.set)
    if is_free.wait(timeout=SECONDS_TO_COME_FREE):
        return
    with process.lock:
        if process.loop is kept:
            process.loop = process.loop_thread = None
            asyncio.run_coroutine_threadsafe(_stop_after_all(), kept)


async def _stop_after_all() -> None:
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)
    asyncio.get_running_loop().stop()


def make_tables(schema: str) -> None:
    """Create or upgrade the library's tables in a schema that exists; one caller at a time."""
    where = conninfo(application="setup", search_path=schema)
    link: psycopg.Connection[DictRow] = psycopg.connect(where, **thread_lock.LIKE_A_SAVER)
    with link:
        PostgresSaver(link).setup()


def prune_thread(thread_id: str) -> bool:
    """Keep only the latest checkpoint of a thread; False if the library cannot do that for its channels."""
    try:
        PostgresSaver(thread_lock.connection(), serde=serializer()).prune([thread_id])
    except NotImplementedError:
        return False
    return True


def delete_thread_here(thread_id: str) -> None:
    """Delete a thread's checkpoints in the caller's own transaction, over Django's connection."""
    schema = settings.COUNTERSIGN_CHECKPOINT_SCHEMA
    with django_connection.cursor() as cursor:
        cursor.execute(ALSO_LOOK_IN, [schema])
        for statement in PRUNE_DELETE_THREADS_SQL:
            cursor.execute(statement, [[thread_id]])


def close() -> None:
    """Close what this process opened; the next use opens it again."""
    process = _current()
    globals()["_process"] = _Process()
    process.threads.shutdown(wait=False)
    if process.loop is None or process.loop_thread is None:
        return
    process.loop.call_soon_threadsafe(process.loop.stop)
    process.loop_thread.join()


def _current() -> _Process:
    if _process.pid != os.getpid():
        globals()["_process"] = _Process()
    return _process


def _loop() -> asyncio.AbstractEventLoop:
    process = _current()
    with process.lock:
        if process.loop is None:
            process.loop = asyncio.new_event_loop()
            process.loop_thread = threading.Thread(
                target=_run_loop, args=(process.loop,), name="agents-loop", daemon=True
            )
            process.loop_thread.start()
        return process.loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
