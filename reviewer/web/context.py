"""What the shell of every page needs: the rail's sections with their counts, and the tabs at the foot."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from reviewer import queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User

HOT_AGE = dt.timedelta(minutes=20)
COUNTED_SECTIONS = ("work", "queues")


@dataclass(frozen=True)
class NavItem:
    """One place to go; ``oldest`` is when the task that waits longest there was asked."""

    key: str
    url: str
    icon: str
    label: str
    count: int = 0
    oldest: dt.datetime | None = None
    note: str = ""
    tone: str = ""
    current: bool = False


@dataclass(frozen=True)
class NavSection:
    """A titled group of places."""

    key: str
    title: str
    items: Sequence[NavItem]
    note: str = ""


@dataclass(frozen=True)
class Shell:
    """Everything around a page's own content."""

    sections: Sequence[NavSection]
    tabs: Sequence[NavItem]
    query: str = ""


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context processor: the shell for a signed-in person on a whole page, nothing for fragments."""
    user = getattr(request, "user", None)
    if not isinstance(user, User) or request.headers.get("HX-Request"):
        return {}
    sections = [_marked(section, request) for section in nav_sections(user)]
    return {"shell": Shell(sections=sections, tabs=_tabs(sections), query=request.GET.get("q", ""))}


def nav_sections(user: User) -> list[NavSection]:
    """Return the rail for this person, without a mark on the current page."""
    sections = [*counted_sections(user), _lead(user), _admin(user)]
    return [section for section in sections if section.items]


def counted_sections(user: User) -> list[NavSection]:
    """Return the sections whose numbers change as tasks come and go; the socket pushes these."""
    return [_work(user), _queues(user)]


def _work(user: User) -> NavSection:
    inbox = reverse("inbox")
    counts = queries.work_counts(user)
    items = [
        NavItem("inbox", inbox, "inbox", _("Inbox"), count=counts.waiting, oldest=counts.oldest),
        NavItem("claimed", f"{inbox}?view=claimed", "user-check", _("Claimed by me"), count=counts.claimed),
        NavItem(
            "decided",
            f"{inbox}?view=decided",
            "history",
            _("Decided by me"),
            count=counts.decided_today,
            note=_("today") if counts.decided_today else "",
        ),
    ]
    return NavSection("work", _("My work"), items, note=_("waiting · oldest"))


def _queues(user: User) -> NavSection:
    inbox = reverse("inbox")
    items = [
        NavItem(
            f"q{count.queue.pk}",
            f"{inbox}?queue={count.queue.slug}",
            count.queue.icon,
            count.queue.name,
            count=count.waiting,
            oldest=count.oldest,
            tone="hot" if count.oldest and timezone.now() - count.oldest > HOT_AGE else "",
        )
        for count in queries.queue_counts(user)
    ]
    return NavSection("queues", _("Queues"), items)


def _lead(user: User) -> NavSection:
    if not permissions.can_lead(user):
        return NavSection("lead", _("Lead"), ())
    pages = [
        _page("workload", "gauge", _("Workload")),
        _page("queues", "layers", _("Queues and rules")),
        _page("stuck", "wrench", _("Stuck runs")),
    ]
    return NavSection("lead", _("Lead"), [page for page in pages if page is not None])


def _admin(user: User) -> NavSection:
    pages = [
        _page("audit", "scroll-text", _("Audit trail")) if permissions.can_audit(user) else None,
        _page("agents", "bot", _("Agents")),
        _page("runs", "play", _("Runs")),
        _page("stuck", "wrench", _("Stuck runs")) if _only_audits(user) else None,
    ]
    title = _("Admin") if permissions.can_audit(user) else _("Agents at work")
    return NavSection("admin", title, [page for page in pages if page is not None])


def _only_audits(user: User) -> bool:
    return permissions.can_see_stuck(user) and not permissions.can_lead(user)


def _page(name: str, icon: str, label: str) -> NavItem | None:
    """Return the item of a page, or None while this edition has no such page."""
    try:
        return NavItem(name, reverse(name), icon, label)
    except NoReverseMatch:
        return None


def _marked(section: NavSection, request: HttpRequest) -> NavSection:
    return replace(section, items=[replace(item, current=_is_here(item, request)) for item in section.items])


def _is_here(item: NavItem, request: HttpRequest) -> bool:
    path, _sep, query = item.url.partition("?")
    if query:
        name, _sep, value = query.partition("=")
        return request.path == path and request.GET.get(name) == value
    if item.key == "inbox":
        return request.path == path and not {"view", "queue"} & request.GET.keys()
    return request.path.startswith(path)


def _tabs(sections: Sequence[NavSection]) -> list[NavItem]:
    short = {"inbox": _("Inbox"), "decided": _("Decided"), "runs": _("Runs")}
    items = [item for section in sections for item in section.items if item.key in short]
    return [replace(item, label=short[item.key]) for item in items]
