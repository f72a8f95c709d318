"""Signing in: throttled, told in the trail, and silent about which accounts exist."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from reviewer.models import AuditEvent
from tests.cast import PASSWORD, Cast

ADDRESS = "/accounts/login/"


def sign_in(username: str, password: str, *, address: str = "127.0.0.1") -> Any:
    return Client(REMOTE_ADDR=address).post(ADDRESS, {"username": username, "password": password})


def fail_until_locked(username: str) -> Any:
    response = None
    for _ in range(settings.AXES_FAILURE_LIMIT):
        response = sign_in(username, "wrong")
    return response


def told(type: str) -> list[dict[str, Any]]:
    return [json.loads(event.payload) for event in AuditEvent.objects.filter(type=type).order_by("pk")]


def test_the_right_password_opens_the_inbox(cast: Cast) -> None:
    response = sign_in("reviewer", PASSWORD)
    assert (response.status_code, response["Location"]) == (302, "/")
    assert [event["actor"]["username"] for event in told("session.opened")] == ["reviewer"]


def test_after_too_many_tries_even_the_right_password_is_refused(cast: Cast) -> None:
    assert fail_until_locked("reviewer").status_code == 429
    locked = sign_in("reviewer", PASSWORD)
    assert locked.status_code == 429
    assert "sessionid" not in locked.cookies
    assert settings.SESSION_COOKIE_NAME not in locked.cookies


def test_a_lock_holds_for_one_account_from_one_place(cast: Cast) -> None:
    fail_until_locked("reviewer")
    assert sign_in("reviewer2", PASSWORD).status_code == 302
    assert sign_in("reviewer", PASSWORD, address="192.0.2.1").status_code == 302


def test_success_forgets_earlier_tries(cast: Cast) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        sign_in("reviewer", "wrong")
    assert sign_in("reviewer", PASSWORD).status_code == 302
    assert sign_in("reviewer", "wrong").status_code == 200


@pytest.mark.parametrize("username", ["reviewer", "nobody", "", "a\x00b", "x" * 10_000])
def test_a_wrong_try_says_the_same_for_every_name(cast: Cast, username: str) -> None:
    response = sign_in(username, "wrong")
    assert response.status_code == 200
    assert settings.SESSION_COOKIE_NAME not in response.cookies


def test_tries_are_told_and_a_locked_account_cannot_fill_the_trail(cast: Cast) -> None:
    fail_until_locked("reviewer")
    for _ in range(5):
        sign_in("reviewer", "wrong")
    assert len(told("session.refused")) == settings.AXES_FAILURE_LIMIT - 1
    assert [event["facts"]["username"] for event in told("session.locked")] == ["reviewer"]


def test_signing_out_is_told_and_needs_a_post(cast: Cast) -> None:
    client = Client()
    client.post(ADDRESS, {"username": "reviewer", "password": PASSWORD})
    assert client.get("/accounts/logout/").status_code == 405
    assert client.post("/accounts/logout/").status_code == 302
    assert len(told("session.closed")) == 1


def test_the_session_key_changes_at_sign_in(cast: Cast) -> None:
    client = Client()
    client.get(ADDRESS)
    before = client.session.session_key
    client.post(ADDRESS, {"username": "reviewer", "password": PASSWORD})
    assert client.session.session_key != before


def test_a_form_from_elsewhere_cannot_sign_in(cast: Cast) -> None:
    foreign = Client(enforce_csrf_checks=True)
    assert foreign.post(ADDRESS, {"username": "reviewer", "password": PASSWORD}).status_code == 403
