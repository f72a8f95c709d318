"""Waiting through the API: an answer that would say "nothing yet" is held back until there is something.

An operation that finds nothing calls ``hold_back``. Its request then ends without an answer, and ``Waits``,
which stands before Django, asks again once something has come. When that may be, hints by the names that the
operation gave tell; where most of them would be in vain, it has a quick check of its own. What is answered is
always read by a request like any other, with the token and the rights of that moment. Between two looks a
wait has neither a thread nor a connection.

An operation that changes something does so once, commits, and calls ``answer_later``: its own answer is kept
from the client, and all that follows are looks by GET. So nothing is done twice, and nothing is lost with the
client.

A hint may be lost, so there is a request every few seconds anyway, and Redis can only ever delay an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import parse_qs

import structlog
from channels.layers import get_channel_layer
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from pydantic import Field

from reviewer.api.idempotency import REPLAYED, is_replayed, status_of

log = structlog.get_logger(__name__)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Any, Any], Coroutine[Any, Any, None]]
InThread = Callable[[Callable[[], bool]], Awaitable[bool]]

LONGEST = 30  # seconds
MOST = 200
"""Waits of one process at a time; who comes when there are so many is answered at once."""
LOOK_AGAIN_FIRST, LOOK_AGAIN = 1.0, 5.0  # seconds
KEY = "countersign.wait"
Seconds = Annotated[
    float,
    Field(
        ge=0, le=LONGEST, description="Hold the answer back for up to so many seconds, until there is one."
    ),
]


@dataclass(frozen=True)
class Awaited:
    """What is waited for: by which names hints tell of it; and, where they often mean others, a check."""

    names: Collection[str]
    has_come: Callable[[], bool] | None = None


@dataclass(frozen=True)
class _Done:
    """What a request has done: where to look for what comes of it, and as what that is answered."""

    path: str
    status: int
    is_replayed: bool


@dataclass
class _Wait:
    """What the request and the one who waits tell each other."""

    is_last_look: bool = False
    held_back: Awaited | None = None
    done: _Done | None = None
    may_have_come: bool = False


class _NothingYet(Exception):
    """Ends a request that will be asked again."""


def hold_back(request: HttpRequest, seconds: float, awaited: Awaited) -> None:
    """End the request without an answer if its client would rather wait; else return, so that it is answered.

    A hint by one of the names has the check made, and that has the whole request made again.
    """
    wait = _wait_of(request)
    if not seconds or wait is None or wait.is_last_look:
        return
    wait.held_back = awaited
    raise _NothingYet


def answer_later(
    request: HttpRequest,
    seconds: float,
    awaited: Awaited,
    *,
    reply: Any,
    path: str = "",
    may_have_come: bool = False,
) -> None:
    """End the request without its ``reply`` if its client would rather wait for what a GET of ``path`` tells.

    To be called when all is done and committed: the request itself is never made again. No hint tells of what
    ``may_have_come`` before the request: that is looked for at once.
    """
    wait = _wait_of(request)
    if not seconds or wait is None:
        return
    wait.held_back, wait.may_have_come = awaited, may_have_come
    wait.done = _Done(path or request.path, status_of(reply), is_replayed(reply))
    raise _NothingYet


def _wait_of(request: HttpRequest) -> _Wait | None:
    return getattr(request, "scope", {}).get(KEY)


def install(api: NinjaAPI) -> None:
    """Let the operations of ``api`` call ``hold_back``."""
    api.add_exception_handler(_NothingYet, lambda *_: HttpResponse())


class Waits:
    """The ASGI application that holds waiting requests back; all others pass through."""

    def __init__(self, application: Application, *, in_thread: InThread) -> None:
        self._application = application
        self._in_thread = in_thread
        self._hints = _Hints()
        self._waiting = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, now or later."""
        seconds = _asked_for(scope)
        if not seconds or self._waiting >= MOST:
            await self._application(scope, receive, send)
            return
        self._waiting += 1
        try:
            with self._hints.listener() as listener:
                await self._look_until_told(scope, receive, send, listener, seconds=seconds)
        finally:
            self._waiting -= 1

    async def _look_until_told(
        self, scope: Message, receive: Receive, send: Send, listener: _Listener, *, seconds: float
    ) -> None:
        loop, wait, again, body = asyncio.get_running_loop(), _Wait(), LOOK_AGAIN_FIRST, receive
        deadline = loop.time() + seconds
        gone: asyncio.Task[Message] | None = None
        done: _Done | None = None

        async def tell(message: Message) -> None:
            if wait.held_back is None:
                await send(_as_answer_to(done, message) if done else message)

        try:
            while gone is None or not gone.done():
                await self._application({**scope, KEY: wait}, body, tell)
                found = wait.held_back
                if found is None:
                    return
                if gone is None:  # the body is read, so all that can come now is that the client leaves
                    gone, body = asyncio.create_task(_next(receive)), _no_body
                    gone.add_done_callback(lambda _: listener.woken.set())
                if wait.done:
                    done = wait.done
                    scope = {**scope, "method": "GET", "path": done.path, "raw_path": done.path.encode()}
                listener.wait_for(found.names)
                if not wait.may_have_come:
                    until = min(loop.time() + again, deadline)
                    await self._until_it_has_come(found, listener.woken, gone, until)
                    again = min(2 * again, LOOK_AGAIN)
                wait = _Wait(is_last_look=loop.time() >= deadline)
        finally:
            if gone is not None:
                gone.cancel()

    async def _until_it_has_come(
        self, awaited: Awaited, woken: asyncio.Event, gone: asyncio.Task[Message], deadline: float
    ) -> None:
        """Return when it seems to have come, when the client has left, or at the deadline."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while await woken.wait() and not gone.done():
                    woken.clear()
                    if awaited.has_come is None or await self._in_thread(partial(_is_so, awaited.has_come)):
                        return


def _asked_for(scope: Message) -> float:
    """Return how long the client would wait; whether it may ask for that, the operation says."""
    if scope["type"] != "http" or b"wait=" not in scope["query_string"]:
        return 0.0
    try:
        seconds = float(parse_qs(scope["query_string"].decode("ascii"))["wait"][-1])
    except (KeyError, ValueError):
        return 0.0
    return seconds if 0 < seconds <= LONGEST and scope["method"] in {"GET", "POST"} else 0.0


def _as_answer_to(done: _Done, message: Message) -> Message:
    """Let what a look found leave as the answer to the request that did the work."""
    if message.get("status") != HTTPStatus.OK:
        return message
    told = [(REPLAYED.encode(), b"true")] if done.is_replayed else []
    return {**message, "status": done.status, "headers": [*message["headers"], *told]}


def _is_so(has_come: Callable[[], bool]) -> bool:
    """Ask the check; where it breaks, the request that follows says so in the right way."""
    try:
        return has_come()
    except Exception as problem:  # noqa: BLE001  (whatever the database raises)
        log.warning("check_failed", problem=repr(problem))
        return True


async def _next(receive: Receive) -> Message:
    return await receive()


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


@dataclass(eq=False)
class _Listener:
    """One wait: it keeps what is told until it knows what it waits for; then that wakes it."""

    names: Collection[str] | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    _kept: set[str] = field(default_factory=set)

    def wait_for(self, names: Collection[str]) -> None:
        """Be woken by these names, also if they were told before."""
        self.names = names
        self.tell(self._kept)
        self._kept.clear()

    def tell(self, told: Collection[str]) -> None:
        """Hear what is told."""
        if self.names is None:
            self._kept.update(told)
        elif any(name in self.names for name in told):
            self.woken.set()


class _Hints:
    """This process's ear: it hears what is told to all, and wakes the waits that it may mean.

    A wait listens before it looks, so that nothing can come between. While the ear may be deaf, who comes is
    woken at once, and all are as soon as it hears again: they see for themselves.
    """

    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()
        self._hears = False
        self._hearing: asyncio.Task[None] | None = None

    @contextmanager
    def listener(self) -> Iterator[_Listener]:
        """Listen for as long as the body takes."""
        if self._hearing is None:
            self._hearing = asyncio.create_task(self._hear())
        listener = _Listener()
        if not self._hears:
            listener.woken.set()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)

    async def _hear(self) -> None:
        while True:
            try:
                async for told in get_channel_layer().hear():
                    for listener in self._listeners:
                        listener.tell(told)
                    if not self._hears:
                        self._begin_to_hear()
            except Exception as problem:  # noqa: BLE001  (whatever the layer's transport raises)
                log.warning("no_hints", problem=repr(problem))
            self._hears = False
            await asyncio.sleep(LOOK_AGAIN)

    def _begin_to_hear(self) -> None:
        self._hears = True
        for listener in self._listeners:
            listener.woken.set()
