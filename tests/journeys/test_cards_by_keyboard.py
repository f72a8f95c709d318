"""The most complex sample, from the inbox to the decision, by somebody who only has a keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents_runtime.canonical import decode
from agents_runtime.desk import ReviewRequest
from reviewer.models import Decision
from tests.cards.making import SAMPLES
from tests.cast import Cast
from tests.deciding.making import pause_run
from tests.journeys.test_without_a_mouse import press
from tests.journeys.walking import choice, is_live, row_of

pytestmark = pytest.mark.browser
AT = "/edited_action/args"
PATIENCE = 60_000  # milliseconds; a busy machine may be slow


class Keys:
    """Somebody at a form with nothing but a keyboard."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def reach(self, selector: str, *, most: int = 150) -> None:
        """Go on with Tab until a control has the focus; a radio group is one stop."""
        for _ in range(most):
            if self.page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {selector}.")

    def write(self, name: str, text: str) -> None:
        """Replace what stands in a text field."""
        self.reach(f'[name="v:{AT}/{name}"]')
        press(self.page, "ControlOrMeta+A")
        self.page.keyboard.type(text)

    def button(self, operation: str) -> None:
        self.reach(f'[name="_op"][value="{operation}"]')
        press(self.page, "Enter")

    def has(self, selector: str) -> None:
        """Wait until the page has put the focus there by itself."""
        expect(self.page.locator(selector)).to_be_focused(timeout=PATIENCE)


def test_the_most_complex_sample_is_filled_and_decided_without_a_mouse(
    cast: Cast, page_of: Callable[..., Page]
) -> None:
    sample: dict[str, Any] = SAMPLES["03_meeting_nested_arrays"]
    value = sample["interrupt_value"]
    request = ReviewRequest(
        position=0,
        kind="tool_call",
        tool=value["name"],
        tool_call_id="call-0",
        arguments=value["args"],
        response_schema=sample["schema"],
    )
    task = pause_run(request, by=cast.developer).tasks.get()
    page = page_of(cast.reviewer)
    page.set_default_timeout(PATIENCE)
    keys = Keys(page)

    page.goto("/")
    is_live(page)
    press(page, "j", "k")
    expect(row_of(page, task).get_by_role("link")).to_be_focused(timeout=PATIENCE)
    press(page, "Enter")
    keys.has("[data-card-title]")
    press(page, "e")
    expect(choice(page, "Edit")).to_be_focused(timeout=PATIENCE)
    press(page, "Enter")
    page.wait_for_url("**verdict=edit**")

    keys.write("title", "Sync, weekly")
    keys.write("duration", "47")
    keys.write("attendees/0/name", "Ann A.")
    keys.button(f"add:{AT}/attendees")
    keys.has(f'[name="v:{AT}/attendees/n1/name"]')
    page.keyboard.type("Cy")
    keys.write("attendees/n1/email", "cy@ex.org")
    keys.button(f"up:{AT}/attendees/n1")
    keys.has(f'[value="up:{AT}/attendees/n1"][aria-label="Move Attendees 2 up"]')
    press(page, "Enter")
    keys.has(f'[value="down:{AT}/attendees/n1"]')
    keys.write("location/city", "Bonn")
    keys.write("tags/0", "z")
    press(page, "ControlOrMeta+Enter")

    summary = page.get_by_role("alert").filter(has_text="needs your attention")
    expect(summary).to_be_focused(timeout=PATIENCE)
    assert Decision.objects.count() == 0
    press(page, "Tab")
    expect(summary.get_by_role("link")).to_be_focused(timeout=PATIENCE)
    press(page, "Enter")
    keys.has(f'[name="v:{AT}/duration"]')
    expect(page.locator(f'[name="v:{AT}/duration"]')).to_have_value("47", timeout=PATIENCE)
    press(page, "ControlOrMeta+A")
    page.keyboard.type("45")
    expect(page.locator("[data-card-diff]")).to_contain_text("45", timeout=PATIENCE)
    press(page, "ControlOrMeta+Enter")

    expect(page.get_by_text("See what came of it")).to_be_visible(timeout=PATIENCE)
    answer = decode(Decision.objects.get(task=task).answer)
    args = answer["edited_action"]["args"]
    assert [person["name"] for person in args["attendees"]] == ["Cy", "Ann A.", "Bo"]
    assert args == {
        **value["args"],
        "title": "Sync, weekly",
        "duration": 45,
        "attendees": [
            {"name": "Cy", "email": "cy@ex.org"},
            {**value["args"]["attendees"][0], "name": "Ann A."},
            value["args"]["attendees"][1],
        ],
        "location": {**value["args"]["location"], "city": "Bonn"},
        "tags": ["z", *value["args"]["tags"][1:]],
    }
