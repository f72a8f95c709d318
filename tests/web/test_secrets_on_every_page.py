"""No page gives a secret of a card away unasked: not the card, its lists, its run or the trail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from agents_runtime.desk import OpenedPause, ReviewRequest
from agents_runtime.models import Pause
from reviewer.accounts.models import User
from reviewer.decisions import decide
from reviewer.intake import Desk
from reviewer.models import AuditEvent, ReviewTask
from tests.cast import Cast
from tests.deciding.making import decision_schema, pause_run
from tests.doors import ApiClient

ClientOf = Callable[[User], Client]
SCHEMA: Any = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "pin": {"type": "string", "writeOnly": True},
        "api_key": {"type": "string"},
        "inner": {
            "type": "array",
            "items": {"type": "object", "properties": {"pin": {"format": "password"}}},
        },
    },
}
ARGS = {"user": "ann", "pin": "hunter2-a", "api_key": "hunter2-b", "inner": [{"pin": "hunter2-c"}]}
CHANGED = {"user": "bob", "pin": "hunter2-d", "api_key": "hunter2-e", "inner": [{"pin": "hunter2-f"}]}
EDIT = {"type": "edit", "edited_action": {"name": "reset_login", "args": CHANGED}}
MAY_DECIDE = ("reviewer", "reviewer2", "lead")
READERS = (*MAY_DECIDE, "admin", "auditor", "developer")


def _request(**changes: Any) -> ReviewRequest:
    return ReviewRequest(
        **{
            "position": 0,
            "kind": "tool_call",
            "tool": "reset_login",
            "tool_call_id": "c1",
            "arguments": ARGS,
            "response_schema": decision_schema("reset_login", SCHEMA),
            "args_schema": SCHEMA,
            **changes,
        }
    )


@pytest.fixture
def tasks(cast: Cast) -> list[ReviewTask]:
    """Return a card that was decided with an edit, and the one that follows since the agent refused that."""
    first = pause_run(_request(), by=cast.developer)
    task = first.tasks.get()
    decide(task.pk, by=cast.reviewer, answer=EDIT, digest=task.digest)
    again = Pause.objects.create(
        run=first.run, interrupt_id="1" * 32, kind=first.kind, tool=first.tool, calls=first.calls,
        value=first.value, previous=first,
    )  # fmt: skip
    with transaction.atomic():
        Desk().run_paused(first.run, [OpenedPause(again, [_request(refused_answer=EDIT)])])
    return [task, again.tasks.get()]


@pytest.mark.parametrize("name", READERS)
def test_no_page_gives_a_secret_away_unasked(
    cast: Cast, client_of: ClientOf, tasks: list[ReviewTask], name: str
) -> None:
    client = client_of(cast.people[name])
    addresses = ["/", "/?view=decided", "/runs/", f"/runs/{tasks[0].run_id}/", "/audit/"]
    for task in tasks:
        addresses += [
            f"/tasks/{task.pk}/{query}" for query in ("", "?verdict=edit", "?verdict=reject", "?show=all")
        ]
    addresses += [f"/audit/{event.pk}/" for event in AuditEvent.objects.filter(run_id=tasks[0].run_id)]
    told = {address: client.get(address) for address in addresses}
    assert told[f"/tasks/{tasks[0].pk}/"].status_code == 200
    if name in MAY_DECIDE:  # their form starts from what a colleague typed, in fields for passwords
        del told[f"/tasks/{tasks[1].pk}/?verdict=edit"]
    leaks = [address for address, answer in told.items() if b"hunter2" in answer.content]
    assert leaks == []


@pytest.mark.parametrize("name", ["admin", "auditor"])
def test_programs_read_the_trail_without_secrets_too(
    cast: Cast, api_client: Callable[[User | None], ApiClient], tasks: list[ReviewTask], name: str
) -> None:
    answer = api_client(cast.people[name]).get(f"audit?run={tasks[0].run_id}&limit=200")
    assert answer.status_code == 200
    text = answer.content.decode()
    assert "decision.made" in text
    assert "bob" in text
    assert "hunter2" not in text
