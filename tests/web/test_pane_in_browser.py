"""The pane beside the list: what stands in it while a card loads, and where the next one begins."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from reviewer import claims
from tests.browsers import signed_in
from tests.cast import Cast
from tests.facts.test_reports_in_browser import fail_to_answer, fail_to_connect
from tests.journeys.test_every_page import TOO_WIDE
from tests.journeys.walking import choice, elsewhere, eventually, row_of
from tests.processes import Site
from tests.web.panes import TITLE, OpenPage, at_card, hold_cards, open_inbox, two_tasks
from tests.web.stories import open_task

pytestmark = pytest.mark.browser
SKELETON_AFTER = 200  # milliseconds
BONES = "#pane .skeleton"
DOWN = "() => document.querySelector('#pane').scrollTop + scrollY"
SMALL: tuple[ViewportSize, ...] = ({"width": 390, "height": 500}, {"width": 1440, "height": 340})


def read_on(page: Page) -> None:
    """Scroll down in the card, as far as one does to read it."""
    page.locator(TITLE).hover()
    page.mouse.wheel(0, 150)
    eventually(lambda: page.evaluate(DOWN) > 100, "the card to be scrolled")


@pytest.mark.parametrize("due", [SKELETON_AFTER - 1, SKELETON_AFTER, SKELETON_AFTER + 1])
def test_a_card_that_comes_just_as_its_skeleton_is_due_stays_and_has_the_focus(
    cast: Cast, page_of: OpenPage, due: int
) -> None:
    task, _ = two_tasks(cast)  # it lies open already: htmx settles what it knows by a timer of its own
    page = page_of(cast.reviewer)
    open_inbox(page)
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    held = hold_cards(page)

    page.locator("#pane [data-card]").evaluate("card => card.setAttribute('data-was', '')")
    with page.expect_request("**/pane/**"):
        row_of(page, task).click()
    page.clock.run_for(due)
    for route in held:
        route.continue_()
    expect(page.locator("#pane [data-card]:not([data-was])")).to_be_visible()
    page.clock.run_for(SKELETON_AFTER)

    expect(page.locator(f"{TITLE}:focus")).to_have_text(task.title)
    expect(page.locator("#pane [data-card]:not([data-was])")).to_be_visible()
    expect(page.locator(BONES)).to_have_count(0)


@pytest.mark.parametrize("fail", [fail_to_connect, fail_to_answer])
def test_a_card_comes_back_when_nothing_follows_its_skeleton_however_often_one_asked(
    cast: Cast, browser: Browser, live_server_process: Site, fail: Callable[[Route], None]
) -> None:
    first, following = two_tasks(cast)
    # A context of its own: a browser logs each failed request as an error, and here they are wanted.
    page = signed_in(browser, live_server_process, cast.reviewer)
    open_inbox(page)
    held = hold_cards(page)

    for task in (following, first, following):  # each press takes the place of the one before
        with page.expect_request("**/pane/**"):
            row_of(page, task).click()
        expect(page.locator(BONES).first).to_be_visible()
    fail(held[-1])

    expect(page.locator("[data-problem]:visible").first).to_be_visible()
    expect(page.locator(TITLE)).to_have_text(first.title)
    expect(page.locator(BONES)).to_have_count(0)


def test_the_card_that_follows_a_decision_fits_a_phone(cast: Cast, page_of: OpenPage) -> None:
    first = elsewhere(lambda: open_task(cast, order="ORDER-20417-OF-ANOTHER-CENTURY"))
    following = elsewhere(lambda: open_task(cast, order="A-2"))
    page = at_card(page_of(cast.reviewer, viewport={"width": 390, "height": 844}), first)

    choice(page, "Approve").click()

    expect(page.locator(TITLE)).to_have_text(following.title)
    expect(page.get_by_text("See what came of it")).to_be_visible()
    assert page.evaluate(TOO_WIDE) == []
    wide = """() => [...document.querySelectorAll("#pane .card > *")]
      .filter(part => part.getClientRects().length && part.getBoundingClientRect().right > innerWidth - 15)
      .map(part => part.className)"""
    assert page.evaluate(wide) == []


@pytest.mark.parametrize("size", SMALL, ids=str)
def test_another_card_begins_at_its_top(cast: Cast, page_of: OpenPage, size: ViewportSize) -> None:
    first, following = two_tasks(cast)
    page = at_card(page_of(cast.reviewer, viewport=size), first)
    read_on(page)

    choice(page, "Approve").evaluate("button => button.click()")  # a click of Playwright scrolls by itself

    expect(page.locator(f"{TITLE}:focus")).to_have_text(following.title)
    expect(page.locator(TITLE)).to_be_in_viewport()
    assert page.evaluate(DOWN) == 0


@pytest.mark.parametrize("size", SMALL, ids=str)
def test_a_card_that_moves_on_by_itself_stays_where_it_is_read(
    cast: Cast, page_of: OpenPage, size: ViewportSize
) -> None:
    first, _ = two_tasks(cast)
    page = at_card(page_of(cast.reviewer, viewport=size), first)
    read_on(page)

    elsewhere(lambda: claims.claim(first.pk, by=cast.reviewer2))

    expect(page.locator("#pane .state")).to_contain_text("Claimed by Tom O.")
    assert page.evaluate(DOWN) > 50
