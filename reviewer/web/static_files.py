"""The static files, answered by the thread that has the request."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from servestatic.middleware import ServeStaticMiddleware

Handler = Callable[[HttpRequest], HttpResponse]


def serve_static_files(get_response: Handler) -> Handler:
    """Give out what ServeStatic has found at the start.

    Its own middleware is a coroutine, and one among functions has every request change threads twice. Our
    largest file has a few hundred kilobytes, so each is read at once.
    """
    known = ServeStaticMiddleware(_nowhere)

    def handle(request: HttpRequest) -> HttpResponse:
        path = request.path_info
        file = known.find_file(path) if known.autorefresh else known.files.get(path)
        if file is None:
            return get_response(request)
        found = file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            if value is not None:
                response[name] = value
        return response

    return handle


async def _nowhere(request: HttpRequest) -> HttpResponse:
    """Stand where ServeStatic wants a coroutine; it is never asked."""
    raise NotImplementedError(request.path)
