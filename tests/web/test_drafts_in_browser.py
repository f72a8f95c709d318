"""What somebody writes beside the list: nothing that is late, fails or moved on takes it unasked."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial

import pytest
from django.db import transaction
from django.utils.timezone import now
from playwright.sync_api import Browser, Locator, Page, Route, expect

from reviewer import claims, decisions
from reviewer.accounts.models import User
from reviewer.models import Decision, ReviewTask
from tests.browsers import signed_in
from tests.cast import Cast
from tests.deciding.making import APPROVE
from tests.facts.test_reports_in_browser import fail_to_answer, fail_to_connect
from tests.journeys.walking import choice, elsewhere, row_of
from tests.processes import Site
from tests.web.panes import (
    TITLE,
    OpenPage,
    answer_dialogs,
    at_card,
    eventually_held,
    hold_cards,
    hold_first,
    hold_pushes,
    open_inbox,
    open_question,
    two_tasks,
)
from tests.web.stories import open_task

pytestmark = pytest.mark.browser


def write_rejection(page: Page, text: str = "Already paid") -> Locator:
    """Open the form to reject, and begin its message."""
    choice(page, "Reject").click()
    message = page.locator("#pane").get_by_role("textbox", name="Message")
    message.fill(text)
    return message


@transaction.atomic
def claim_for(task: ReviewTask, who: User, *, seconds: int) -> None:
    """Claim a task for a short while, and tell of it as a claim does."""
    claims.claim(task.pk, by=who)
    ReviewTask.objects.filter(pk=task.pk).update(claimed_until=now() + dt.timedelta(seconds=seconds))


def fence_of(task: ReviewTask) -> int:
    """Return the fence of the task's last claim."""
    return ReviewTask.objects.get(pk=task.pk).claim_version


def test_letters_typed_into_a_form_that_lies_open_press_and_move_nothing(
    cast: Cast, page_of: OpenPage
) -> None:
    first, _ = two_tasks(cast)
    page = page_of(cast.reviewer)
    open_inbox(page)
    choice(page, "Reject").click()
    reason = page.locator("#pane [data-first]")
    expect(reason).to_be_focused()

    page.keyboard.type("cajek ")

    expect(reason).to_be_focused()
    assert ReviewTask.objects.get(pk=first.pk).claimed_by is None


def test_a_form_that_somebody_elses_claim_locked_is_open_again_with_their_release(
    cast: Cast, page_of: OpenPage
) -> None:
    first, _ = two_tasks(cast)
    page = at_card(page_of(cast.reviewer), first)
    choice(page, "Reject").click()
    message = page.locator("#pane").get_by_role("textbox", name="Message")
    message.fill("Already paid")

    elsewhere(lambda: claims.claim(first.pk, by=cast.reviewer2))
    expect(message).to_be_disabled()
    expect(page.locator("[data-send]")).to_be_disabled()
    elsewhere(lambda: claims.release(first.pk, by=cast.reviewer2))

    expect(message).to_be_enabled()
    expect(page.locator("[data-send]")).to_be_enabled()
    expect(message).to_have_value("Already paid")


@pytest.mark.parametrize("asked", ["claim", "release"])
def test_whoever_claims_or_releases_in_mid_sentence_loses_none_of_it(
    cast: Cast, page_of: OpenPage, asked: str
) -> None:
    first, _ = two_tasks(cast)
    page = page_of(cast.reviewer)
    asks = answer_dialogs(page, accept=True)
    open_inbox(page)
    if asked == "release":
        page.get_by_role("button", name="Claim", exact=False).click()
    choice(page, "Reject").click()
    page.get_by_label("Wrong scope").check()
    message = page.locator("#pane").get_by_role("textbox", name="Message")
    message.fill("Already paid")

    page.get_by_role("button", name=asked.capitalize()).click()

    expect(page.get_by_role("button", name="Release" if asked == "claim" else "Claim")).to_be_visible()
    expect(message).to_have_value("Already paid")
    expect(page.get_by_label("Wrong scope")).to_be_checked()
    assert asks == []
    page.locator("[data-send]").click()
    expect(row_of(page, first)).to_contain_text("by you")
    assert Decision.objects.get(task=first).reason_code == "wrong_scope"


def test_a_question_that_is_half_answered_is_not_left_unasked_after_its_claim(
    cast: Cast, page_of: OpenPage
) -> None:
    asked = elsewhere(partial(open_question, cast))
    other = elsewhere(lambda: open_task(cast, order="A-1"))
    page = at_card(page_of(cast.reviewer), asked)
    field = page.get_by_role("textbox", name="Your answer")
    field.fill("Take the old")
    page.get_by_role("button", name="Claim").click()
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    expect(field).to_have_value("Take the old")
    asks = answer_dialogs(page, accept=False)
    held = hold_cards(page)

    row_of(page, other).click()

    expect(field).to_have_value("Take the old")
    assert len(asks) == 1
    assert held == []


@pytest.mark.parametrize("pressed", ["the same card", "another card"])
def test_a_card_that_comes_when_somebody_began_to_write_does_not_take_their_text(
    cast: Cast, page_of: OpenPage, pressed: str
) -> None:
    asked = elsewhere(partial(open_question, cast))
    other = elsewhere(lambda: open_task(cast, order="A-1"))
    page = at_card(page_of(cast.reviewer), asked)
    page.clock.install()  # so that no skeleton comes however slow the machine is
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    held = hold_cards(page)
    with page.expect_request("**/pane/**"):
        row_of(page, asked if pressed == "the same card" else other).click()
    field = page.get_by_role("textbox", name="Your answer")
    field.fill("Take the old")

    with page.expect_response("**/pane/**"):
        held[-1].continue_()
    page.clock.resume()

    page.get_by_role("button", name="Claim").click()  # whatever came in between has been dealt with by then
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    expect(field).to_have_value("Take the old")
    assert page.url.endswith(f"?task={asked.pk}")


@pytest.mark.parametrize("late", ["a form of the card before", "the claim of the card before"])
def test_what_comes_late_for_one_card_takes_neither_place_nor_text_of_another(
    cast: Cast, page_of: OpenPage, late: str
) -> None:
    first, other = two_tasks(cast)
    page = at_card(page_of(cast.reviewer), first)
    if late.startswith("a form"):
        held = hold_first(page, "**/pane/?verdict=reject**")
        choice(page, "Reject").click()
    else:
        held = hold_first(page, "**/claim/")
        page.get_by_role("button", name="Claim").click()
    eventually_held(page, held)

    row_of(page, other).click()
    if late.startswith("the claim"):  # a form on its way ends first; the row that was pressed comes then
        held[0].continue_()
    expect(page.locator(TITLE)).to_have_text(other.title)
    message = write_rejection(page)
    if late.startswith("a form"):
        held[0].continue_()
    page.get_by_label("Wrong scope").check()

    expect(page.locator("#pane [data-card]")).to_have_attribute("data-card", str(other.pk))
    expect(message).to_have_value("Already paid")
    page.locator("[data-send]").click()
    expect(row_of(page, other)).to_contain_text("by you")
    assert Decision.objects.get().task_id == other.pk


def test_nothing_is_typed_into_a_form_that_is_on_its_way(cast: Cast, page_of: OpenPage) -> None:
    first, _ = two_tasks(cast)
    page = at_card(page_of(cast.reviewer), first)
    message = write_rejection(page, "one")
    held = hold_first(page, "**/decide/")
    page.get_by_role("button", name="Claim").click()
    eventually_held(page, held)

    page.keyboard.type(" two")
    assert page.evaluate("document.querySelector('form[data-draft]').inert")
    held[0].continue_()

    expect(page.get_by_role("button", name="Release")).to_be_visible()
    expect(message).to_have_value("one")
    message.press("End")
    message.press_sequentially(" two")
    expect(message).to_have_value("one two")


@pytest.mark.parametrize("fail", [fail_to_connect, fail_to_answer])
def test_a_draft_that_could_not_be_sent_is_still_a_draft(
    cast: Cast, browser: Browser, live_server_process: Site, fail: Callable[[Route], None]
) -> None:
    first, other = two_tasks(cast)
    # A context of its own: a browser logs each failed request as an error, and here they are wanted.
    page = at_card(signed_in(browser, live_server_process, cast.reviewer), first)
    message = write_rejection(page)
    page.get_by_label("Wrong scope").check()
    asks = answer_dialogs(page, accept=False)
    page.route("**/decide/", fail)

    page.locator("[data-send]").click()
    problem = page.locator("[data-problem]:visible").first
    expect(problem).to_be_visible()
    message.scroll_into_view_if_needed()
    expect(problem).to_be_in_viewport(ratio=1)  # wherever its reader is
    row_of(page, other).click()

    assert len(asks) == 1
    expect(message).to_have_value("Already paid")
    page.unroute("**/decide/")
    page.locator("[data-send]").click()
    expect(row_of(page, first)).to_contain_text("by you")


def test_who_is_signed_out_meanwhile_keeps_the_card_and_the_text(
    cast: Cast, browser: Browser, live_server_process: Site
) -> None:
    first, _ = two_tasks(cast)
    page = at_card(signed_in(browser, live_server_process, cast.reviewer), first)
    message = write_rejection(page)
    page.get_by_label("Wrong scope").check()
    page.context.clear_cookies(name=live_server_process.session_cookie)

    page.locator("[data-send]").click()

    expect(page.locator("[data-problem]:visible").first).to_contain_text("You are signed out.")
    expect(message).to_have_value("Already paid")


def test_what_was_written_for_a_card_that_somebody_decided_stays_until_its_writer_leaves(
    cast: Cast, browser: Browser, live_server_process: Site
) -> None:
    first, other = two_tasks(cast)
    # A context of its own: a browser logs the conflict as an error, and here it is wanted.
    page = signed_in(browser, live_server_process, cast.reviewer)
    let_pushes_through = hold_pushes(page)
    at_card(page, first)
    write_rejection(page)
    page.get_by_label("Wrong scope").check()
    elsewhere(
        partial(decisions.decide, first.pk, by=cast.reviewer2, answer=APPROVE, digest=first.digest, via="api")
    )

    page.locator("[data-send]").click()

    kept = page.locator("#pane [data-kept]")
    expect(kept).to_have_value("Already paid")
    assert let_pushes_through() > 0
    expect(row_of(page, first)).to_contain_text("by Tom O.")
    expect(kept).to_have_value("Already paid")
    asks = answer_dialogs(page, accept=False)
    row_of(page, other).click()
    expect(kept).to_have_value("Already paid")
    assert len(asks) == 1


def test_a_form_that_was_locked_and_opened_again_can_be_sent_at_once(cast: Cast, page_of: OpenPage) -> None:
    first, _ = two_tasks(cast)
    page = at_card(page_of(cast.reviewer), first)
    message = write_rejection(page)
    page.get_by_label("Wrong scope").check()
    elsewhere(lambda: claims.claim(first.pk, by=cast.reviewer2))
    expect(message).to_be_disabled()
    elsewhere(lambda: claims.release(first.pk, by=cast.reviewer2))
    expect(message).to_be_enabled()
    expect(page.locator(f"#pane [name=claim_version][value='{fence_of(first)}']").first).to_be_attached()

    page.locator("[data-send]").click()

    expect(row_of(page, first)).to_contain_text("by you")


def test_a_form_that_a_claim_locked_opens_again_when_that_claim_runs_out(
    cast: Cast, page_of: OpenPage
) -> None:
    first, _ = two_tasks(cast)
    page = at_card(page_of(cast.reviewer), first)
    message = write_rejection(page)

    elsewhere(lambda: claim_for(first, cast.reviewer2, seconds=4))

    expect(message).to_be_disabled()
    expect(message).to_be_enabled(timeout=20_000)
    expect(message).to_have_value("Already paid")


def test_who_typed_nothing_is_not_asked_after_a_claim(cast: Cast, page_of: OpenPage) -> None:
    asked = elsewhere(partial(open_question, cast))
    other = elsewhere(lambda: open_task(cast, order="A-1"))
    page = at_card(page_of(cast.reviewer), asked)
    page.get_by_role("button", name="Claim").click()
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    asks = answer_dialogs(page, accept=False)

    row_of(page, other).click()

    expect(page.locator(TITLE)).to_have_text(other.title)
    assert asks == []
