"""Whatever a request holds, it is answered on purpose: found, refused, or told what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from reviewer.accounts.models import User
from tests.cast import Cast
from tests.deciding.making import open_refund

ClientOf = Callable[[User], Client]
ODD = (
    "\x00",
    "²",
    "9" * 5_000,
    "-1",
    "9" * 25,
    "9999-12-31",
    "0001-01-01",
    "<script>",
    "\r\nX: y",
    "é" * 3_000,
)
FILTERS = [
    "after",
    "agent",
    "before",
    "cursor",
    "from",
    "mine",
    "next",
    "outcome",
    "page",
    "period",
    "person",
]
FILTERS += [
    "policy",
    "q",
    "queue",
    "risk",
    "run",
    "scope",
    "since",
    "status",
    "task",
    "tool",
    "type",
    "until",
]
FILTERS += ["verdict", "view"]


@pytest.mark.parametrize("odd", ODD)
def test_no_filter_of_a_page_breaks_it(cast: Cast, client_of: ClientOf, odd: str) -> None:
    task = open_refund(by=cast.developer)
    pages = [
        "/",
        "/runs/",
        "/runs/start/",
        "/agents/",
        "/queues/",
        "/queues/payments/",
        "/audit/",
        "/workload/",
    ]
    pages += [f"/tasks/{task.pk}/", f"/tasks/{task.pk}/pane/", f"/runs/{task.run_id}/", "/search/"]
    client = client_of(cast.admin)
    for page in pages:
        response = client.get(page, dict.fromkeys(FILTERS, odd))
        assert response.status_code < 500, page
        assert response.headers.get("Location", "/").startswith("/")


@pytest.mark.parametrize("odd", ODD)
def test_no_field_of_a_form_breaks_it(cast: Cast, client_of: ClientOf, odd: str) -> None:
    task = open_refund(by=cast.developer)
    doors: dict[str, tuple[str, ...]] = {
        "/queues/": ("name", "description"),
        "/queues/payments/rename/": ("name", "description"),
        "/queues/payments/members/": ("user", "leads"),
        "/queues/payments/members/remove/": ("user",),
        "/queues/payments/policies/": ("name", "agent", "tool", "risk", "minutes"),
        f"/tasks/{task.pk}/assign/": ("user", "next"),
        f"/tasks/{task.pk}/move/": ("queue", "next"),
        f"/tasks/{task.pk}/decide/": ("verdict", "digest", "claim_version", "reason_code", "comment", "from"),
        f"/runs/{task.run_id}/settle/": ("outcome", "result", "execution"),
        "/runs/start/refunds/": ("op", "value"),
    }
    fitting = {
        "name": "Fit",
        "risk": "low",
        "verdict": "approve",
        "digest": task.digest,
        "outcome": "happened",
    }
    client = client_of(cast.lead)
    for door, names in doors.items():
        for name in names:
            response = client.post(door, {**fitting, name: odd})
            assert response.status_code < 500, (door, name)


@pytest.mark.parametrize("header", ["HX-Current-URL", "HX-Target", "Referer", "Accept-Language"])
@pytest.mark.parametrize("odd", ["http://[", "\x85", "é", "x" * 5_000, "//elsewhere.example/", "de;q=²"])
def test_no_header_breaks_a_decision(cast: Cast, client_of: ClientOf, header: str, odd: str) -> None:
    task = open_refund(by=cast.developer)
    headers: Any = {header: odd, "HX-Request": "true"}
    form = {"verdict": "approve", "digest": task.digest, "from": "inbox"}
    response = client_of(cast.reviewer).post(f"/tasks/{task.pk}/decide/", form, headers=headers)
    assert response.status_code < 500


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "9999-12-31"])
def test_the_trail_of_a_moment_outside_the_calendar_is_refused(
    cast: Cast, api_client: Callable[[User | None], Any], moment: str
) -> None:
    for name in ("since", "until"):
        assert api_client(cast.admin).get("audit", **{name: moment}).status_code == 422


def test_half_a_character_in_an_input_is_told(cast: Cast, api_client: Callable[[User | None], Any]) -> None:
    open_refund(by=cast.developer)
    body = b'{"agent": "refunds", "input": {"order_id": "\\ud800", "complaint": "x"}}'
    answer = api_client(cast.developer).post("runs", raw=body)
    assert answer.status_code == 422
