"""API tokens: shown once, stored hashed, closed for good."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from reviewer import tokens
from reviewer.accounts.models import ApiToken, hash_secret
from reviewer.models import AuditEvent
from tests.cast import Cast, token_of
from tests.doors import ApiClient


def status_with(authorization: str) -> int:
    return Client().get("/api/v1/tasks", headers={"authorization": authorization}).status_code


def test_only_the_hash_of_a_token_is_stored(cast: Cast) -> None:
    secret = token_of(cast.reviewer)
    stored = ApiToken.objects.get(user=cast.reviewer)
    assert stored.secret_hash == hash_secret(secret)
    assert secret not in repr(ApiToken.objects.values())


def test_issuing_and_revoking_stand_in_the_trail_without_the_secret(cast: Cast) -> None:
    token, secret = tokens.issue(cast.reviewer, name="nightly", by=cast.admin)
    tokens.revoke(token, by=cast.admin)
    tokens.revoke(token, by=cast.admin)
    events = AuditEvent.objects.filter(type__startswith="token.").order_by("pk")
    assert [event.type for event in events] == ["token.issued", "token.revoked"]
    assert not any(secret in event.payload for event in events)


def test_a_revoked_token_opens_nothing(cast: Cast) -> None:
    token, secret = tokens.issue(cast.reviewer)
    assert status_with(f"Bearer {secret}") == 200
    tokens.revoke(token)
    assert status_with(f"Bearer {secret}") == 401


def test_the_token_of_a_person_who_left_opens_nothing(cast: Cast) -> None:
    secret = token_of(cast.reviewer)
    cast.reviewer.is_active = False
    cast.reviewer.save()
    assert status_with(f"Bearer {secret}") == 401


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer ", "Bearer nonsense", "Basic cmV2aWV3ZXI6eA==", "Bearer \xff\xfe"]
)
def test_anything_else_opens_nothing(cast: Cast, authorization: str) -> None:
    assert status_with(authorization) == 401


def test_a_signed_in_browser_opens_nothing_without_a_token(
    cast: Cast, client_of: Callable[..., Client]
) -> None:
    assert client_of(cast.admin).get("/api/v1/tasks").status_code == 401


def test_the_last_use_is_noted_once_a_minute(cast: Cast, api_client: Callable[..., ApiClient]) -> None:
    program = api_client(cast.reviewer)
    program.get("tasks")
    first = ApiToken.objects.get(user=cast.reviewer).last_used_at
    program.get("tasks")
    assert first is not None
    assert ApiToken.objects.get(user=cast.reviewer).last_used_at == first
