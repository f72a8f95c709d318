"""A card on its page: what its buttons say, what agents' words look like, secrets shown on request."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page as BrowserPage

from agents_runtime.canonical import decode
from agents_runtime.desk import ReviewRequest
from agents_runtime.payloads import read_breakpoint
from reviewer import claims, decisions
from reviewer.accounts.models import User
from reviewer.models import AuditEvent, Decision, Expansion, ReviewTask, Snapshot
from tests.cards.browser import Page
from tests.cast import Cast
from tests.deciding.making import APPROVE, decision_schema, pause_run, refund

ClientOf = Callable[[User], Client]
SCHEMA: Any = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "password": {"type": "string", "format": "password", "writeOnly": True},
        "note": {"type": "string"},
    },
    "required": ["user", "password", "note"],
}
ARGS = {"user": "ann", "password": "hunter2", "note": "n"}
SAID = "It is **urgent**, see [the case](https://evil.example/x?a=1).\n\n# Approved by Compliance \u202e"
AT = "/edited_action/args"


def open_card(cast: Cast, **changes: Any) -> ReviewTask:
    request = ReviewRequest(
        **{
            "position": 0,
            "kind": "tool_call",
            "tool": "reset_login",
            "tool_call_id": "c1",
            "arguments": ARGS,
            "response_schema": decision_schema("reset_login", SCHEMA),
            "args_schema": SCHEMA,
            "said": SAID,
            **changes,
        }
    )
    return pause_run(request, by=cast.developer).tasks.get()


def page_of_task(client: Client, task: ReviewTask, query: str = "") -> str:
    return str(client.get(f"/tasks/{task.pk}/{query}").content.decode())


def form_of(html: str) -> Page:
    found = re.search(r'<form[^>]*id="decide-[^"]*".*?</form>', html, re.S)
    assert found is not None
    return Page(found[0])


def send(client: Client, task: ReviewTask, html: str, operation: str | None = None, **typed: str) -> str:
    fields = form_of(html).post_with(operation, typed)
    return str(client.post(f"/tasks/{task.pk}/decide/", fields).content.decode())


def label(html: str) -> str:
    return str(re.findall(r"data-send-label>([^<]*)<", html)[0])


def test_without_a_script_the_button_says_how_much_an_edit_changes_once_the_server_has_seen_it(
    cast: Cast, client_of: ClientOf
) -> None:
    task, client = open_card(cast), client_of(cast.reviewer)
    html = page_of_task(client, task, "?verdict=edit")
    assert label(html) == "Approve with changes"
    one = send(client, task, html, "refresh", **{f"v:{AT}/user": "bo"})
    assert label(one) == "Approve with 1 change"
    two = send(client, task, one, "refresh", **{f"v:{AT}/note": "m"})
    assert label(two) == "Approve with 2 changes"
    assert "Your version becomes" in two


def test_an_edit_that_changes_nothing_offers_to_approve_instead(cast: Cast, client_of: ClientOf) -> None:
    task, client = open_card(cast), client_of(cast.reviewer)
    html = send(client, task, page_of_task(client, task, "?verdict=edit"))
    assert "You changed nothing" in html
    button = next(control for control in form_of(html).controls if control.attrs.get("value") == "approve")
    assert (button.tag, button.name) == ("button", "verdict")
    assert not Decision.objects.exists()


@pytest.mark.browser
def test_with_a_script_the_button_follows_the_typing(cast: Cast, page_of: Callable[..., BrowserPage]) -> None:
    task = open_card(cast)
    page = page_of(cast.reviewer)
    page.goto(f"/tasks/{task.pk}/?verdict=edit")
    page.fill(f'[name="v:{AT}/user"]', "bo")
    page.get_by_role("button", name="Approve with 1 change").wait_for()
    page.fill(f'[name="v:{AT}/note"]', "m")
    page.get_by_role("button", name="Approve with 2 changes").wait_for()
    page.fill(f'[name="v:{AT}/note"]', "n")
    page.get_by_role("button", name="Approve with 1 change").wait_for()


def test_what_the_agent_says_is_fenced_text_without_a_link_or_a_heading(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_card(cast, description="Look **twice**.")
    html = page_of_task(client_of(cast.reviewer), task)
    fence = re.findall(r'<div class="fence"><p class="fence__label">.*?</details></div>', html, re.S)[0]
    assert "<strong>urgent</strong>, see the case (https://evil.example/x?a=1)" in fence
    assert "<p><strong>Approved by Compliance <span" in fence
    assert not re.search(r"<(a|h\d|img|button|form)\b", fence)
    assert "As it was written" in fence
    assert "<strong>twice</strong>" in html
    assert "1 hidden character shown" in html


def test_a_secret_is_shown_to_whom_asks_without_a_script_and_the_trail_says_so(
    cast: Cast, client_of: ClientOf
) -> None:
    task, client = open_card(cast), client_of(cast.reviewer)
    html = page_of_task(client, task)
    assert "hunter2" not in html
    (link,) = re.findall(rf'href="(/tasks/{task.pk}/\?show=\w+)"', html)
    shown = client.get(link).content.decode()
    assert "hunter2" in shown
    (expansion,) = Expansion.objects.all()
    assert (expansion.pointer, expansion.person) == ("password", cast.reviewer)
    event = AuditEvent.objects.get(type="card.expanded")
    assert decode(event.payload)["facts"]["parts"] == "password"
    assert "hunter2" not in page_of_task(client_of(cast.reviewer2), task)
    assert client.get(link).content.decode().count("hunter2") == 1
    assert AuditEvent.objects.filter(type="card.expanded").count() == 1


def test_showing_a_secret_in_the_form_is_recorded_as_well(cast: Cast, client_of: ClientOf) -> None:
    task, client = open_card(cast), client_of(cast.reviewer)
    html = page_of_task(client, task, "?verdict=edit")
    assert "input--secret" in html
    html = send(client, task, html, f"uncover:{AT}/password", **{f"v:{AT}/user": "bo"})
    assert "input--secret" not in html
    assert form_of(html).post()[f"v:{AT}/user"] == ["bo"]
    assert [one.pointer for one in Expansion.objects.all()] == ["password"]


def test_editing_as_json_shows_secrets_and_is_recorded(cast: Cast, client_of: ClientOf) -> None:
    task, client = open_card(cast), client_of(cast.reviewer)
    html = send(client, task, page_of_task(client, task, "?verdict=edit"), f"raw:{AT}")
    assert "hunter2" in html
    assert [one.pointer for one in Expansion.objects.all()] == ["password"]


@pytest.mark.parametrize("moved_on", ["decided", "claimed"])
def test_an_edit_that_comes_too_late_is_kept_without_the_secrets_that_nobody_asked_to_see(
    cast: Cast, client_of: ClientOf, moved_on: str
) -> None:
    task, client = open_card(cast), client_of(cast.reviewer)
    html = page_of_task(client, task, "?verdict=edit")
    if moved_on == "claimed":
        claims.claim(task.pk, by=cast.reviewer2)
    else:
        decisions.decide(task.pk, by=cast.reviewer2, answer=APPROVE, digest=task.digest, via="api")

    late = send(client, task, html, **{f"v:{AT}/user": "bo", "comment": "My own words"})

    kept = re.findall(r"<textarea[^>]*readonly[^>]*>(.*?)</textarea>", late, re.S)[0]
    assert "bo" in kept
    assert "My own words" in kept
    assert "hunter2" not in late
    assert Expansion.objects.count() == 0


def test_a_write_only_value_is_neither_in_the_kept_view_nor_in_the_trail_and_the_agent_gets_it(
    cast: Cast, client_of: ClientOf
) -> None:
    task, client = open_card(cast), client_of(cast.reviewer)
    html = page_of_task(client, task, "?verdict=edit")
    send(client, task, html, **{f"v:{AT}/password": "correct horse", f"v:{AT}/user": "bo"})
    decision = Decision.objects.get()
    assert decode(decision.answer)["edited_action"]["args"]["password"] == "correct horse"
    kept = "".join(Snapshot.objects.values_list("html", flat=True))
    told = "".join(AuditEvent.objects.values_list("payload", flat=True))
    for secret in ("hunter2", "correct horse"):
        assert secret not in kept
        assert secret not in told + decision.changes + task.title
    assert '"user":"bo"' in told.replace("\\", "")
    page = page_of_task(client, task)
    assert "hunter2" not in page
    assert "correct horse" not in page


def test_whoever_may_only_read_a_card_is_offered_no_way_to_its_secrets(
    cast: Cast, client_of: ClientOf
) -> None:
    task, client = open_card(cast), client_of(cast.developer)
    html = page_of_task(client, task)
    assert "••••••••" in html
    assert "?show=" not in html
    part = page_of_task(client_of(cast.reviewer), task).split("?show=")[1].split('"')[0]
    assert "hunter2" not in page_of_task(client, task, f"?show={part}")
    assert not Expansion.objects.exists()


def test_each_action_of_a_batch_says_which_of_how_many_it_is(cast: Cast, client_of: ClientOf) -> None:
    actions = [refund(0), refund(1, order="A-2"), refund(2, order="A-3")]
    tasks = list(pause_run(*actions, by=cast.developer).tasks.order_by("position"))
    client = client_of(cast.reviewer)
    for number, task in enumerate(tasks, 1):
        assert f"Action <b>{number} of 3</b>, sent together" in page_of_task(client, task)
    assert "sent together" not in page_of_task(client, open_card(cast))


def test_a_breakpoint_is_one_button_that_says_what_it_does(cast: Cast, client_of: ClientOf) -> None:
    (request,) = read_breakpoint(["pay", "tell"]).requests
    task = pause_run(request, by=cast.developer).tasks.get()
    client = client_of(cast.reviewer)
    html = page_of_task(client, task)
    assert task.title == "Continue with pay, tell"
    assert 'name="verdict" value="answer"' in html
    assert "Continue<kbd" in html
    client.post(
        f"/tasks/{task.pk}/decide/", {"verdict": "answer", "digest": task.digest, "claim_version": "0"}
    )
    assert decode(Decision.objects.get().answer) == "continue"
