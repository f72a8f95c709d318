"""Whatever an agent writes, on every page that shows it: nothing runs, is fetched, or leads away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents_runtime.canonical import storable
from agents_runtime.desk import ReviewRequest
from agents_runtime.models import Run
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus
from reviewer.accounts.models import User
from reviewer.models import AuditEvent, ReviewTask
from tests.cards.xss import XSS
from tests.cast import Cast
from tests.deciding.making import decision_schema, pause_run
from tests.processes import Site
from tests.web.stories import attempt, decide, deliver, run_becomes

pytestmark = pytest.mark.browser

PATIENCE = 60_000  # milliseconds; a busy machine may be slow
ALL = "\n\n".join(XSS)
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""
FOREIGN = """() => [
  ...[...document.querySelectorAll("a[href], form[action], [src], [formaction], [hx-get], [hx-post]")]
    .filter((part) => ["href", "action", "src", "formaction", "hx-get", "hx-post"].some((name) => {
      const address = part.getAttribute(name);
      return address !== null && new URL(address, document.baseURI).origin !== location.origin
        && !address.startsWith("data:,");
    })),
  ...document.querySelectorAll("main :is(script, iframe, object, embed, base, meta, link, style, img)"),
  ...document.querySelectorAll("[onload], [onerror], [onclick], [onfocus], [ontoggle], [style]"),
].map((part) => part.outerHTML.slice(0, 200))"""


def hostile_schema() -> Any:
    """Return a schema whose every word is hostile."""
    named = {
        text: {"type": "string", "title": text, "description": text, "default": text} for text in XSS[::3]
    }
    return {
        "type": "object",
        "title": XSS[0],
        "description": ALL,
        "properties": {
            **named,
            "pick": {"enum": list(XSS), "title": XSS[1]},
            "kind": {"oneOf": [{"const": text, "title": text} for text in XSS[:6]]},
            "list": {"type": "array", "items": {"type": "string"}, "title": XSS[2]},
        },
        "required": ["pick"],
        "additionalProperties": {"type": "string", "title": XSS[3]},
    }


def hostile_call(tool: str = XSS[1][:100]) -> ReviewRequest:
    """Return a request to call a tool, hostile wherever the agent or the author of a schema may write."""
    return ReviewRequest(
        position=0,
        kind="tool_call",
        tool=tool,
        tool_call_id="call-0",
        arguments={
            **{text: text for text in XSS},
            "pick": XSS[5],
            "kind": XSS[0],
            "list": list(XSS),
            "long": ALL * 3,
        },
        response_schema=decision_schema(tool, hostile_schema()),
        args_schema=hostile_schema(),
        description=ALL,
        said=ALL,
    )


def hostile_question() -> ReviewRequest:
    return ReviewRequest(
        position=0, kind="question", arguments=ALL, response_schema={"type": "string", "title": XSS[2]}
    )


def look(page: Page) -> list[str]:
    """Open everything that can be opened, and return what ran, was refused, or would lead away."""
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    found: list[str] = page.evaluate(FOREIGN) + page.evaluate("window.violations")
    if page.evaluate("window.pwned") is not None:
        found.append("it ran")
    return [f"{page.url}: {fault}" for fault in found]


def test_nothing_an_agent_writes_runs_or_leads_away_on_any_page(
    cast: Cast, page_of: Callable[..., Page], live_server_process: Site
) -> None:
    pause = pause_run(hostile_call(), by=cast.developer)
    task, other = pause.tasks.get(), pause_run(hostile_question(), by=cast.developer, interrupt="1" * 32)
    risky = pause_run(hostile_call("issue_refund"), by=cast.developer, interrupt="2" * 32).tasks.get()
    asked: list[str] = []
    found: list[str] = []

    def page_for(person: User) -> Page:
        page = page_of(person)
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: found.append(dialog.message))
        page.add_init_script(WATCH)
        page.set_default_timeout(PATIENCE)
        return page

    def see(page: Page, *addresses: str) -> None:
        for address in addresses:
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200, address
            assert "&lt;" in page.content() or not address.startswith(("/?", at)), address
            found.extend(look(page))

    at = f"/tasks/{task.pk}/"
    page = page_for(cast.reviewer)
    see(page, "/", at, f"{at}?verdict=edit", f"{at}?verdict=reject", f"/tasks/{other.tasks.get().pk}/")
    see(page, f"/tasks/{risky.pk}/")
    page.get_by_role("link", name="Show all hidden parts").click()
    expect(page.get_by_role("link", name="Show all hidden parts")).to_have_count(0, timeout=PATIENCE)
    found.extend(look(page))
    page.goto(f"{at}?verdict=edit")
    page.get_by_role("button", name="Edit as JSON").click()
    page.locator('[name="v:/edited_action/args"]').fill("{")
    page.locator("[data-send]").click()
    expect(page.get_by_role("alert").first).to_be_visible(timeout=PATIENCE)
    found.extend(look(page))

    edited = {"pick": XSS[6], "list": list(reversed(XSS)), XSS[7]: XSS[8]}
    answer = {"type": "edit", "edited_action": {"name": task.tool, "args": edited}}
    decide(task, cast, answer, comment=ALL)
    deliver(task, ends=PauseStatus.FAILED, error=storable(ALL))
    attempt(task, ExecutionStatus.RAISED, error=storable(ALL))
    run = Run.objects.get(pk=task.run_id)
    run_becomes(ReviewTask.objects.get(pk=task.pk), RunStatus.FAILED, error=storable(ALL))
    events = {event.type: event.pk for event in AuditEvent.objects.filter(task_id=task.pk)}
    assert "decision.made" in events
    page = page_for(cast.admin)
    see(page, at, f"/runs/{run.pk}/", "/runs/", "/", "/audit/", "/workload/")
    see(page, *(f"/audit/{event}/" for event in events.values()))
    assert not found, "\n".join(found)
    assert {url for url in asked if not url.startswith(live_server_process.url)} == set()
