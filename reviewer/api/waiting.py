"""Waiting through the API: an answer that would say "nothing yet" is held back until there is something.

An operation that finds nothing calls ``hold_back``. Its request then ends without an answer, and ``Waits``,
which stands before Django, asks again once something has come. When that may be, hints in the groups that the
operation named tell; whether it is so, the operation's own quick check. What is answered is always read by a
request like any other, with the token and the rights of that moment. Between two looks a wait has neither a
thread nor a connection.

An operation that changes something does so once, commits, and calls ``answer_later``: its own answer is kept
from the client, and all that follows are looks by GET. So nothing is done twice, and nothing is lost with the
client.

A hint may be lost, so there is a request every few seconds anyway, and Redis can only ever delay an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, MutableMapping
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

from reviewer import live
from reviewer.api.idempotency import REPLAYED

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
PATIENCE_WITH_LAYER = 1.0  # seconds
KEY = "countersign.wait"
Seconds = Annotated[
    float,
    Field(
        ge=0, le=LONGEST, description="Hold the answer back for up to so many seconds, until there is one."
    ),
]


@dataclass(frozen=True)
class Awaited:
    """What is waited for: in which groups hints come of it, and a quick check whether it has come."""

    groups: Collection[str]
    has_come: Callable[[], bool]


@dataclass
class _Wait:
    """What the request and the one who waits tell each other."""

    is_last_look: bool = False
    held_back: Awaited | None = None
    path: str = ""


class _NothingYet(Exception):
    """Ends a request that will be asked again."""


def hold_back(request: HttpRequest, seconds: float, awaited: Awaited) -> None:
    """End the request without an answer if its client would rather wait; else return, so that it is answered.

    A hint in one of the groups has the check made, and that has the whole request made again.
    """
    wait = _wait_of(request)
    if not seconds or wait is None or wait.is_last_look:
        return
    wait.held_back = awaited
    raise _NothingYet


def answer_later(request: HttpRequest, seconds: float, awaited: Awaited, *, path: str = "") -> None:
    """Have a client that would rather wait answered by a GET of ``path``, or of the same address.

    To be called when all is done and committed: the request itself is never made again.
    """
    wait = _wait_of(request)
    if seconds and wait is not None:
        wait.held_back, wait.path = awaited, path or request.path


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
            await self._look_until_told(scope, receive, send, asyncio.get_running_loop().time() + seconds)
        finally:
            self._waiting -= 1

    async def _look_until_told(self, scope: Message, receive: Receive, send: Send, deadline: float) -> None:
        loop, wait, woken = asyncio.get_running_loop(), _Wait(), asyncio.Event()
        heard, again, body = set[str](), LOOK_AGAIN_FIRST, receive
        gone: asyncio.Task[Message] | None = None
        done: Message | None = None

        async def tell(message: Message) -> None:
            nonlocal done
            if wait.held_back is None:
                await send(_as_answer_to(done, message) if done else message)
            elif wait.path:
                done = done or message  # the first part of an answer has its status and its headers

        try:
            while gone is None or not gone.done():
                await self._application({**scope, KEY: wait}, body, tell)
                found = wait.held_back
                if found is None:
                    return
                if gone is None:  # the body is read, so all that can come now is that the client leaves
                    gone, body = asyncio.create_task(_next(receive)), _no_body
                if wait.path:
                    scope = {**scope, "method": "GET", "path": wait.path, "raw_path": wait.path.encode()}
                if not heard.issuperset(found.groups):
                    heard.update(found.groups)
                    await self._hints.listen(found.groups, woken)
                await self._until_it_has_come(found.has_come, woken, gone, min(loop.time() + again, deadline))
                again = min(2 * again, LOOK_AGAIN)
                wait = _Wait(is_last_look=loop.time() >= deadline)
        finally:
            if gone is not None:
                gone.cancel()
            await self._hints.forget(heard, woken)

    async def _until_it_has_come(
        self, has_come: Callable[[], bool], woken: asyncio.Event, gone: asyncio.Task[Message], deadline: float
    ) -> None:
        """Return when it has come, when the client has left, or at the deadline.

        The first check is for what came before anybody listened.
        """
        loop = asyncio.get_running_loop()
        while not gone.done() and (seconds := deadline - loop.time()) > 0:
            woken.clear()
            if await self._in_thread(partial(_is_so, has_come)):
                return
            await _first_of(gone, woken, seconds=seconds)


def _asked_for(scope: Message) -> float:
    """Return how long the client would wait; whether it may ask for that, the operation says."""
    if scope["type"] != "http" or b"wait=" not in scope["query_string"]:
        return 0.0
    try:
        seconds = float(parse_qs(scope["query_string"].decode("ascii"))["wait"][-1])
    except (KeyError, ValueError):
        return 0.0
    return seconds if 0 < seconds <= LONGEST and scope["method"] in {"GET", "POST"} else 0.0


def _as_answer_to(done: Message, message: Message) -> Message:
    """Let what a look found leave as the answer to the request that did the work."""
    if message.get("status") != HTTPStatus.OK:
        return message
    told = [(name, value) for name, value in done["headers"] if name.lower() == REPLAYED.lower().encode()]
    return {**message, "status": done["status"], "headers": [*message["headers"], *told]}


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


async def _first_of(gone: asyncio.Task[Any], woken: asyncio.Event, *, seconds: float) -> None:
    hint = asyncio.ensure_future(woken.wait())
    try:
        await asyncio.wait({gone, hint}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hint.cancel()


@dataclass
class _Hints:
    """This process's ear: one channel for all waits, in the groups that some wait listens to."""

    _listeners: dict[str, set[asyncio.Event]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _channel: str = ""
    _hearing: asyncio.Task[None] | None = None

    async def listen(self, groups: Collection[str], woken: asyncio.Event) -> None:
        """Set ``woken`` at each hint in one of the groups from now on."""
        for group in groups:
            self._listeners.setdefault(group, set()).add(woken)
        await self._in_turn(self._join(groups))

    async def forget(self, groups: Collection[str], woken: asyncio.Event) -> None:
        """Leave the groups to whoever else listens to them, if anybody does."""
        for group in groups:
            self._listeners[group].discard(woken)
            if not self._listeners[group]:
                del self._listeners[group]
        if groups:
            await self._in_turn(self._leave(groups))

    async def _in_turn(self, change: Coroutine[Any, Any, None]) -> None:
        """Tell the layer; where it fails or takes long, there are the looks that need no hint."""
        try:
            async with asyncio.timeout(PATIENCE_WITH_LAYER), self._lock:
                await change
        except Exception as problem:  # noqa: BLE001  (whatever the layer's transport raises)
            log.warning("no_hints", problem=repr(problem))
        finally:
            change.close()

    async def _join(self, groups: Collection[str]) -> None:
        layer = get_channel_layer()
        if self._hearing is None:
            self._channel = await layer.new_channel()
            self._hearing = asyncio.create_task(self._hear())
        for group in groups:
            await layer.group_add(group, self._channel)

    async def _leave(self, groups: Collection[str]) -> None:
        for group in groups:
            if group not in self._listeners:
                await get_channel_layer().group_discard(group, self._channel)

    async def _hear(self) -> None:
        while True:
            try:
                hint = await get_channel_layer().receive(self._channel)
            except Exception as problem:  # noqa: BLE001  (whatever the layer's transport raises)
                log.warning("no_hints", problem=repr(problem))
                await asyncio.sleep(LOOK_AGAIN)
                continue
            for group in _groups_told_by(hint):
                for woken in self._listeners.get(group, ()):
                    woken.set()


def _groups_told_by(hint: Message) -> Collection[str]:
    """Return the groups whose listeners should look; new text of a run is nothing to look for."""
    match hint:
        case {"type": "run.hint", "run": run_id}:
            return (live.run_group(run_id),)
        case {"type": "task.hint", "queue": queue_id}:
            return (live.queue_group(queue_id),)
    return ()
