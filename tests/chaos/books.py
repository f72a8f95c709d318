"""Do the books balance? The invariants in SQL, and the product's own check of its audit trail."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import psycopg
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from tests.agents import effects
from tests.chaos import invariants
from tests.chaos.invariants import Told
from tests.servers import servers

PAGE = 200


def check(told: Iterable[Told], *, reader: str) -> list[str]:
    """Return what does not balance; ``reader`` is the token of somebody who sees every queue."""
    with psycopg.connect(servers().superuser_url) as link:
        invariants.load(link, effects=effects.all_effects(), told=told, listed=_open_tasks(reader))
        return invariants.violations(link) + _faults_of_trail()


def open_anew() -> None:
    """Begin to watch, before a schedule."""
    with psycopg.connect(servers().superuser_url) as link:
        invariants.prepare(link)


def _open_tasks(reader: str) -> list[str]:
    query = f"status=open&limit={PAGE}"
    headers = {"authorization": f"Bearer {reader}"}
    response: Any = Client(SERVER_NAME="127.0.0.1").get(f"/api/v1/tasks?{query}", headers=headers)
    return [item["id"] for item in response.json()["items"]]


def _faults_of_trail() -> list[str]:
    faults = io.StringIO()
    try:
        call_command("audit", "verify", stdout=io.StringIO(), stderr=faults)
    except CommandError:
        return [f"I-4 the trail agrees with itself: {line}" for line in faults.getvalue().splitlines()]
    return []
