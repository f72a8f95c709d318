"""The web process goes away while somebody writes: the page says so, keeps everything, and catches up."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from reviewer.accounts.models import User
from tests.deciding.making import open_refund
from tests.journeys.walking import PATIENCE, choice, elsewhere, is_live, row_of, sign_in
from tests.processes import Site

pytestmark = pytest.mark.browser
SINCE = re.compile(r"Connection lost since \d\d:\d\d")


def test_a_lost_connection_is_told_keeps_the_draft_and_is_caught_up(
    people: dict[str, User], browser: Browser, live_server_process: Site
) -> None:
    # A context of its own: a browser logs each failed connection as an error, and here they are wanted.
    page = browser.new_context(base_url=live_server_process.url).new_page()
    sign_in(page, "reviewer")
    task = elsewhere(lambda: open_refund(by=people["developer"]))
    gone = elsewhere(lambda: open_refund(by=people["developer"], amount="9.10"))
    page.goto(f"/?task={task.pk}")
    is_live(page)
    choice(page, "Reject").click()
    message = page.locator("#pane").get_by_role("textbox", name="Message")
    message.fill("Already paid on Monday.")
    page.get_by_label("Wrong value").check()

    live_server_process.kill()
    strip = page.locator("[data-lost]:visible").first
    expect(strip).to_have_text(SINCE, timeout=PATIENCE * 1000)
    # Decision keys are off; a press says that it did not go out, and nothing that was written is lost.
    page.locator("[data-card-title]").focus()
    page.keyboard.press("c")
    expect(page.locator("[data-card-title]")).to_be_focused()
    message.press("Control+Enter")
    expect(page.locator("[data-problem]")).to_be_visible()
    expect(message).to_have_value("Already paid on Monday.")

    missed = elsewhere(lambda: open_refund(by=people["developer"], amount="7.35"))
    page.get_by_role("button", name="Reconnect now").click()
    expect(strip).to_have_text(SINCE)
    live_server_process.start()
    is_live(page)
    expect(strip).to_be_hidden()
    expect(page.locator("[data-reveal]")).to_contain_text("1 new")
    expect(message).to_have_value("Already paid on Monday.")
    page.get_by_role("button", name="1 new").click()
    expect(row_of(page, missed)).to_be_visible()
    page.locator("[data-send]").click()
    expect(row_of(page, task)).to_contain_text("by you")
    expect(row_of(page, gone)).to_be_visible()
