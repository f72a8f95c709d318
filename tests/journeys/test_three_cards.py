"""The main job from end to end: three cards arrive, two people decide, the trail tells it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from reviewer.models import ReviewTask
from tests.journeys.walking import (
    OpenPage,
    Say,
    becomes,
    choice,
    effects_of,
    eventually,
    is_live,
    open_card,
    row_of,
    sign_in,
    start_on_page,
    task_for,
)
from tests.processes import Worker

pytestmark = [pytest.mark.browser, pytest.mark.worker]

NOTE_ARRIVALS = """() => {
  window.arrivals = {};
  window.neverReloaded = true;
  new MutationObserver(() => {
    if (document.querySelector("[data-reveal]").hidden) return;
    for (const row of document.querySelectorAll("[data-arrivals] > [data-row]")) {
      window.arrivals[row.id] ??= Date.now();
    }
  }).observe(document.querySelector("[data-inbox]"), {childList: true, subtree: true, attributes: true});
}"""


def order_of_rows(page: Page) -> list[str]:
    """Return the rows that the reader sees, from the top."""
    rows = page.locator("[data-list] section [data-row]:visible")
    return [str(row) for row in rows.evaluate_all("rows => rows.map(row => row.id)")]


def say_how_fast(say: Say, page: Page, tasks: list[ReviewTask], who: str) -> None:
    """Say how long after its record each card stood in the inbox; a busy machine may be slow."""
    arrivals = page.evaluate("window.arrivals")
    waits = [arrivals[f"row-{task.pk}"] - task.created_at.timestamp() * 1000 for task in tasks]
    say(f"Cards stood in the inbox of {who} after {', '.join(f'{wait:.0f} ms' for wait in waits)}.")


def test_three_cards_are_decided_by_two_people_and_take_effect_once(
    product: Worker, page_of: OpenPage, say: Say
) -> None:
    ines, tom, dev = page_of(), page_of(), page_of()
    for page, name in ((ines, "reviewer"), (tom, "reviewer2"), (dev, "developer")):
        sign_in(page, name)

    # Something is open already, and Ines is typing.
    asked = task_for(start_on_page(dev, "ask_officer"), "ask_user")
    for page in (ines, tom):
        page.goto(f"/?task={asked.pk}")
        is_live(page)
        page.evaluate(NOTE_ARRIVALS)
    typing = ines.locator("#pane textarea").first
    typing.press_sequentially("No, this is a diff")
    before = order_of_rows(ines)

    run = start_on_page(dev, "records_cleanup")
    dev.evaluate("window.neverReloaded = true")
    for page in (ines, tom):
        expect(page.locator("[data-reveal]")).to_contain_text("3 new", timeout=30_000)
    deletion, merge, archiving = (
        task_for(run, tool) for tool in ("delete_record", "merge_records", "archive_record")
    )
    say_how_fast(say, ines, [deletion, merge, archiving], "Ines")
    say_how_fast(say, tom, [deletion, merge, archiving], "Tom")
    assert order_of_rows(ines) == before
    expect(typing).to_be_focused()
    typing.press_sequentially("erent person")
    expect(typing).to_have_value("No, this is a different person")

    # Ines answers; the three come into the list when she asks for them.
    ines.keyboard.press("Control+Enter")
    expect(row_of(ines, asked)).to_contain_text("by you")
    ines.get_by_role("button", name="3 new").click()
    expect(row_of(ines, deletion)).to_be_visible()
    tom.keyboard.press("j")
    for task in (deletion, merge, archiving):
        expect(row_of(tom, task)).to_be_visible()

    # Both look at the merge; Ines changes it, and it closes where Tom looks.
    assert merge.title == "Merge record C-20988 into C-18302"
    open_card(tom, merge)
    open_card(ines, merge)
    choice(ines, "Edit").click()
    ines.get_by_role("button", name="Remove").nth(1).click()
    expect(ines.locator("[data-card-diff]")).to_contain_text("address")
    ines.get_by_role("button", name="Approve with").click()
    expect(row_of(tom, merge)).to_contain_text("by Ines H.")
    expect(tom.locator("#pane")).to_contain_text("by Ines H.")
    expect(choice(tom, "Approve")).to_have_count(0)

    # Tom refuses the archiving and says why.
    open_card(tom, archiving)
    choice(tom, "Reject").click()
    tom.get_by_label("Not proven").check()
    tom.locator("#pane").get_by_role("textbox", name="Message").fill("It was used last week.")
    tom.locator("[data-send]").click()
    expect(row_of(tom, archiving)).to_contain_text("by you")

    # The deletion is critical: Ines is asked twice.
    ines.goto(f"/?task={deletion.pk}")
    choice(ines, "Approve").click()
    expect(ines.get_by_text("You are about to approve a critical action")).to_be_visible()
    assert ReviewTask.objects.get(pk=deletion.pk).is_open
    ines.locator("[data-send]").click()

    # The run's page told it all by itself.
    expect(dev.locator("#run-status")).to_have_text("Finished", timeout=30_000)
    timeline = dev.locator("#run-timeline")
    for told in (
        "Ines H. approved with 1 change",
        "Tom O. rejected",
        "Ines H. approved",
        "2 of 3 changes were made, 1 refused",
    ):
        expect(timeline).to_contain_text(told)
    becomes(run, "finished")
    eventually(lambda: len(effects_of(run)) == 2, "two effects")
    assert sorted(effects_of(run)) == [
        (
            "delete_record",
            {
                "record_id": "C-20417",
                "reason": "The customer asked for erasure in ticket DP-2291.",
                "keep_invoices": True,
            },
        ),
        ("merge_records", {"keep": "C-18302", "duplicate": "C-20988", "take_from_duplicate": ["phone"]}),
    ]

    # And the auditor reads the same story, from the decision down to what was shown and what came of it.
    auditor = page_of()
    sign_in(auditor, "auditor")
    auditor.goto(f"/audit/?type=all&run={run.pk}")
    trail = auditor.get_by_role("region", name="Events")
    for told in ("Run started", "Edited", "Rejected", "Approved", "Run finished"):
        expect(trail).to_contain_text(told)
    edited = auditor.get_by_role("row").filter(has_text="Edited").filter(has_text="Ines H.")
    edited.get_by_role("link").first.click()
    story = auditor.locator("#main")
    for told in ("by Ines H.", "take_from_duplicate", "address", merge.digest, "the same"):
        expect(story).to_contain_text(told)
    assert dev.evaluate("window.neverReloaded") is True
