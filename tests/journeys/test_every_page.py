"""Every page, for everybody: nothing in the console, accessible in both themes, no wider than a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize

from tests.journeys.staging import live_a_day
from tests.journeys.walking import ProgramOf, sign_in
from tests.processes import Site, Worker

pytestmark = [pytest.mark.browser, pytest.mark.worker]
AXE = (Path(__file__).parents[1] / "vendor" / "axe" / "axe.min.js").read_text()
# Everything of WCAG 2.2 A and AA that axe can check; of the dark theme, what themes can change.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN_AXE = """async rules => {
  const moving = document.getAnimations().filter(motion => motion instanceof CSSTransition);
  await Promise.allSettled(moving.map(motion => motion.finished));
  const found = await axe.run(document, {runOnly: rules, resultTypes: ["violations"]});
  return found.violations.flatMap(({id, nodes}) => nodes.map(({target, any, all, none}) =>
    `${id}: ${target.join(" ")} (${[...any, ...all, ...none].map(check => check.message).join("; ")})`));
}"""
TOO_WIDE = """() => [...document.querySelectorAll("html, body, main, .pane, .list__body")]
  .filter(part => part.scrollWidth > part.clientWidth + 1).map(part => part.tagName + "." + part.className)"""
DESK: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 16000}  # so tall that nothing hides behind the bar at its foot
ROLES = ("reviewer", "lead", "admin", "auditor", "developer")


class Watch:
    """A signed-in page whose every complaint is noted while it ``listens``.

    An answer that is an error by design, such as 403, is no complaint.
    """

    def __init__(self, browser: Browser, site: Site, username: str) -> None:
        self.complaints: list[str] = []
        self.searched: set[str] = set()
        self.listens = True
        self.page = browser.new_context(base_url=site.url, viewport=DESK).new_page()
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        sign_in(self.page, username)

    def faults(self) -> list[str]:
        """Return what axe finds. It tries inline styles; complaints of that may come on the next page."""
        self.listens = False
        self.searched.add(self.page.url)
        found = list(faults(self.page))
        with self.page.expect_console_message(lambda message: message.text == "axe is done", timeout=60_000):
            self.page.evaluate("console.log('axe is done')")
        self.listens = True
        return found

    def _note(self, message: ConsoleMessage) -> None:
        is_the_page = message.location.get("url") in {self.page.url, *self.searched}
        if message.type in {"error", "warning"} and not is_the_page and self.listens:
            self.complaints.append(f"{self.page.url}: {message.text}")


def faults(page: Page) -> Iterator[str]:
    """Look at the page in both widths and both themes, and say what is wrong."""
    page.evaluate(AXE)
    for size in (DESK, PHONE):
        page.set_viewport_size(size)
        for theme, rules in (("light", TAGS), ("dark", ["color-contrast"])):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
            for fault in page.evaluate(RUN_AXE, rules):
                yield f"{page.url} at {size['width']} px, {theme}: {fault}"
    for part in page.evaluate(TOO_WIDE):
        yield f"{page.url} scrolls sideways on a phone: {part}"


def test_every_page_is_silent_accessible_and_no_wider_than_a_phone(
    product: Worker, program_of: ProgramOf, browser: Browser, live_server_process: Site
) -> None:
    day = live_a_day(program_of)
    found: list[str] = []
    for role in ROLES:
        watch = Watch(browser, live_server_process, role)
        sees_all = role == "admin"
        for address in (*day.main_pages, *(day.more_pages if sees_all else ())):
            answer = watch.page.goto(address)
            assert answer is not None
            assert answer.status < 500, address
            if sees_all:
                found += watch.faults()
        found += watch.complaints
        watch.page.context.close()
    signed_out = browser.new_page(base_url=live_server_process.url)
    signed_out.goto("/accounts/login/")
    found += faults(signed_out)
    assert not found, "\n".join(found)
