"""One run: its story and state, and what a person does to it as a whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents_runtime import runs
from agents_runtime.canonical import Json, decode
from agents_runtime.errors import InvalidInput
from agents_runtime.models import Run
from agents_runtime.runs import Stuck, Way
from agents_runtime.states import RunStatus
from reviewer import queries, steering
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.errors import Conflict
from reviewer.timeline import Story, tell
from reviewer.web.inputforms import input_form, misfits, read_input
from reviewer.web.requests import person, safe_next, whole_number

STATE_PARTS = ("values", "next", "interrupts")
OUTCOMES = ("happened", "run_again", "stop")


@require_GET
@never_cache
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Draw a run's page."""
    reader = person(request)
    return render(request, "runs/run.html", run_context(reader, queries.get_run(reader, run_id)))


@require_GET
@never_cache
def steer(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Draw only what a person can do now: it holds forms, so it comes by request and not by push."""
    reader = person(request)
    return render(request, "runs/steer_push.html", run_context(reader, queries.get_run(reader, run_id)))


@require_POST
def cancel(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Stop the run, and say so where a tool had started already."""
    run = steering.cancel(run_id, by=person(request))
    messages.info(request, _("The run is cancelled. Its open cards were withdrawn."))
    if started := queries.tools_under_way(run):
        told = _("Already started, and not undone: %(tools)s. Look at the target.")
        messages.warning(request, told % {"tools": ", ".join(sorted(started))})
    return _go_on(request, run_id)


@require_POST
def retry(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Permit one more attempt."""
    steering.retry(run_id, by=person(request))
    messages.info(request, _("One more attempt is on its way."))
    return _go_on(request, run_id)


@require_POST
def wake(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Have a worker look at the run."""
    steering.wake(run_id, by=person(request))
    messages.info(request, _("A worker looks at it as soon as one is free."))
    return _go_on(request, run_id)


@require_POST
def accept_build(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Let the run go on with the build of its agent that is registered now."""
    steering.accept_build(run_id, by=person(request))
    messages.info(request, _("The run goes on with the present build."))
    return _go_on(request, run_id)


@require_POST
def settle(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Say what happened to a call in doubt."""
    reader, outcome = person(request), request.POST.get("outcome", "")
    if outcome not in OUTCOMES:
        context = run_context(reader, queries.get_run(reader, run_id))
        context |= {"settle_error": _("Choose one of the three"), "typed": request.POST.get("result", "")}
        return render(request, "runs/run.html", context, status=422)
    steering.settle(
        run_id,
        outcome=outcome,
        by=reader,
        result=_result(request.POST.get("result", "")) if outcome == "happened" else None,
        execution_id=whole_number(request.POST.get("execution", "")),
    )
    messages.info(request, _("It is recorded what you said. The run goes by that."))
    return _go_on(request, run_id)


@require_http_methods(["GET", "POST"])
@never_cache
def add_input(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Draw the form of the agent's input, and give the finished run what was entered."""
    reader = person(request)
    found = queries.get_run(reader, run_id)
    steering.guard_may_feed(found, by=reader)
    form = input_form(found.agent, with_example=False)
    if request.method == "GET":
        return _input_page(request, found, {"form": form})
    reading, closes = read_input(form, request), request.POST.get("close_open_reviews") == "1"
    context = {"form": reading.form, "errors": reading.errors, "closes": closes}
    if reading.is_op or reading.errors:
        return _input_page(request, found, context, status=200 if reading.is_op else 422)
    try:
        steering.add_input(run_id, input=reading.answer, by=reader, close_open_reviews=closes)
    except InvalidInput as problem:
        context["errors"] = misfits(reading.form, problem)
        return _input_page(request, found, context, status=422)
    except Conflict as problem:
        return _input_page(request, found, context | {"refused": str(problem)}, status=409)
    messages.success(request, _("The run works on with the new input."))
    return redirect("run", run_id)


def run_context(reader: User, found: Run) -> dict[str, Any]:
    """Return what the page of a run, and each part of it that is pushed, is drawn from."""
    story = tell(reader, found)
    state = decode(found.state) if found.state else {}
    return {
        "run": found,
        "reader": reader,
        "story": story,
        "requester": queries.requesters([found]).get(found.requested_by),
        "state": [(name, state[name]) for name in STATE_PARTS if name in state],
        "checkpoint": state.get("checkpoint_id", ""),
        "input": decode(found.input),
        "output": decode(found.output) if found.output else None,
        "zone": timezone.get_current_timezone_name(),
        "may_audit": permissions.can_audit(reader),
        "may": _may(reader, found, story),
        "steer_key": f"{found.status}-{len(story.doubts)}-{len(story.failed)}-{found.trouble}",
    }


def _go_on(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Go back to the card that the button stood on, or to the run."""
    return redirect(safe_next(request, reverse("run", args=[run_id])))


def _may(reader: User, found: Run, story: Story) -> dict[str, bool]:
    """Return what the reader can do to the run in its present state."""
    if not permissions.can_steer_run(reader, run_id=found.pk, requested_by=found.requested_by):
        return {}
    ways = {way for stuck in _stuck(found) for way in stuck.ways}
    return {
        "cancel": found.is_live or found.status == RunStatus.FAILED,
        "retry": Way.RETRY in ways or _waits_with_a_failure(found, story),
        "build": Way.ACCEPT_BUILD in ways,
        "wake": Way.WAKE in ways,
        "settle": found.status == RunStatus.IN_DOUBT,
        "input": _takes_input(found, story)
        and permissions.can_feed_run(reader, requested_by=found.requested_by),
    }


def _stuck(found: Run) -> Sequence[Stuck]:
    """Say why the run is stuck; one at work is not asked about, since its page is redrawn all the time."""
    return () if found.status == RunStatus.RUNNING else runs.diagnose([found])


def _takes_input(found: Run, story: Story) -> bool:
    """A run that asks people takes input, too, but only after a question: its cards are closed for it."""
    if found.status == RunStatus.FINISHED:
        return found.thread_deleted_at is None
    return found.status == RunStatus.WAITING and not story.failed


def _waits_with_a_failure(found: Run, story: Story) -> bool:
    return found.status == RunStatus.WAITING and (bool(story.failed) or found.error != "")


def _input_page(
    request: HttpRequest, found: Run, context: dict[str, object], *, status: int = 200
) -> HttpResponse:
    tasks = list(queries.open_tasks_of_run(found))
    visible = queries.visible_tasks(person(request)).filter(pk__in=[task.pk for task in tasks])
    shown = {"run": found, "open_count": len(tasks), "open_tasks": list(visible), **context}
    return render(request, "runs/input.html", shown, status=status)


def _result(text: str) -> Json:
    """Read a result as JSON where it is JSON, else as plain text; nothing typed is no result."""
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.replace("\r\n", "\n")
