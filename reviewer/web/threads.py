"""The threads that do what requests ask for: a few, that live on from request to request.

Python's own pool has each result pass through two futures and half a dozen locks. Here the event loop alone
knows who is idle. Whoever was busy last is asked first: its memory is the warmest, and that of its session in
the database, so that only as many of them are at work as there are requests at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Life = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class _Job:
    """Some work, who waits for it, and whom to tell in their event loop."""

    work: Callable[[], Any]
    done: asyncio.Future[Any]
    finish: Callable[[_Thread, _Job, Any, BaseException | None], None]


class _Thread(threading.Thread):
    """Does one job after the other, until it gets none."""

    def __init__(self, number: int, life: Life) -> None:
        super().__init__(name=f"request_{number}", daemon=True)
        self.inbox = SimpleQueue[_Job | None]()
        self._life = life

    def run(self) -> None:
        with self._life():
            while (job := self.inbox.get()) is not None:
                result, problem = None, None
                try:
                    result = job.work()
                except BaseException as raised:  # noqa: BLE001  it is raised where the work was asked for
                    problem = raised
                with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever waits
                    job.done.get_loop().call_soon_threadsafe(job.finish, self, job, result, problem)
                del job, result, problem  # nothing lives on while there is nothing to do


class RequestThreads:
    """At most so many threads, each inside a ``life`` of its own; they end with this object, or at exit."""

    def __init__(self, most: int, *, life: Life = contextlib.nullcontext) -> None:
        self._most = most
        self._life = life
        self._all: list[_Thread] = []
        self._idle: list[_Thread] = []
        self._waiting: deque[_Job] = deque()
        weakref.finalize(self, _end, self._all)

    async def do(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return what the work returns, or raise what it raises; it sees the context of who asks."""
        done = asyncio.get_running_loop().create_future()
        run = contextvars.copy_context().run
        job = _Job(lambda: run(work, *arguments), done, self._finish)
        if self._idle:
            self._idle.pop().inbox.put(job)
        elif len(self._all) < self._most:
            self._another().inbox.put(job)
        else:
            self._waiting.append(job)
        result: T = await done
        return result

    def _another(self) -> _Thread:
        thread = _Thread(len(self._all), self._life)
        thread.start()  # where the system has none left it raises, and the place stays free
        self._all.append(thread)
        return thread

    def _finish(self, thread: _Thread, job: _Job, result: Any, problem: BaseException | None) -> None:
        """Give the thread what waits, and tell who waited for it; only in the event loop."""
        self._occupy(thread)
        if job.done.cancelled():
            return
        if problem is None:
            job.done.set_result(result)
        elif isinstance(problem, StopIteration):  # no future takes one: who waits would wait for ever
            job.done.set_exception(RuntimeError(repr(problem)))
        else:
            job.done.set_exception(problem)

    def _occupy(self, thread: _Thread) -> None:
        while self._waiting:
            job = self._waiting.popleft()
            if not job.done.cancelled():
                thread.inbox.put(job)
                return
        self._idle.append(thread)


def _end(threads: Sequence[_Thread]) -> None:
    """Have the threads end once they have done what they do."""
    for thread in threads:
        thread.inbox.put(None)
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join()
