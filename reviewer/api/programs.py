"""The way of what programs ask: past all that only pages need.

Programs have no session, no cookie, no form and no language of their own, and what they get is JSON. The
middleware for these would look at each request and find nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, URLResolver, get_resolver
from django.utils import translation

Handler = Callable[[HttpRequest], HttpResponseBase]
DOOR = "/api/v1/"
PAGES = frozenset({"openapi-view", "api-root"})
"""The page about the API; and the door itself, behind which is nothing: Django shows its page for that."""
NOTHING_TO_SHOW = "default-src 'none'; frame-ancestors 'none'"


def answer_programs(get_response: Handler) -> Handler:
    """Have what the API's operations answer pass by the middleware that follows."""

    def handle(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(DOOR):
            return get_response(request)
        try:
            match = _addresses().resolve(request.path_info.removeprefix("/"))
        except Resolver404:
            return get_response(request)
        if match.url_name in PAGES:
            return get_response(request)
        translation.activate(settings.LANGUAGE_CODE)  # not that of whoever had the thread before
        request.resolver_match = match
        response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
        response["Content-Security-Policy"] = NOTHING_TO_SHOW
        return response

    return handle


@cache
def _addresses() -> URLResolver:
    """Return the addresses behind the door alone: a request would try all that stand before them, too."""
    (door,) = (found for found in get_resolver().url_patterns if f"/{found.pattern}" == DOOR)
    assert isinstance(door, URLResolver)
    return door
