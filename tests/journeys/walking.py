"""How people and programs walk through the product, and what they look at afterwards.

Everything here goes through pages and the API as they are served. Only what no door shows is read from the
database or from disk: what tools really did, and how often.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import connection
from playwright.sync_api import Locator, Page, expect

from agents_runtime.models import Run
from reviewer.models import ReviewTask

Result = TypeVar("Result")
OpenPage = Callable[..., Page]
Say = Callable[[str], None]
ProgramOf = Callable[[str], "Program"]
PATIENCE = 30.0  # seconds; the machine may be busy, and a journey is no stopwatch


def sign_in(page: Page, username: str) -> None:
    """Sign in as a person does."""
    page.goto("/accounts/login/")
    page.get_by_label("Account name").fill(username)
    page.get_by_label("Password").fill(settings.ENV.demo_password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#main")).to_be_visible()
    assert "/accounts/login/" not in page.url


def start_on_page(page: Page, agent: str) -> Run:
    """Start an agent with its example input, and stay on the run's page."""
    page.goto(f"/runs/start/{agent}/")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/$"))
    return Run.objects.get(pk=UUID(page.url.rstrip("/").rsplit("/", 1)[-1]))


def is_live(page: Page) -> None:
    """Wait until the page's socket is connected."""
    expect(page.locator("html")).to_have_attribute("data-live", "on")


def row_of(page: Page, task: ReviewTask) -> Locator:
    """Return the task's row in the list."""
    return page.locator(f"#row-{task.pk}")


def open_card(page: Page, task: ReviewTask) -> None:
    """Open a card from the list, and wait until it stands in the pane."""
    row_of(page, task).click()
    expect(page.locator("#pane [data-card-title]")).to_have_text(task.title)


def choice(page: Page, verb: str) -> Locator:
    """Return what one presses on a card to take this decision: a button, or a link to its form."""
    return page.get_by_role("group", name="Decision").locator("a, button").filter(has_text=verb)


def task_for(run: Run, tool: str, **filters: Any) -> ReviewTask:
    """Return the one task of a run for a tool, as soon as it is there."""
    found = ReviewTask.objects.filter(run=run, tool=tool, **filters)
    eventually(found.exists, f"a task for {tool}")
    return found.get()


def becomes(run: Run, status: str) -> Run:
    """Wait until the run has this status, and return it."""
    eventually(lambda: Run.objects.filter(pk=run.pk, status=status).exists(), f"{run.pk} to be {status}")
    return Run.objects.get(pk=run.pk)


def eventually(is_so: Callable[[], bool], what: str, seconds: float = PATIENCE) -> float:
    """Wait until something is so, and return how many seconds that took."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < seconds, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.03)
    return time.monotonic() - began


def elsewhere(act: Callable[[], Result]) -> Result:
    """Do something in a thread of its own: hints need one without an event loop, and Playwright runs one."""

    def work() -> Result:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


def effects_of(run: Run) -> list[tuple[str, dict[str, Any]]]:
    """Return what the shipped tools really did in a run: tool and arguments, in order."""
    ledger = Path(settings.COUNTERSIGN_HOME) / "demo-effects.jsonl"
    lines = [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []
    return [(line["tool"], line["arguments"]) for line in lines if line["thread"] == str(run.pk)]


class Program:
    """A program of somebody, at the API as it is served."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/api/v1"
        self._token = token

    def get(self, path: str) -> Any:
        """Return the JSON of a GET that succeeds."""
        status, found = self._ask(path)
        assert status == 200, found
        return found

    def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON of a POST."""
        return self._ask(path, json.dumps(body).encode())

    def decide(self, task: ReviewTask, answer: Any, **more: Any) -> tuple[int, Any]:
        """Read the card, and decide on what it shows."""
        card = self.get(f"tasks/{task.pk}")
        return self.post(f"tasks/{task.pk}/decision", {"answer": answer, "digest": card["digest"], **more})

    def _ask(self, path: str, body: bytes | None = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}/{path}", data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)
