"""Fixtures that knock at the product's doors inside this process: pages and the API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from reviewer.accounts.models import User
from tests.cast import token_of


class ApiClient:
    """One person's program: knows the token, sends JSON exactly as given, returns Django's response."""

    def __init__(self, person: User | None) -> None:
        self._client = Client(enforce_csrf_checks=True)
        self._headers = {"authorization": f"Bearer {token_of(person)}"} if person else {}

    def get(self, path: str, **query: Any) -> Any:
        """GET ``/api/v1/<path>``."""
        return self._client.get(f"/api/v1/{path}", query, headers=self._headers)

    def post(self, path: str, body: Any = None, *, key: str = "", raw: bytes | None = None) -> Any:
        """POST ``body`` as JSON, or ``raw`` bytes as they are; ``key`` is the Idempotency-Key."""
        content = json.dumps(body).encode() if raw is None else raw
        headers = self._headers | ({"idempotency-key": key} if key else {})
        return self._client.post(f"/api/v1/{path}", content, content_type="application/json", headers=headers)


@pytest.fixture
def api_client(database: None) -> Callable[[User | None], ApiClient]:
    """Make a program of a person: ``api_client(cast.reviewer).get("tasks")``."""
    return ApiClient


@pytest.fixture
def client_of(database: None) -> Callable[[User], Client]:
    """Make a signed-in client of the pages, without CSRF: ``client_of(cast.reviewer).get("/")``."""

    def signed_in(person: User) -> Client:
        client = Client()
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return signed_in


def json_of(response: Any) -> Any:
    """Return the exact JSON of a response."""
    return json.loads(response.content)
