"""How an HTTP request gets from the event loop to Django and back: with one hop into a thread.

All middleware and all views here are plain functions. Django's own handler would wrap each of them, start a
pool of threads for every request, and hop once more for each signal: more work than most requests are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar, cast

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_started
from django.db import close_old_connections
from django.http.response import HttpResponse, HttpResponseBase
from django.urls import set_script_prefix

from reviewer.web.connections import kept_connection
from reviewer.web.threads import RequestThreads

T = TypeVar("T")
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class OneHopHandler(ASGIHandler):
    """Django's handler of HTTP, with everything between body and answer done in one thread.

    The threads live on from request to request, and may keep their connections. There are fewer of them than
    the pool has connections, so a request may wait for a thread, but never in vain for a connection. What
    has begun is done to its end: no view can be interrupted, so nobody listens meanwhile for a client that
    leaves.
    """

    def __init__(self, *, keeps_connections: bool = False) -> None:
        BaseHandler.__init__(self)  # not Django's own, which would load the middleware as coroutines
        self.load_middleware(is_async=False)
        life = kept_connection if keeps_connections else nullcontext
        self._threads = RequestThreads(settings.REQUEST_THREADS, life=life)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise ValueError(f"Only HTTP is handled here, not {scope['type']}.")
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        response = await self._threads.do(self._answer, scope, body)
        if isinstance(response, HttpResponse):
            await _send_whole(response, send)
        else:
            await self._stream(response, send)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do some work of no request in one of the threads; it may use the database."""
        return await self._threads.do(_with_connection, work)

    def _answer(self, scope: Scope, body: SpooledTemporaryFile[bytes]) -> HttpResponseBase:
        """Return the whole answer; a connection that is not kept goes back to the pool before it is sent."""
        with body:
            set_script_prefix(get_script_prefix(scope))
            request_started.send(sender=type(self), scope=scope)
            request, refusal = self.create_request(scope, body)
            response: Any = refusal if request is None else self.get_response(request)
            response._handler_class = type(self)  # noqa: SLF001  whom `request_finished` names as its sender
            if response.streaming:
                close_old_connections()
            else:
                response.close()  # sends `request_finished`
            return cast(HttpResponseBase, response)

    async def _stream(self, response: HttpResponseBase, send: Send) -> None:
        """Send an answer that is made while it is sent as Django does it, hops and all."""
        async with ThreadSensitiveContext():
            try:
                await self.send_response(response, send)
            finally:
                await sync_to_async(response.close)()


async def _send_whole(response: HttpResponse, send: Send) -> None:
    """Send an answer that is there as a whole; Django's own way would cut it up for one that is not."""
    headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
    cookies = (cookie.OutputString() for cookie in response.cookies.values())
    headers.extend((b"Set-Cookie", cookie.encode("ascii")) for cookie in cookies)
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


def _with_connection(work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        close_old_connections()
