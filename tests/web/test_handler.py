"""An HTTP request hops into one thread and back, whatever it passes there; static files go the same way."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import psycopg
import pytest
from django.core.signals import request_finished, request_started
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import RequestFactory, override_settings

from reviewer.web.connections import KEPT_FOR
from reviewer.web.handler import OneHopHandler
from reviewer.web.static_files import serve_static_files
from tests.cast import Cast, token_of
from tests.servers import servers
from tests.web.asgi import ask

T = TypeVar("T")
NO_ROOM = 2**47
"""Bytes of a thread's stack: more than a process has addresses."""
PLAIN = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.mark.parametrize("path", ["/healthz", "/login/", "/api/v1/tasks", "/nowhere", "/static/nothing.css"])
async def test_a_request_takes_one_hop(cast: Cast, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = OneHopHandler()
    token = await handler.in_thread(lambda: token_of(cast.reviewer))
    await ask(handler, path, token=token)
    loop, hops = asyncio.get_running_loop(), []

    def counted(name: str) -> None:
        real = getattr(loop, name)

        def count(*given: Any) -> Any:
            hops.append(name)
            return real(*given)

        monkeypatch.setattr(loop, name, count)

    counted("create_future")
    counted("call_soon_threadsafe")
    found = await ask(handler, path, token=token)

    assert found.status
    assert hops == ["create_future", "call_soon_threadsafe"]  # there, and back


async def test_the_thread_of_a_request_begins_and_ends_it_and_gives_the_connection_back(cast: Cast) -> None:
    handler = OneHopHandler()
    token = await handler.in_thread(lambda: token_of(cast.reviewer))
    seen: list[tuple[str, str, bool]] = []

    def note(signal: Any, **_: Any) -> None:
        name = "started" if signal is request_started else "finished"
        seen.append((name, threading.current_thread().name, connection.connection is not None))

    request_started.connect(note)
    request_finished.connect(note)
    try:
        assert (await ask(handler, "/api/v1/tasks", token=token)).status == 200
    finally:
        request_started.disconnect(note)
        request_finished.disconnect(note)

    assert [name for name, _, _ in seen] == ["started", "finished"]
    assert {thread for _, thread, _ in seen} == {"request_0"}
    assert not await handler.in_thread(lambda: connection.connection is not None)


def connect() -> None:
    """Get this thread a connection."""
    connection.ensure_connection()


def close() -> None:
    """Give this thread's connection back."""
    connection.close()


def session() -> int:
    """The session of this thread's connection, 0 without one."""
    link = connection.connection
    return link.info.backend_pid if link else 0


@pytest.fixture
async def keeping() -> AsyncIterator[OneHopHandler]:
    """A handler with two threads that keep their connections."""
    with override_settings(REQUEST_THREADS=2):
        handler = OneHopHandler(keeps_connections=True)
    yield handler
    await in_both(handler, close)


async def in_both(handler: OneHopHandler, work: Callable[[], T]) -> set[T]:
    """What the work returns in each of the two threads."""
    meet = threading.Barrier(2)

    def together() -> T:
        meet.wait(timeout=10)
        return work()

    return set(await asyncio.gather(*(handler.in_thread(together) for _ in range(2))))


async def test_a_thread_may_keep_its_connection_for_a_while(
    cast: Cast, keeping: OneHopHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await keeping.in_thread(lambda: token_of(cast.reviewer))
    await in_both(keeping, connect)
    kept = await in_both(keeping, session)
    assert len(kept) == 2
    assert {(await ask(keeping, "/api/v1/tasks", token=token)).status for _ in range(6)} == {200}
    assert await in_both(keeping, session) == kept

    later = time.monotonic() + KEPT_FOR
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert {(await ask(keeping, "/healthz")).status for _ in range(6)} == {200}
    monkeypatch.undo()
    assert 0 in await in_both(keeping, session)


async def test_after_a_break_each_thread_looks_at_what_it_keeps(cast: Cast, keeping: OneHopHandler) -> None:
    token = await keeping.in_thread(lambda: token_of(cast.reviewer))
    await in_both(keeping, connect)
    dead = await in_both(keeping, session)
    async with await psycopg.AsyncConnection.connect(servers().superuser_url, autocommit=True) as link:
        await link.execute(
            "SELECT pg_terminate_backend(pid, 10_000) FROM unnest(%s::int[]) AS pid", [list(dead)]
        )

    async def tasks() -> int:
        return (await ask(keeping, "/api/v1/tasks", token=token)).status

    assert await tasks() == 500
    for _ in range(3):
        assert set(await asyncio.gather(tasks(), tasks())) == {200}


async def test_whoever_was_busy_last_is_asked_first(keeping: OneHopHandler) -> None:
    await in_both(keeping, session)
    busy = {await keeping.in_thread(lambda: threading.current_thread().name) for _ in range(8)}
    assert len(busy) == 1


async def test_what_nobody_waits_for_any_more_is_not_begun(keeping: OneHopHandler) -> None:
    done: list[str] = []
    free = threading.Event()
    busy = [asyncio.create_task(keeping.in_thread(free.wait)) for _ in range(2)]
    kept, left = (asyncio.create_task(keeping.in_thread(partial(done.append, name))) for name in ("a", "b"))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    free.set()
    await asyncio.gather(*busy, kept)
    await in_both(keeping, session)
    assert done == ["a"]


async def test_whatever_a_job_raises_reaches_who_waits(keeping: OneHopHandler) -> None:
    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await keeping.in_thread(partial(next, iter(())))
        with pytest.raises(SystemError):
            await keeping.in_thread(partial(fail, SystemError))


def fail(error: type[BaseException]) -> None:
    raise error


async def test_a_thread_that_could_not_be_started_is_started_by_a_later_request() -> None:
    with override_settings(REQUEST_THREADS=1):
        handler = OneHopHandler()
    threading.stack_size(NO_ROOM)
    try:
        with pytest.raises(RuntimeError, match="thread"):
            await handler.in_thread(close)
    finally:
        threading.stack_size(0)
    async with asyncio.timeout(10):
        assert await handler.in_thread(lambda: True)


async def test_more_requests_than_threads_all_get_their_answer(cast: Cast) -> None:
    handler = OneHopHandler()
    token = await handler.in_thread(lambda: token_of(cast.reviewer))
    answers = await asyncio.gather(*(ask(handler, "/api/v1/tasks", token=token) for _ in range(60)))
    assert {answer.status for answer in answers} == {200}


async def test_an_answer_that_is_made_while_it_is_sent_is_closed_after_its_last_part() -> None:
    closed: list[bool] = []

    class Streaming(OneHopHandler):
        def get_response(self, request: HttpRequest) -> HttpResponseBase:
            def parts() -> Iterator[bytes]:
                yield b"one "
                yield b"two"
                closed.append(False)

            response: Any = StreamingHttpResponse(parts())
            response._resource_closers.append(lambda: closed.append(True))
            return cast(HttpResponseBase, response)

    with pytest.warns(Warning, match="synchronous iterators"):
        found = await ask(Streaming(), "/healthz")

    assert (found.body, closed) == (b"one two", [False, True])


async def test_a_view_that_breaks_is_answered_and_the_next_request_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handler = OneHopHandler()
    with monkeypatch.context() as patched:
        patched.setattr("reviewer.config.health.HttpResponse", lambda *_, **__: 1 / 0)
        assert (await ask(handler, "/healthz")).status == 500
    assert (await ask(handler, "/healthz")).body == b"ok\n"


@pytest.fixture
def statics(tmp_path: Path) -> Iterator[Any]:
    """The middleware over a folder with one file; what it does not know is answered 404."""
    (tmp_path / "look.css").write_bytes(b"a { color: red }")
    os.utime(tmp_path / "look.css", (1_700_000_000, 1_700_000_000))
    with override_settings(STATIC_ROOT=str(tmp_path), STORAGES=PLAIN):
        yield serve_static_files(lambda _: HttpResponse("nothing here", status=404))


def answered(
    middleware: Any, method: str = "GET", path: str = "/static/look.css", **headers: str
) -> HttpResponse:
    found: HttpResponse = middleware(RequestFactory().generic(method, path, headers=headers))
    return found


def test_a_static_file_is_given_with_its_type_and_length(statics: Any) -> None:
    found = answered(statics)
    assert (found.status_code, found.content) == (200, b"a { color: red }")
    assert found["Content-Type"].startswith("text/css")
    assert found["Content-Length"] == "16"
    assert not found.streaming


def test_a_static_file_is_not_sent_again_to_who_has_it(statics: Any) -> None:
    found = answered(statics, **{"if-none-match": answered(statics)["ETag"]})
    assert (found.status_code, found.content) == (304, b"")


def test_a_part_the_head_or_another_method_of_a_static_file(statics: Any) -> None:
    part, head = answered(statics, range="bytes=4-8"), answered(statics, "HEAD")
    assert (part.status_code, part.content, part["Content-Range"]) == (206, b"color", "bytes 4-8/16")
    assert (head.status_code, head.content, head["Content-Length"]) == (200, b"", "16")
    assert answered(statics, "POST").status_code == 405


@pytest.mark.parametrize("path", ["/static/other.css", "/static/../look.css", "/look.css", "/static/"])
def test_what_is_no_static_file_is_asked_of_the_next(statics: Any, path: str) -> None:
    assert answered(statics, path=path).status_code == 404
