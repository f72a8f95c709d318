"""The inbox: the list of what waits beside the card that is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from reviewer import openings, queries
from reviewer.accounts.models import User
from reviewer.models import Decision, ReviewTask
from reviewer.queries import InboxFilter
from reviewer.web.cardpage import CardPage, build_page
from reviewer.web.hidden_parts import SHOW, open_asked
from reviewer.web.requests import is_fetched_ahead, person, whole_number
from reviewer.web.rows import NO_DEADLINE, groups_of

SHOWN = 200
DECIDED_SHOWN = 100
DECIDED_BESIDE = 20
VIEWS = ("claimed", "decided")


@dataclass(frozen=True)
class Chip:
    """One quick filter on a phone."""

    label: str
    url: str
    count: int
    current: bool


@require_GET
@never_cache
def inbox(request: HttpRequest) -> HttpResponse:
    """Draw one view of the inbox with the chosen task, or the most urgent one, open beside it."""
    reader = person(request)
    wanted = filter_of(request)
    tasks = list(queries.inbox(reader, wanted)[:SHOWN])
    chosen = _chosen(request, reader, tasks)
    landing: Sequence[str] = ()
    if chosen is not None and not is_fetched_ahead(request):
        openings.opened(chosen, by=reader, via="web")
        landing = open_asked(chosen, reader, verdict="", show=request.GET.get(SHOW, ""))
    page = open_page(reader, chosen, after=after_of(reader, request.GET.get("after", "")), landing=landing)
    context = _list_context(reader, wanted, tasks, chosen)
    context |= {
        "page": page,
        "opened": "task" in request.GET,
        "zero": _zero(reader) if chosen is None else {},
    }
    return render(request, "inbox/inbox.html", context)


def open_page(
    reader: User, task: ReviewTask | None, *, after: Decision | None = None, landing: Sequence[str] = ()
) -> CardPage:
    """Return the page of the card in the inbox's pane, or the empty pane."""
    if task is None:
        return CardPage(after=after, origin="inbox")
    return build_page(task, reader, origin="inbox", beside=True, after=after, landing=landing)


def filter_of(request: HttpRequest) -> InboxFilter:
    """Read which view of the inbox an address asks for."""
    view = request.GET.get("view", "")
    return InboxFilter(
        scope=view if view in VIEWS else "waiting",
        queue=request.GET.get("queue", ""),
        text=request.GET.get("q", "").strip(),
    )


def next_task(reader: User, task: ReviewTask) -> ReviewTask | None:
    """Return the task that follows a decided one in the reader's inbox: free or theirs, most urgent first."""
    now = timezone.now()
    waiting = [
        other
        for other in queries.inbox(reader, InboxFilter())[:SHOWN]
        if other.pk != task.pk
        and (
            other.claimed_by_id in {None, reader.pk} or not other.claimed_until or other.claimed_until <= now
        )
        and not other.run.is_directed_by(reader.reference)
    ]
    return next(
        (other for other in waiting if _order(other) >= _order(task)), waiting[0] if waiting else None
    )


def after_of(reader: User, decision_id: str) -> Decision | None:
    """Return the reader's own decision to tell of above the next card."""
    number = whole_number(decision_id)
    if number is None:
        return None
    return Decision.objects.filter(person=reader, pk=number).select_related("task").first()


def _order(task: ReviewTask) -> tuple[float, float]:
    return (task.due_at.timestamp() if task.due_at else NO_DEADLINE, task.created_at.timestamp())


def _chosen(request: HttpRequest, reader: User, tasks: list[ReviewTask]) -> ReviewTask | None:
    asked = request.GET.get("task", "")
    if asked:
        return queries.get_task(reader, _uuid(asked))
    if filter_of(request).scope == "decided":
        return tasks[0] if tasks else None
    groups = groups_of(tasks, reader, current=None)
    return next((row.task for group in groups for row in group.rows), None)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return UUID(int=0)  # never given to a task, so it is found by nobody


def _list_context(
    reader: User,
    wanted: InboxFilter,
    tasks: list[ReviewTask],
    chosen: ReviewTask | None,
) -> dict[str, Any]:
    is_filtered = bool(wanted.queue or wanted.text or wanted.scope != "waiting")
    waiting = [] if wanted.scope == "decided" else tasks
    decided = _decided(reader, wanted, is_empty=not tasks)
    return {
        "reader": reader,
        "wanted": wanted,
        "heading": _heading(reader, wanted),
        "groups": groups_of(waiting, reader, current=chosen),
        "waiting": len(waiting),
        "filtered": is_filtered,
        "decided": decided,
        "decided_title": _("Decided by you"),
        "strip": _strip(reader, wanted),
        "nothing": _("Nothing waits in this view"),
        "clear_url": reverse("inbox"),
        "clear_label": _("Show the whole inbox"),
    }


def _heading(reader: User, wanted: InboxFilter) -> str:
    if wanted.queue:
        return queries.get_queue(reader, wanted.queue).name
    if wanted.text:
        return _("Search")
    return {"claimed": _("Claimed by me"), "decided": _("Decided by me")}.get(wanted.scope, _("Inbox"))


def _decided(reader: User, wanted: InboxFilter, *, is_empty: bool) -> list[Decision]:
    if wanted.scope != "decided" and (not is_empty or wanted != InboxFilter()):
        return []
    decisions = reader.decisions.select_related("task").order_by("-decided_at")
    if wanted.scope == "decided":
        found = queries.inbox(reader, replace(wanted, scope="decided")).values("pk")
        return list(decisions.filter(task__in=found)[:DECIDED_SHOWN])
    return list(decisions.filter(decided_at__date=timezone.localdate())[:DECIDED_BESIDE])


def _strip(reader: User, wanted: InboxFilter) -> list[Chip]:
    inbox_url = reverse("inbox")
    is_all = not wanted.queue and wanted.scope == "waiting"
    chips = [Chip(_("All"), inbox_url, queries.work_counts(reader).waiting, current=is_all)]
    for count in queries.queue_counts(reader):
        if count.waiting:
            url = f"{inbox_url}?queue={count.queue.slug}"
            chips.append(Chip(count.queue.name, url, count.waiting, current=wanted.queue == count.queue.slug))
    return chips


def _zero(reader: User) -> dict[str, int]:
    """Return what is true while nothing waits."""
    today = reader.decisions.filter(decided_at__date=timezone.localdate()).select_related("task")
    decided = list(today)
    in_time = [item for item in decided if item.task.due_at is None or item.decided_at <= item.task.due_at]
    running = queries.visible_runs(reader).filter(status__in=["queued", "running"]).count()
    return {"running": running, "decided_today": len(decided), "in_time": len(in_time)}
