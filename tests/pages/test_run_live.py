"""A run's page in a real browser: it follows the run by itself and keeps what the reader does."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest
from django.db import connection
from playwright.sync_api import Page, expect

from agents_runtime.canonical import encode
from agents_runtime.models import Run, RunStep
from agents_runtime.states import RunStatus
from reviewer import decisions, live, organising
from reviewer.models import QueueMembership, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund
from tests.processes import Worker

pytestmark = pytest.mark.browser
Result = TypeVar("Result")
OpenPage = Callable[..., Page]


def elsewhere(act: Callable[[], Result]) -> Result:
    """Do something in a thread of its own: Playwright's event loop runs in this one, and hints need none."""

    def work() -> Result:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


def expect_caught_up(page: Page) -> None:
    """Wait until the socket has sent its first push, and the page has asked for its forms after it."""
    expect(page.locator("#run-refresh > span")).to_have_count(1)
    page.wait_for_load_state("networkidle")


@pytest.mark.worker
def test_a_run_page_follows_the_run_from_its_start_to_its_end_without_a_reload(
    cast: Cast, worker: Worker, page_of: OpenPage
) -> None:
    page = page_of(cast.developer)
    page.goto("/runs/start/refunds/")
    page.get_by_role("button", name="Start the run").click()
    status, timeline = page.locator("#run-status"), page.locator("#run-timeline")
    expect(status).to_have_text("Waiting for people")
    page.evaluate("window.neverReloaded = true")
    expect(timeline).to_contain_text("Paused for issue_refund")
    expect(page.locator("#run-side")).to_contain_text("values")

    task = ReviewTask.objects.get()
    elsewhere(lambda: decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest))
    expect(timeline).to_contain_text("Ines H. approved")
    expect(status).to_have_text("Finished")
    expect(timeline).to_contain_text("Tool ran issue_refund")
    expect(page.get_by_role("link", name="Give new input")).to_be_visible()
    expect(page.get_by_text("Cancel run")).to_have_count(0)
    assert page.evaluate("window.neverReloaded") is True


def test_text_appears_as_it_is_written_and_moves_into_the_timeline_when_it_is_whole(
    cast: Cast, page_of: OpenPage
) -> None:
    run = open_refund(by=cast.developer).run
    Run.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING)
    page = page_of(cast.reviewer)
    page.goto(f"/runs/{run.pk}/")
    expect_caught_up(page)
    output = page.locator("#run-output")
    expect(output).to_be_hidden()
    for text in ("I will ", "<b>look", "</b> first."):
        elsewhere(partial(live.run_produced, run.pk, [("m1", text)]))
    expect(output).to_contain_text("I will <b>look</b> first.")

    RunStep.objects.create(run=run, key="message:m1", kind=RunStep.Kind.MODEL, text="I will look first.")
    elsewhere(lambda: live.run_changed(run.pk))
    expect(page.locator("#run-timeline")).to_contain_text("I will look first.")
    expect(output).to_be_hidden()


def test_folds_that_the_reader_opened_stay_open_when_the_state_is_pushed(
    cast: Cast, page_of: OpenPage
) -> None:
    run = open_refund(by=cast.developer).run
    state = {"values": {"order": {"lines": [1, 2]}}, "next": ["tools"], "checkpoint_id": "c-1"}
    Run.objects.filter(pk=run.pk).update(state=encode(state))
    page = page_of(cast.reviewer)
    page.goto(f"/runs/{run.pk}/")
    expect_caught_up(page)
    fold = page.locator('[data-path="values/order"]')
    fold.locator("> summary").click()
    Run.objects.filter(pk=run.pk).update(state=encode(state | {"checkpoint_id": "c-2"}))
    elsewhere(lambda: live.run_changed(run.pk))
    expect(page.locator("#run-side")).to_contain_text("c-2")
    expect(fold).to_have_attribute("open", "")


def test_whoever_leaves_the_queue_loses_the_run_at_once(cast: Cast, page_of: OpenPage) -> None:
    run = open_refund(by=cast.developer).run
    page = page_of(cast.reviewer)
    page.goto(f"/runs/{run.pk}/")
    expect_caught_up(page)
    elsewhere(lambda: organising.remove_member("payments", user=cast.reviewer, by=cast.lead))
    expect(page.get_by_text("You can no longer see this run")).to_be_visible()
    assert QueueMembership.objects.filter(user=cast.reviewer).exists()


def test_a_run_is_cancelled_on_its_page_after_one_question_also_without_scripts(
    cast: Cast, page_of: OpenPage
) -> None:
    run = open_refund(by=cast.developer).run
    page = page_of(cast.developer, java_script_enabled=False)
    page.goto(f"/runs/{run.pk}/")
    page.locator("summary", has_text="Cancel run").click()
    page.get_by_role("button", name="Cancel this run").click()
    expect(page.locator("#run-status")).to_have_text("Cancelled")
