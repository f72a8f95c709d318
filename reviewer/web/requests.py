"""What views need from a request: the person behind it, and whether htmx or a browser asked."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

from reviewer.accounts.models import User

LONGEST_NUMBER = 19


def person(request: HttpRequest) -> User:
    """Return who asks; every page but the sign-in demands that somebody is signed in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def is_fetched_ahead(request: HttpRequest) -> bool:
    """Say whether a browser fetches the page before anybody asked for it, so that nobody has seen it yet."""
    return "prefetch" in request.headers.get("Sec-Purpose", "")


def whole_number(text: str) -> int | None:
    """Return the number that a parameter holds, or None for anything that no key or version can be."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < LONGEST_NUMBER else None


def wants_fragment(request: HttpRequest) -> bool:
    """Say whether htmx asked, and so gets a part of a page."""
    return request.headers.get("HX-Request") == "true"


def safe_next(request: HttpRequest, default: str) -> str:
    """Return the address that a form names to go on to, if it is one of ours."""
    target = request.POST.get("next", "")
    allowed = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if target.startswith("/") and allowed else default
