"""The runs a person may see, and starting one."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from agents_runtime.errors import InvalidInput
from agents_runtime.models import AgentSpec
from agents_runtime.states import RunStatus
from reviewer import queries, steering
from reviewer.accounts import permissions
from reviewer.queries import RunFilter
from reviewer.web.inputforms import input_form, misfits, read_input
from reviewer.web.requests import person

RUNS_A_PAGE = 50


@require_GET
@never_cache
def runs(request: HttpRequest) -> HttpResponse:
    """List the runs, newest first."""
    reader = person(request)
    wanted = _filter_of(request)
    page = Paginator(queries.runs(reader, wanted), RUNS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "people": queries.requesters(page.object_list),
        "reader": reader,
        "wanted": wanted,
        "filtered": wanted != RunFilter(),
        "statuses": RunStatus.choices,
        "agents": queries.agents(reader),
        "may_start": permissions.can_start_runs(reader),
    }
    return render(request, "runs/runs.html", context)


@require_GET
@never_cache
def choose_agent(request: HttpRequest) -> HttpResponse:
    """Offer the agents that a run can be started of."""
    reader = person(request)
    _guard_may_start(request)
    return render(request, "runs/choose.html", {"agents": queries.agents(reader).filter(is_listed=True)})


@require_http_methods(["GET", "POST"])
@never_cache
def start(request: HttpRequest, agent: str) -> HttpResponse:
    """Draw the form of an agent's input, and start a run with what was entered."""
    reader = person(request)
    spec = queries.get_agent(reader, agent)
    _guard_may_start(request)
    form = input_form(spec)
    if request.method == "GET":
        return _start_page(request, spec, {"form": form})
    reading = read_input(form, request)
    if reading.is_op or reading.errors:
        context = {"form": reading.form, "errors": reading.errors}
        return _start_page(request, spec, context, status=200 if reading.is_op else 422)
    try:
        run = steering.start_run(spec.name, input=reading.answer, by=reader)
    except InvalidInput as problem:
        return _start_page(
            request, spec, {"form": reading.form, "errors": misfits(reading.form, problem)}, status=422
        )
    return redirect("run", run.pk)


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """Go to the run that a search names by its id, else to the inbox with the search."""
    text = request.GET.get("q", "").strip()
    found = queries.find_run(person(request), text)
    return (
        redirect("run", found.pk)
        if found
        else redirect(reverse("inbox", query={"q": text} if text else None))
    )


def _guard_may_start(request: HttpRequest) -> None:
    if not permissions.can_start_runs(person(request)):
        raise PermissionDenied(_("Your role does not start runs. Developers, leads and administrators do."))


def _start_page(
    request: HttpRequest, spec: AgentSpec, context: dict[str, object], *, status: int = 200
) -> HttpResponse:
    return render(request, "runs/start.html", {"agent": spec, **context}, status=status)


def _filter_of(request: HttpRequest) -> RunFilter:
    status = request.GET.get("status", "")
    return RunFilter(
        status=status if status in RunStatus.values else "",
        agent=request.GET.get("agent", ""),
        mine=request.GET.get("mine") == "1",
    )
