"""The API as programs meet it: over real HTTP, through Daphne."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from tests.cast import Cast, token_of
from tests.deciding.making import APPROVE, open_refund
from tests.processes import Site


def ask(site: Site, method: str, path: str, *, token: str, body: bytes | None = None) -> tuple[int, Any]:
    link = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    try:
        link.request(
            method, path, body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        )
        response = link.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None
    finally:
        link.close()


def test_a_task_is_opened_and_decided(cast: Cast, live_server_process: Site) -> None:
    task, token = open_refund(by=cast.developer), token_of(cast.reviewer)
    status, card = ask(live_server_process, "GET", f"/api/v1/tasks/{task.pk}", token=token)
    assert (status, card["digest"]) == (200, task.digest)
    body = json.dumps({"answer": APPROVE, "digest": card["digest"]}).encode()
    address = f"/api/v1/tasks/{task.pk}/decision"
    assert ask(live_server_process, "POST", address, token=token, body=body)[0] == 200
    assert ask(live_server_process, "POST", address, token=token, body=body)[0] == 409


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v1/tasks/%00", None, 404),
        ("GET", "/api/v1/tasks/..%2f..%2faudit", None, 404),
        ("GET", "/api/v1/tasks?queue=%00", None, 422),
        ("GET", "/api/v1/tasks?run=%ff", None, 422),
        ("POST", "/api/v1/runs", b"\xff", 400),
        ("POST", "/api/v1/runs", b'{"a": NaN}', 422),
        ("POST", "/api/v1/runs", b"x" * (9 * 1024 * 1024), 413),
        ("DELETE", "/api/v1/audit", None, 405),
    ],
)
def test_nonsense_gets_a_clear_answer_and_the_site_lives_on(
    cast: Cast, live_server_process: Site, method: str, path: str, body: bytes | None, status: int
) -> None:
    token = token_of(cast.lead)
    found, answer = ask(live_server_process, method, path, token=token, body=body)
    assert (found, set(answer)) == (status, {"error", "message", "problems", "who", "when", "tasks"})
    assert ask(live_server_process, "GET", "/api/v1/tasks", token=token)[0] == 200
