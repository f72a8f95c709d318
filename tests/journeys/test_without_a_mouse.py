"""Deciding for everybody: wholly without scripts, and wholly from the keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from reviewer.models import Decision
from tests.journeys.walking import (
    OpenPage,
    becomes,
    choice,
    effects_of,
    is_live,
    row_of,
    start_on_page,
    task_for,
)
from tests.processes import Worker

pytestmark = [pytest.mark.browser, pytest.mark.worker]


def test_a_run_is_started_decided_and_followed_without_any_script(
    product: Worker, page_for: OpenPage
) -> None:
    dev = page_for("developer", java_script_enabled=False)
    page = page_for("reviewer", java_script_enabled=False)
    run = start_on_page(dev, "records_cleanup")
    deletion, merge, archiving = (
        task_for(run, tool) for tool in ("delete_record", "merge_records", "archive_record")
    )

    # Approve, from the list; a critical card asks twice.
    page.goto("/")
    row_of(page, deletion).get_by_role("link").click()
    choice(page, "Approve").click()
    expect(page.get_by_text("You are about to approve a critical action")).to_be_visible()
    choice(page, "Approve").click()
    expect(page.get_by_text("See what came of it")).to_be_visible()

    # Edit, with one item less and one item more; the difference is shown before it is sent.
    page.goto(f"/tasks/{merge.pk}/")
    choice(page, "Edit").click()
    page.get_by_role("button", name="Remove").first.click()
    page.get_by_role("button", name="Add an item").click()
    expect(page.locator("[data-card-diff]")).to_contain_text("phone")
    page.locator("[data-card-fields] label", has_text="notes").last.click()
    assert Decision.objects.filter(task=merge).count() == 0
    page.locator("[data-send]").click()

    # Reject, with a reason.
    page.goto(f"/tasks/{archiving.pk}/")
    choice(page, "Reject").click()
    page.get_by_label("Not proven").check()
    page.get_by_role("textbox", name="Message").fill("It was used last week.")
    page.locator("[data-send]").click()

    becomes(run, "finished")
    dev.reload()
    expect(dev.locator("#run-status")).to_have_text("Finished")
    expect(dev.locator("#run-timeline")).to_contain_text("refused, because: It was used last week.")
    assert sorted(tool for tool, _ in effects_of(run)) == ["delete_record", "merge_records"]
    (merged,) = (ran for tool, ran in effects_of(run) if tool == "merge_records")
    assert merged["take_from_duplicate"] == ["address", "notes"]


def press(page: Page, *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, wanted: Locator, *, most: int = 40) -> None:
    """Go on with Tab until the control has the focus."""
    for _ in range(most):
        if wanted.evaluate("control => control === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted}.")


def test_three_cards_are_decided_from_the_keyboard_alone(product: Worker, page_for: OpenPage) -> None:
    run = start_on_page(page_for("developer"), "records_cleanup")
    deletion, merge, archiving = (
        task_for(run, tool) for tool in ("delete_record", "merge_records", "archive_record")
    )
    page = page_for("reviewer")
    page.goto("/")
    is_live(page)
    press(page, "?")
    expect(page.get_by_role("dialog")).to_be_visible()
    press(page, "Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()

    def open_by_keys(title: str) -> None:
        """Walk down the list to a task and open it."""
        press(page, "k", "k", "k")
        for _ in range(3):
            focused = page.locator(".task:focus")
            if title in focused.inner_text():
                break
            press(page, "j")
        press(page, "Enter")
        expect(page.locator("[data-card-title]:focus")).to_have_text(title)

    open_by_keys(archiving.title)
    press(page, "r")
    expect(choice(page, "Reject")).to_be_focused()
    press(page, "Enter")
    reason = page.get_by_label("Wrong scope")
    expect(reason).to_be_focused()
    press(page, "Space", "ArrowDown")
    expect(page.get_by_label("Not allowed")).to_be_checked()
    tab_to(page, page.get_by_role("textbox", name="Message"))
    page.keyboard.type("Keep it.")
    press(page, "Control+Enter")
    expect(row_of(page, archiving)).to_contain_text("by you")
    expect(page.locator("[data-card-title]:focus")).not_to_have_text(archiving.title)

    open_by_keys(merge.title)
    press(page, "e")
    expect(choice(page, "Edit")).to_be_focused()
    press(page, "Enter")
    page.wait_for_url("**verdict=edit**")
    tab_to(page, page.get_by_role("button", name="Remove").first)
    press(page, "Enter")
    expect(page.locator("[data-card-diff]")).to_contain_text("phone")
    tab_to(page, page.get_by_role("textbox", name="Note for the trail"))
    page.keyboard.type("The number is old.")
    press(page, "Control+Enter")
    expect(page.get_by_text("See what came of it")).to_be_visible()

    page.goto("/")
    is_live(page)
    open_by_keys(deletion.title)
    press(page, "a")
    expect(choice(page, "Approve")).to_be_focused()
    press(page, "Enter")
    expect(page.get_by_text("You are about to approve a critical action")).to_be_visible()
    expect(page.locator("[data-send]")).to_be_focused()
    press(page, "Enter")
    becomes(run, "finished")
    assert [decision.comment for decision in Decision.objects.filter(task=merge)] == ["The number is old."]
    assert sorted(tool for tool, _ in effects_of(run)) == ["delete_record", "merge_records"]
