"""Workers are killed while they work: runs go on, pages recover, and what nobody knows is asked."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from playwright.sync_api import expect

from agents_runtime.models import Run
from reviewer.models import ReviewTask
from tests.agents import effects
from tests.journeys.walking import (
    OpenPage,
    ProgramOf,
    Say,
    becomes,
    effects_of,
    eventually,
    start_on_page,
    task_for,
)
from tests.processes import Worker
from tests.runtime.driving import APPROVE, call, script

pytestmark = pytest.mark.worker
TOOLS = ("archive_record", "delete_record", "merge_records")
TOLD = {"receipt": 7}
SOME_WORDS = re.compile(r"The check|C-\d|propose")
"""Of what the agent writes: a page that opens late on a busy machine shows it from there on."""


def kill_everything(worker: Worker) -> None:
    """Kill the worker with all its children and start it again, as its supervisor does."""
    worker.kill()
    worker.start()


def kill_the_children(worker: Worker) -> None:
    """Kill only the processes of the pool, in which the agents run."""
    for child in psutil.Process(worker.pid).children(recursive=True):
        child.kill()


@pytest.mark.browser
@pytest.mark.parametrize("kill", [kill_everything, kill_the_children])
def test_a_run_whose_worker_is_killed_while_it_writes_is_picked_up_and_its_page_recovers(
    kill: Callable[[Worker], None],
    product: Worker,
    page_for: OpenPage,
    program_of: ProgramOf,
    say: Say,
) -> None:
    page = page_for("developer")
    run = start_on_page(page, "records_cleanup")
    page.evaluate("window.neverReloaded = true")
    expect(page.locator("#run-output")).to_contain_text(SOME_WORDS)
    epoch = Run.objects.get(pk=run.pk, status="running").epoch
    began = time.monotonic()
    kill(product)
    ready = time.monotonic() - began
    waited = eventually(lambda: Run.objects.filter(pk=run.pk, epoch__gt=epoch).exists(), "another worker")
    say(f"{kill.__name__}: work again after {ready + waited:.1f} s, {ready:.1f} s of it to start a worker.")

    expect(page.locator("#run-status")).to_have_text("Waiting for people", timeout=30_000)
    expect(page.locator("#run-output")).to_be_hidden()
    expect(page.locator("#run-timeline").get_by_text("I propose a change for each")).to_have_count(1)
    program = program_of("reviewer")
    for tool in TOOLS:
        status, answer = program.decide(task_for(run, tool), APPROVE)
        assert status == 200, answer
    expect(page.locator("#run-status")).to_have_text("Finished", timeout=30_000)
    assert page.evaluate("window.neverReloaded") is True
    assert sorted(tool for tool, _ in effects_of(run)) == list(TOOLS)


class Doubts:
    """Three runs whose approved tool was running when its worker was killed."""

    def __init__(self, worker: Worker, program_of: ProgramOf) -> None:
        self.developer, self.reviewer, self.lead = map(program_of, ("developer", "reviewer", "lead"))
        self.auditor = program_of("auditor")
        self._worker = worker
        effects.flag("wait_pay").touch()
        self.runs = [self._running(number) for number in range(3)]
        eventually(lambda: effects.count("pay_began") == 3, "three tools to run")

    def arise(self) -> None:
        """Kill the worker, with the tools half done."""
        kill_the_children(self._worker)
        effects.flag("wait_pay").unlink()
        for run in self.runs:
            becomes(run, "in_doubt")

    def task(self, number: int) -> ReviewTask:
        """Return the task of one of the runs."""
        return task_for(self.runs[number], "pay")

    def paid(self) -> list[int]:
        """Return for each run how often it really paid."""
        return [effects.count("pay", amount=number) for number in range(3)]

    def _running(self, number: int) -> Run:
        turn: Any = script([call("pay", to="somebody", amount=number)])
        status, started = self.developer.post("runs", {"agent": "t-per-call", "input": turn})
        assert status == 201, started
        run = Run.objects.get(pk=started["id"])
        status, answer = self.reviewer.decide(task_for(run, "pay"), APPROVE)
        assert status == 200, answer
        return run


@pytest.fixture
def doubts(product: Worker, program_of: ProgramOf) -> Doubts:
    """Three runs about to be in doubt."""
    return Doubts(product, program_of)


@pytest.mark.browser
def test_a_doubt_shows_by_itself_and_is_settled_in_each_way_on_the_pages(
    doubts: Doubts, page_for: OpenPage
) -> None:
    card, of_run, reader = page_for("reviewer"), page_for("developer"), page_for("auditor")
    card.goto(f"/tasks/{doubts.task(0).pk}/")
    of_run.goto(f"/runs/{doubts.runs[1].pk}/")
    reader.goto(f"/tasks/{doubts.task(2).pk}/")
    doubts.arise()

    for page in (card, reader):
        expect(page.locator("[data-card-state]")).to_contain_text("In doubt", timeout=30_000)
    expect(of_run.locator("#run-status")).to_have_text("In doubt", timeout=30_000)
    expect(reader.get_by_role("group", name="Settle it")).to_contain_text("can settle it")

    card.get_by_label("what did the tool answer?").fill('{"receipt": 7}')
    card.get_by_role("button", name="It happened").click()
    of_run.get_by_role("radio", name="Run it again").check()
    of_run.get_by_role("button", name="Record this").click()
    expect(card.locator("[data-card-state]")).to_contain_text("Settled", timeout=30_000)
    expect(of_run.locator("#run-status")).to_have_text("Finished", timeout=30_000)

    card.goto(f"/tasks/{doubts.task(2).pk}/")
    card.get_by_role("button", name="Stop the run").click()
    becomes(doubts.runs[2], "cancelled")
    assert "receipt" in becomes(doubts.runs[0], "finished").output
    assert doubts.paid() == [0, 1, 0]


def test_a_doubt_is_settled_in_each_way_through_the_api(doubts: Doubts) -> None:
    doubts.arise()
    first, second, third = doubts.runs
    shown = doubts.developer.get(f"runs/{first.pk}")
    assert shown["status"] == "in_doubt"
    (doubt,) = shown["in_doubt"]
    assert doubt["tool"] == "pay"
    status, _ = doubts.auditor.post(f"runs/{first.pk}/settle", {"outcome": "run_again"})
    assert status == 403

    happened = {"outcome": "happened", "result": TOLD, "execution": doubt["execution"]}
    for run, settlement in (
        (first, happened),
        (second, {"outcome": "run_again"}),
        (third, {"outcome": "stop"}),
    ):
        status, answer = doubts.lead.post(f"runs/{run.pk}/settle", settlement)
        assert status == 200, answer
    assert "receipt" in becomes(first, "finished").output
    becomes(second, "finished")
    becomes(third, "cancelled")
    status, _ = doubts.lead.post(f"runs/{first.pk}/settle", happened)
    assert status == 409
    assert doubts.paid() == [0, 1, 0]
