"""Runs that are stuck: why each is, since when, and a button for each safe way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents_runtime import runs
from agents_runtime.models import Run
from agents_runtime.runs import Stuck, Way, Why
from reviewer import queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.web.requests import person

RUNS_A_PAGE = 50

EXPLAINED: dict[Why, str | Promise] = {
    Why.IN_DOUBT: _(
        "Its worker stopped after a call went out and before an answer came back. Look at the target, then "
        "say what is true. Nothing is run again by itself."
    ),
    Why.TOOL: _(
        "It may have taken effect before it failed. Look at the target first; a retry runs it once more "
        "under the same decision."
    ),
    Why.STEP: _("What was decided stays recorded. A retry takes up where it stopped; nothing is sent twice."),
    Why.DEATHS: _("It is not tried again by itself. The worker’s log says more; a retry tries once more."),
    Why.BATCH: _(
        "What it asked stands beside work that is done and would be done twice. It can only be ended."
    ),
    Why.CHECKPOINT: _(
        "Without them nobody knows where it stood, so it starts nothing anew. It can only be ended."
    ),
    Why.BUILD: _(
        "It began on other nodes, tools, gates or libraries. On the present build its question may be lost: "
        "look at what changed before you let it go on."
    ),
    Why.PLACE: _(
        "It waits at a step that the present build does not have: there it would read as finished. Bring "
        "the old build back and let it go on there, or end the run."
    ),
    Why.AGENT: _("Its code does not import or is no longer listed. Bring it back, or end the run."),
    Why.LOCKED: _(
        "The step may hang; its deadline ends it. To end it now, cancel: no gated tool starts after that."
    ),
    Why.UNDELIVERED: _("The decision is stored. A worker delivers it from the record, exactly once."),
    Why.UNWORKED: _(
        "Are workers running? Waking one does no harm: it finds from the record what is to be done."
    ),
    Why.NO_TASK: _("A worker that reads its thread again finds what it asks, or that it can go on."),
}
ICONS: dict[Why, str] = {
    Why.IN_DOUBT: "circle-question-mark",
    Why.BUILD: "workflow",
    Why.PLACE: "workflow",
    Why.AGENT: "bot",
    Why.LOCKED: "lock",
    Why.UNDELIVERED: "send",
    Why.UNWORKED: "hourglass",
    Why.NO_TASK: "inbox",
}
LOUD = frozenset({Why.IN_DOUBT, Why.TOOL, Why.STEP, Why.DEATHS, Why.BATCH, Why.CHECKPOINT, Why.PLACE})


@dataclass(frozen=True)
class StuckRow:
    """A stuck run as the page shows it; ``ways`` are those that the reader may go."""

    stuck: Stuck
    ways: Sequence[Way]

    @property
    def run(self) -> Run:
        """The run itself."""
        return self.stuck.run

    @property
    def explained(self) -> str | Promise:
        """What it means, and what to do first."""
        return EXPLAINED[self.stuck.why]

    @property
    def icon(self) -> str:
        """Its symbol."""
        return ICONS.get(self.stuck.why, "octagon-alert")

    @property
    def tone(self) -> str:
        """How loud it is."""
        return "danger" if self.stuck.why in LOUD else "warn"

    @property
    def error(self) -> str:
        """What went wrong, in the agent's own words; for the rest the explanation says all."""
        return (self.stuck.failure or self.run.error) if self.stuck.why in LOUD else ""


@require_GET
@never_cache
def stuck(request: HttpRequest) -> HttpResponse:
    """List the stuck runs that are the reader's to look after, longest first."""
    reader = person(request)
    page = Paginator(queries.stuck_runs(reader), RUNS_A_PAGE).get_page(request.GET.get("page"))
    rows = [StuckRow(found, ways_for(reader, found)) for found in runs.diagnose(list(page.object_list))]
    return render(request, "runs/stuck.html", {"page": page, "rows": rows, "reader": reader})


def ways_for(reader: User, found: Stuck) -> Sequence[Way]:
    """Return the ways out that this person may go."""
    may = permissions.can_steer_run(reader, run_id=found.run.pk, requested_by=found.run.requested_by)
    return found.ways if may else ()
