"""What a request that failed leaves behind for the next one: connections that live."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.http import HttpRequest, HttpResponse

Handler = Callable[[HttpRequest], HttpResponse]


def replace_dead_connections(get_response: Handler) -> Handler:
    """Look at the idle connections when something broke.

    After a restart of the database all of them are dead, and each would break one more request. To ask each
    before its use costs every request a round trip, and has the pool wait longer with each dead one it finds.
    """

    def handle(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code >= 500:
            connection.close_if_unusable_or_obsolete()
            connection.pool.check()  # type: ignore[attr-defined]
        return response

    return handle
