"""The connections of the threads that answer requests: kept for the next, and looked at once any breaks.

To take a connection from the pool and to give it back costs a request as much as a statement does. So each
thread keeps its own for a while; there are fewer threads than the pool has connections.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

Handler = Callable[[HttpRequest], HttpResponse]
KEPT_FOR = 60.0  # seconds: the pool, too, replaces what has become old


class _Break:
    """Something broke, and connections with it perhaps."""

    latest = object()


class _Thread(threading.local):
    """Whether this thread keeps its connection, and after which break it has looked at it."""

    keeps = False
    looked_after = _Break.latest


_thread = _Thread()


@contextmanager
def kept_connection() -> Iterator[None]:
    """Let this thread keep its connection from request to request, inside."""
    _thread.keeps, _thread.looked_after = True, _Break.latest
    try:
        yield
    finally:
        connection.close()


@receiver(connection_created)
def _keep(connection: Any, **_: object) -> None:
    if _thread.keeps:
        connection.close_at += KEPT_FOR


def replace_dead_connections(get_response: Handler) -> Handler:
    """Look at the idle connections when something broke.

    After a restart of the database all of them are dead, and each would break one more request. To ask each
    before its use costs every request a round trip, and has the pool wait longer with each dead one it finds.
    Those in the pool are looked at now; what a thread keeps, it looks at itself before its next request.
    """

    def handle(request: HttpRequest) -> HttpResponse:
        if _thread.keeps and _thread.looked_after is not _Break.latest:
            _thread.looked_after = _Break.latest
            connection.errors_occurred = True  # only then does Django ask
            connection.close_if_unusable_or_obsolete()
        response = get_response(request)
        if response.status_code >= 500:
            _Break.latest = object()
            connection.close_if_unusable_or_obsolete()
            connection.pool.check()  # type: ignore[attr-defined]
        return response

    return handle
