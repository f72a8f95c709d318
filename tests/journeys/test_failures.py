"""What goes wrong after a decision: a tool that raises, and an agent that refuses an answer."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from agents_runtime.models import Run
from reviewer.models import ReviewTask
from tests.agents import effects
from tests.journeys.walking import OpenPage, Program, ProgramOf, becomes, choice, eventually, task_for
from tests.processes import Worker
from tests.runtime.driving import REJECT, call, script

pytestmark = [pytest.mark.browser, pytest.mark.worker]


def started(program: Program, agent: str, input: Any) -> Run:
    """Start a run through the API."""
    status, answer = program.post("runs", {"agent": agent, "input": input})
    assert status == 201, answer
    return Run.objects.get(pk=answer["id"])


def test_a_tool_that_raises_after_approval_is_retried_or_given_up_and_a_late_reject_is_told_so(
    product: Worker, page_for: OpenPage, program_of: ProgramOf
) -> None:
    effects.flag("fail_pay").touch()
    dev, reviewer = (program_of(name) for name in ("developer", "reviewer"))
    runs = [started(dev, "t-per-call", script([call("pay", to="a", amount=n)])) for n in range(2)]
    again, never = (task_for(run, "pay") for run in runs)

    page, lead = page_for("reviewer"), page_for("lead")
    for task in (again, never):
        page.goto(f"/tasks/{task.pk}/")
        choice(page, "Approve").click()
        expect(page.locator("[data-card-state]")).to_contain_text(
            "Approved, but the tool failed", timeout=30_000
        )
        expect(page.locator("#main")).to_contain_text("pay does not work today")
    status, told = reviewer.decide(never, REJECT)
    assert status == 409
    assert "Ines H." in told["message"]

    effects.flag("fail_pay").unlink()
    lead.goto(f"/tasks/{again.pk}/")
    lead.get_by_role("button", name="Retry once").click()
    expect(lead.locator("[data-card-state]")).to_contain_text("Executed", timeout=30_000)
    lead.goto(f"/tasks/{never.pk}/")
    lead.get_by_role("button", name="Cancel run").click()
    becomes(runs[1], "cancelled")
    becomes(runs[0], "finished")
    assert [effects.count("pay", amount=n) for n in range(2)] == [1, 0]
    assert [effects.count("pay_began")] == [3]


def test_an_answer_that_the_agent_refuses_comes_back_as_a_linked_card_with_the_reason(
    product: Worker, page_for: OpenPage, program_of: ProgramOf
) -> None:
    run = started(program_of("developer"), "t-picky", {"ask": ""})
    eventually(lambda: ReviewTask.objects.filter(run=run).exists(), "the question")
    first = ReviewTask.objects.get(run=run)
    page = page_for("reviewer")
    page.goto(f"/tasks/{first.pk}/")
    page.get_by_label("Number").fill("7")
    page.locator("[data-send]").click()
    expect(page.locator("[data-card-state]")).to_contain_text("The agent refused this answer", timeout=30_000)

    page.get_by_role("link", name="Open the newer card").click()
    expect(page.locator("#main")).to_contain_text("receipts have even numbers")
    second = ReviewTask.objects.get(run=run, previous=first)
    assert page.url.endswith(f"/tasks/{second.pk}/")
    page.get_by_label("Number").fill("8")
    page.locator("[data-send]").click()
    finished = becomes(run, "finished")
    assert '"answers":[8]' in finished.output
