"""Cards of every kind in a real Chromium: accessible in both themes, fitting a phone, and running nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from playwright.sync_api import Page

from agents_runtime.canonical import encode, encode_in_order
from agents_runtime.desk import OpenedPause
from agents_runtime.models import AgentSpec, Pause, Run
from agents_runtime.payloads import read
from agents_runtime.states import RunStatus
from agents_runtime.thread_state import RaisedInterrupt
from reviewer.intake import Desk
from reviewer.models import ReviewTask
from tests.cards.test_agent_prose import ATTACKS
from tests.cast import Cast
from tests.journeys.test_every_page import faults

pytestmark = pytest.mark.browser

SAID = """## Why

Charged **twice**, `88041`:

1. the *same* amount
2. [the case](https://evil.example/x)

| charge | amount |
| - | - |
| ch_1 | 184.00 |

> P-12 \u202e

```json
{"order": 88041}
```
"""
STRING: Any = {"type": "string"}
LINE: Any = {
    "type": "object",
    "properties": {"sku": STRING, "quantity": {"type": "integer"}, "price": STRING},
    "required": ["sku", "quantity", "price"],
}
GUEST: Any = {"type": "object", "properties": {"name": STRING, "roles": {"type": "array", "items": STRING}}}
ARGS: Any = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": r"^[A-Z]{3}-\d{6}$"},
        "lines": {"type": "array", "items": LINE},
        "guests": {"type": "array", "items": GUEST},
        "address": {"type": "object", "properties": {"city": STRING}},
        "tags": {"type": "array", "items": STRING},
        "api_key": STRING,
        "note": STRING,
    },
}
VALUE: Any = {
    "order_id": "ORD-000123",
    "lines": [
        {"sku": "A-1", "quantity": 2, "price": "19.90"},
        {"sku": "B-77", "quantity": 1, "price": "1.20"},
    ],
    "guests": [{"name": "Ann", "roles": ["chair", "minutes"]}, {"name": "Bo " * 30, "roles": []}],
    "address": {"city": "Hamburg"},
    "tags": ["vip", "duplicate"],
    "api_key": "sk-live-1",
}
KINDS: dict[str, tuple[Any, Any, bool]] = {
    "batch": (
        {
            "action_requests": [{"name": "refund", "args": VALUE}],
            "review_configs": [{"action_name": "refund", "allowed_decisions": ["approve", "edit", "reject"]}],
        },
        None,
        True,
    ),
    "legacy": (
        [
            {
                "action_request": {"action": "Send mail", "args": {"to": "ann@example.org"}},
                "config": {"allow_accept": True, "allow_edit": True, "allow_ignore": True},
                "description": SAID,
            }
        ],
        None,
        True,
    ),
    "question": ("Which rule?", None, False),
    "draft": (
        {"draft": SAID, "channel": "blog"},
        {"type": "object", "properties": {"go": {"type": "boolean"}}},
        False,
    ),
    "json": ({"a": [[1, 2], [3]], "b": [1, "x", {"c": None}]}, None, False),
}


@transaction.atomic
def open_card(cast: Cast, value: Any, schema: Any = None, *, said: str = SAID) -> ReviewTask:
    """Open the cards of what an agent raised, and return the first."""
    tools = {"refund": {"title": "Refund {order_id}", "args_schema": ARGS}}
    spec, _ = AgentSpec.objects.get_or_create(name="kinds", defaults={"source": "tests", "entry": "kinds"})
    known = AgentSpec(tools=encode_in_order(tools))
    found = read(RaisedInterrupt("0" * 32, value, schema, "ask:1"), known, [])
    run = Run.objects.create(
        agent=spec, input="{}", requested_by=cast.developer.reference, status=RunStatus.WAITING, epoch=1
    )
    pause = Pause.objects.create(run=run, interrupt_id="0" * 32, kind=found.kind, value=encode(None))
    Desk().run_paused(run, [OpenedPause(pause, found.requests)])
    task = ReviewTask.objects.filter(pause=pause).order_by("position")[0]
    ReviewTask.objects.filter(pk=task.pk).update(said=said)
    return task


def test_every_kind_of_card_is_accessible_in_both_themes_and_fits_a_phone(
    cast: Cast, page_of: Callable[..., Page]
) -> None:
    page = page_of(cast.reviewer, bypass_csp=True)  # axe tries inline styles
    found: list[str] = []
    for value, schema, can_edit in KINDS.values():
        task = open_card(cast, value, schema)
        for query in ("", "?verdict=edit") if can_edit else ("",):
            page.goto(f"/tasks/{task.pk}/{query}")
            for summary in page.locator("main summary").all():
                summary.click()
            found += faults(page)
    assert found == []


def test_nothing_that_an_agent_says_runs_or_reports(cast: Cast, page_of: Callable[..., Page]) -> None:
    page = page_of(cast.reviewer)  # any console message or report of the policy fails the test
    page.add_init_script("window.alert = () => { document.title = 'RAN'; }")
    said = "\n\n".join(ATTACKS)
    for text in (said, said.replace("\n\n", "\n")):
        task = open_card(cast, {"draft": text, "x": text[:200]}, said=text)
        page.goto(f"/tasks/{task.pk}/")
        for summary in page.locator("main summary").all():
            summary.click()
        fences = page.locator(".fence")
        assert fences.count() >= 2
        assert fences.locator("a, img, button, form, iframe, script, style, h1, h2, h3").count() == 0
        assert "RAN" not in page.title()
