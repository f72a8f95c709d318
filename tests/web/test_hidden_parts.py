"""A card of high risk is approved only by somebody who opened all of it; the server knows who opened what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from agents_runtime.canonical import Json, decode, encode
from agents_runtime.desk import ReviewRequest
from reviewer import claims, decisions, openings
from reviewer.errors import Unread
from reviewer.models import AuditEvent, Decision, Expansion, ReviewTask
from reviewer.shown import card_of
from tests.cast import Cast
from tests.deciding.making import APPROVE, REJECT, decision_schema, pause_run
from tests.doors import ApiClient, json_of
from tests.journeys.test_every_page import faults
from tests.web.markup import Markup, read
from tests.web.test_deciding_on_the_page import HTMX, bare, fields, send

ClientOf = Callable[..., Client]

BODY = "Dear customer, " + "we are sorry. " * 60 + "Pay to account EVIL-1."
LIST = [f"order {n}" for n in range(30)]
ARGUMENTS: Json = {"to": "a@example.org", "body": BODY, "orders": LIST}


def mail(risk: str = "high", arguments: Json = ARGUMENTS, *, schema: Json = None) -> ReviewRequest:
    return ReviewRequest(
        position=0,
        kind="tool_call",
        tool="announce",
        tool_call_id="call-0",
        arguments=arguments,
        response_schema=schema or decision_schema("announce", {"type": "object"}),
        risk=risk,
        title_template="Announce to {to}",
    )


@pytest.fixture
def task(cast: Cast) -> ReviewTask:
    return pause_run(mail(), by=cast.developer).tasks.get()


def openers(page: Markup) -> list[str]:
    """Return the addresses that open a hidden part."""
    return [href for href in page.values("href") if "show=" in href]


def approve(task: ReviewTask, person: Any, answer: Json = APPROVE) -> Decision:
    return decisions.decide(task.pk, by=person, answer=answer, digest=task.digest)


def test_a_hidden_part_is_not_on_the_page_until_its_link_is_followed(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    client = client_of(cast.reviewer)
    page = read(client.get(f"/tasks/{task.pk}/"))
    assert BODY not in page.text
    assert "EVIL-1." in page.text  # the tail of it is
    assert "order 29" not in page.text
    assert "2 parts are still hidden." in page.text
    first = next(href for href in openers(page) if not href.endswith("show=all"))
    after = read(client.get(first))
    assert BODY in after.text
    assert "1 part is still hidden." in after.text
    assert [one.pointer for one in Expansion.objects.filter(person=cast.reviewer)] == ["body"]


def test_approving_is_refused_with_what_is_left_to_open_and_accepted_afterwards(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    client = client_of(cast.reviewer)
    client.get(f"/tasks/{task.pk}/")
    refused = send(client, task, bare(task, "approve"))
    page = read(refused)
    assert refused.status_code == 422
    assert "2 parts of this card are still hidden. Open them before you approve." in page.text
    assert {"Show it: body", "Show it: orders"} <= set(page.values("aria-label"))
    assert len(openers(page)) == 5  # beside each part, in the notice, and the one for all
    assert not Decision.objects.exists()
    client.get(f"/tasks/{task.pk}/?show=all")
    assert send(client, task, bare(task, "approve")).status_code == 302
    assert Decision.objects.get().verdict == "approve"


def test_what_one_person_opened_does_not_count_for_another(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    client_of(cast.reviewer).get(f"/tasks/{task.pk}/?show=all")
    with pytest.raises(Unread):
        approve(task, cast.reviewer2)
    assert approve(task, cast.reviewer).verdict == "approve"


def test_a_rejection_needs_nothing_opened(task: ReviewTask, cast: Cast) -> None:
    assert approve(task, cast.reviewer, REJECT).verdict == "reject"


@pytest.mark.parametrize("risk", ["low", "medium"])
def test_a_card_of_less_risk_opens_in_place_and_waits_for_nothing(
    cast: Cast, client_of: ClientOf, risk: str
) -> None:
    task = pause_run(mail(risk), by=cast.developer).tasks.get()
    page = read(client_of(cast.reviewer).get(f"/tasks/{task.pk}/"))
    assert openers(page) == []
    assert BODY in page.text
    assert approve(task, cast.reviewer).verdict == "approve"


@pytest.mark.parametrize("who", ["reviewer", "auditor"])
def test_a_huge_text_of_any_risk_comes_only_when_it_is_asked_for(
    cast: Cast, client_of: ClientOf, who: str
) -> None:
    huge = "BEGIN " + "lorem ipsum " * 87_000 + "END"
    task = pause_run(mail("low", {"body": huge}), by=cast.developer).tasks.get()
    client = client_of(cast.people[who])
    response = client.get(f"/tasks/{task.pk}/")
    assert len(response.content) < 60_000
    (link,) = openers(read(response))
    assert huge in client.get(link).content.decode()
    assert approve(task, cast.reviewer2).verdict == "approve"  # which waits for nothing


def test_a_card_of_high_risk_that_hides_nothing_waits_for_nothing(cast: Cast, client_of: ClientOf) -> None:
    task = pause_run(mail(arguments={"to": "a@example.org"}), by=cast.developer).tasks.get()
    assert openers(read(client_of(cast.reviewer).get(f"/tasks/{task.pk}/"))) == []
    assert approve(task, cast.reviewer).verdict == "approve"


def test_the_form_of_an_edit_hides_nothing_so_it_counts_as_opened(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    edit = {
        "type": "edit",
        "edited_action": {"name": "announce", "args": {**ARGUMENTS, "to": "b@example.org"}},
    }
    with pytest.raises(Unread):
        approve(task, cast.reviewer, edit)
    page = client_of(cast.reviewer).get(f"/tasks/{task.pk}/?verdict=edit")
    assert BODY in page.content.decode()
    assert approve(task, cast.reviewer, edit).verdict == "edit"


@pytest.mark.parametrize("who", ["auditor", "developer", "reviewer2"])
def test_an_address_of_a_form_that_does_not_open_opens_nothing(
    task: ReviewTask, cast: Cast, client_of: ClientOf, who: str
) -> None:
    claims.claim(task.pk, by=cast.reviewer)
    page = client_of(cast.people[who]).get(f"/tasks/{task.pk}/?verdict=edit")
    assert BODY not in page.content.decode()
    assert not Expansion.objects.exists()


def test_asking_for_an_edit_where_none_is_allowed_opens_nothing(cast: Cast, client_of: ClientOf) -> None:
    schema: Json = {
        "oneOf": [
            {"type": "object", "properties": {"type": {"const": tag}}, "required": ["type"]}
            for tag in ("approve", "reject")
        ]
    }
    task = pause_run(mail(schema=schema), by=cast.developer).tasks.get()
    client_of(cast.reviewer).get(f"/tasks/{task.pk}/?verdict=edit")
    with pytest.raises(Unread):
        approve(task, cast.reviewer)


def test_a_form_that_starts_from_a_refused_answer_does_not_show_the_proposal_by_itself(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    args = {**ARGUMENTS, "body": "Short", "orders": []}
    refused = {"type": "edit", "edited_action": {"name": "announce", "args": args}}
    ReviewTask.objects.filter(pk=task.pk).update(refused_answer=encode(refused))
    client = client_of(cast.reviewer)
    page = read(client.get(f"/tasks/{task.pk}/?verdict=edit"))
    assert "What the agent proposes" in page.text
    assert not Expansion.objects.exists()
    opener = next(one for one in page.all("button", name="_op") if one.attributes["value"] == "show:all")
    assert opener.attributes["form"] == f"decide-{task.pk}"
    opened = send(client, task, fields(page) | {"_op": "show:all"})
    for answer in (opened, client_of(cast.reviewer2).get(f"/tasks/{task.pk}/?verdict=edit&show=all")):
        assert "What the agent proposes" in read(answer).text
        assert "order 29" in read(answer).text
        assert "Short" in answer.content.decode()
    assert {one.pointer for one in Expansion.objects.all()} == {"body", "orders"}


def test_an_answer_of_its_own_shape_may_approve_so_it_waits_too(cast: Cast) -> None:
    request = ReviewRequest(
        position=0, kind="question", arguments=BODY, response_schema={"type": "boolean"}, risk="critical"
    )
    task = pause_run(request, by=cast.developer).tasks.get()
    with pytest.raises(Unread, match="1 part of this card is still hidden"):
        approve(task, cast.reviewer, answer=True)
    openings.open_all_parts(task, by=cast.reviewer, via="web")
    assert decode(approve(task, cast.reviewer, answer=True).answer) is True


def test_a_refusal_keeps_what_was_typed_and_a_button_opens_without_losing_it(
    cast: Cast, client_of: ClientOf
) -> None:
    task = pause_run(mail("critical"), by=cast.developer).tasks.get()
    client = client_of(cast.reviewer)
    data = fields(read(client.get(f"/tasks/{task.pk}/?verdict=approve"))) | {"comment": "Asked legal first"}
    refused = send(client, task, data)
    page = read(refused)
    assert refused.status_code == 422
    assert "Asked legal first" in page.text
    buttons = [one for one in page.all("button", name="_op") if one.attributes["value"].startswith("show:")]
    assert {one.attributes["form"] for one in buttons} == {f"decide-{task.pk}"}
    opened = send(client, task, data | {"_op": "show:all"})
    page = read(opened)
    assert opened.status_code == 200
    assert BODY in page.text
    assert "Asked legal first" in page.text
    assert not Decision.objects.exists()
    assert send(client, task, data).status_code == 302
    assert Decision.objects.get().comment == "Asked legal first"


def test_enter_in_a_form_never_opens_a_hidden_part_by_itself(cast: Cast, client_of: ClientOf) -> None:
    task = pause_run(mail("critical"), by=cast.developer).tasks.get()
    page = read(client_of(cast.reviewer).get(f"/tasks/{task.pk}/?verdict=approve"))
    form = f"decide-{task.pk}"
    submits = [one for one in page.all("button", type="submit") if one.attributes.get("form") == form]
    assert submits[0].attributes["value"] == "refresh"  # the browser presses the first one for Enter


def test_a_pane_opens_a_part_in_place_and_focuses_it(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    response = client_of(cast.reviewer).get(f"/tasks/{task.pk}/pane/?from=inbox&show=all", headers=HTMX)
    page = read(response)
    assert b"<html" not in response.content
    assert len(page.all(autofocus="")) == 1
    assert "order 29" in page.text


def test_in_the_inbox_a_part_opens_without_javascript_and_the_card_stays_beside_the_list(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    client = client_of(cast.reviewer)
    links = openers(read(client.get(f"/?task={task.pk}")))
    assert {urlsplit(href).path for href in links} == {"/"}
    page = read(client.get(next(href for href in links if href.endswith("show=all"))))
    assert "order 29" in page.text
    assert page.has("data-inbox")


def test_the_trail_tells_once_who_opened_which_parts(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    for _ in range(3):
        client_of(cast.reviewer).get(f"/tasks/{task.pk}/?show=all")
    event = AuditEvent.objects.get(type="card.expanded", task_id=task.pk)
    facts = decode(event.payload)["facts"]
    assert event.actor == cast.reviewer
    assert (facts["parts"], facts["count"], facts["via"]) == ("body, orders", 2, "web")
    assert facts["digest"] == task.digest


@pytest.mark.parametrize("part", ["", "nonsense", "0" * 16, "../", "\u202e", "all\u0000"])
def test_an_unknown_part_opens_nothing(task: ReviewTask, cast: Cast, client_of: ClientOf, part: str) -> None:
    client_of(cast.reviewer).get(f"/tasks/{task.pk}/", {"show": part})
    assert not Expansion.objects.exists()


def test_a_browser_that_only_fetches_ahead_has_opened_nothing(
    task: ReviewTask, cast: Cast, client_of: ClientOf
) -> None:
    ahead = {"sec-purpose": "prefetch"}
    client_of(cast.reviewer).get(f"/tasks/{task.pk}/?show=all", headers=ahead)
    client_of(cast.reviewer).get(f"/?task={task.pk}&show=all", headers=ahead)
    assert not Expansion.objects.exists()
    assert not task.openings.exists()


def test_keys_of_any_length_and_sign_have_a_link(cast: Cast, client_of: ClientOf) -> None:
    arguments = {"\ud800/~\u202e\n" + "k" * 5_000: {"": BODY}, "all": BODY}
    task = pause_run(mail(arguments=arguments), by=cast.developer).tasks.get()
    client = client_of(cast.reviewer)
    page = read(client.get(f"/tasks/{task.pk}/"))
    for href in openers(page):
        assert len(href) < 120
    for href in openers(page):
        if not href.endswith("=all"):
            client.get(href)
    assert openings.unread_parts(task, card_of(task), by=cast.reviewer) == []


# The API


def test_a_program_that_got_the_card_has_opened_all_of_it(
    task: ReviewTask, cast: Cast, api_client: Callable[..., ApiClient]
) -> None:
    program = api_client(cast.reviewer)
    decision = {"answer": APPROVE, "digest": task.digest}
    refused = program.post(f"tasks/{task.pk}/decision", decision)
    assert refused.status_code == 422
    assert json_of(refused)["error"] == "unread"
    assert [one["message"] for one in json_of(refused)["problems"]] == [
        "Not opened yet: body", "Not opened yet: orders",
    ]  # fmt: skip
    assert json_of(program.get(f"tasks/{task.pk}"))["args"] == ARGUMENTS
    assert program.post(f"tasks/{task.pk}/decision", decision).status_code == 200
    assert {one.via for one in Expansion.objects.all()} == {"api"}


def test_a_program_gets_what_an_edit_changed(
    task: ReviewTask, cast: Cast, api_client: Callable[..., ApiClient]
) -> None:
    program = api_client(cast.reviewer)
    program.get(f"tasks/{task.pk}")
    args = {**ARGUMENTS, "to": "b@example.org", "orders": LIST[1:], "copies": 1.0}
    answer = {"type": "edit", "edited_action": {"name": "announce", "args": args}}
    made = json_of(program.post(f"tasks/{task.pk}/decision", {"answer": answer, "digest": task.digest}))
    assert [(one["kind"], one["pointer"], one["before"], one["after"]) for one in made["changes"]] == [
        ("changed", "/to", "a@example.org", "b@example.org"),
        ("removed", "/orders/0", "order 0", None),
        ("added", "/copies", None, 1.0),
    ]
    assert made["shown"] is None
    assert json_of(program.get(f"tasks/{task.pk}"))["decision"]["changes"] == made["changes"]


# In a browser


@pytest.mark.parametrize("javascript", [True, False])
def test_by_keyboard_one_key_shows_all_and_the_next_approves(
    cast: Cast, committed_db: None, page_of: Callable[..., Page], javascript: bool
) -> None:
    task = pause_run(mail(), by=cast.developer).tasks.get()
    page = page_of(cast.reviewer, java_script_enabled=javascript)
    page.set_default_timeout(60_000)
    page.goto(f"/?task={task.pk}")
    if javascript:
        page.locator("[data-card-title]").focus()
        page.keyboard.press("h")
        expect(page.get_by_role("link", name="Show all hidden parts")).to_be_focused(timeout=60_000)
        page.keyboard.press("Enter")
    else:
        page.get_by_role("link", name="Show all hidden parts").click()
    expect(page.get_by_text("order 29", exact=True)).to_be_visible(timeout=60_000)
    expect(page.locator("[autofocus]")).to_be_focused(timeout=60_000)
    if javascript:
        page.keyboard.press("a")
        page.keyboard.press("Enter")
    else:
        page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("See what came of it")).to_be_visible(timeout=60_000)
    assert Decision.objects.get(task=task).verdict == "approve"


@pytest.mark.browser
def test_hidden_parts_and_kept_cards_are_accessible_in_both_themes_and_fit_a_phone(
    cast: Cast, committed_db: None, page_of: Callable[..., Page]
) -> None:
    waiting, decided = (
        pause_run(mail(), by=cast.developer, interrupt=sign * 32).tasks.get() for sign in ("1", "2")
    )
    openings.opened(decided, by=cast.reviewer, via="web")
    openings.open_all_parts(decided, by=cast.reviewer, via="web")
    changed = {**ARGUMENTS, "to": "b@example.org"}
    approve(decided, cast.reviewer, {"type": "edit", "edited_action": {"name": "announce", "args": changed}})
    page = page_of(cast.reviewer, bypass_csp=True)  # axe tries inline styles
    page.set_default_timeout(60_000)
    for address in (f"/tasks/{waiting.pk}/", f"/tasks/{waiting.pk}/?show=all", f"/tasks/{decided.pk}/"):
        page.goto(address)
        assert list(faults(page)) == []
