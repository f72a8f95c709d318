"""Public bug reports that only a browser can show to be absent here."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browsers import signed_in
from tests.cast import Cast
from tests.deciding.making import open_refund
from tests.processes import Site

pytestmark = pytest.mark.browser
PATIENCE = 60_000


def fail_to_connect(route: Route) -> None:
    """Let the network end the request."""
    route.abort("failed")


def fail_to_answer(route: Route) -> None:
    """Let a proxy answer in the product's place."""
    route.fulfill(status=502, body="Bad Gateway")


def test_report_04_a_fetch_that_fails_leaves_the_list_as_it_is(
    cast: Cast, browser: Browser, live_server_process: Site
) -> None:
    """agent-inbox#59, PR#67: an error while fetching wiped the list; links of deployed sites were wrong."""
    tasks = [open_refund(by=cast.developer, amount=f"{number}.00") for number in (1, 2)]
    # A context of its own: a browser logs each failed fetch as an error, and here they are wanted.
    page = signed_in(browser, live_server_process, cast.reviewer)
    page.goto("/")
    rows = [page.locator(f'[data-task="{task.pk}"]').first for task in tasks]
    for row in rows:
        expect(row).to_be_visible(timeout=PATIENCE)
        assert (row.get_attribute("href") or "").startswith("/?")

    for fail in (fail_to_connect, fail_to_answer):
        page.route("**/pane/**", fail)
        rows[1].click()
        expect(page.locator("[data-problem]").first).to_be_visible(timeout=PATIENCE)
        for row in rows:
            expect(row).to_be_visible()
        page.unroute("**/pane/**")
    rows[1].click()
    expect(page.locator("#pane")).to_contain_text("2.00", timeout=PATIENCE)
