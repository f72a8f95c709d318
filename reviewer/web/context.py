"""What the shell of every page needs: the rail's sections with their counts, the tabs, the account menu."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from reviewer.accounts.models import Role, User

HOT_AGE = dt.timedelta(minutes=20)


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
    account: Sequence[NavItem]
    rendered_at: str
    query: str = ""
    organisation: str = ""


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context processor: the shell for a signed-in person, nothing for anybody else."""
    user = getattr(request, "user", None)
    if not isinstance(user, User):
        return {}
    sections = [_marked(section, request) for section in nav_sections(user)]
    return {
        "shell": Shell(
            sections=sections,
            tabs=_tabs(sections),
            account=(),
            rendered_at=timezone.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
            query=request.GET.get("q", ""),
        )
    }


def nav_sections(user: User) -> list[NavSection]:
    """Return the rail for this person, without a mark on the current page."""
    sections = [_work(user), _queues(user), _lead(user), _admin(user)]
    return [section for section in sections if section.items]


def _work(user: User) -> NavSection:
    inbox = reverse("inbox")
    return NavSection(
        "work",
        _("My work"),
        [
            NavItem("inbox", inbox, "inbox", _("Inbox")),
            NavItem("claimed", f"{inbox}?view=claimed", "user-check", _("Claimed by me")),
            NavItem("decided", f"{inbox}?view=decided", "history", _("Decided by me")),
        ],
        note=_("waiting · oldest"),
    )


def _queues(user: User) -> NavSection:
    return NavSection("queues", _("Queues"), [])


def _lead(user: User) -> NavSection:
    return NavSection("lead", _("Lead"), [])


def _admin(user: User) -> NavSection:
    return NavSection("admin", _("Admin"), [])


def _marked(section: NavSection, request: HttpRequest) -> NavSection:
    here = request.get_full_path() if request.GET.get("view") or request.GET.get("queue") else request.path
    items = [replace(item, current=item.url == here) for item in section.items]
    return replace(section, items=items)


def _tabs(sections: Sequence[NavSection]) -> list[NavItem]:
    short = {"inbox": _("Inbox"), "decided": _("Decided"), "runs": _("Runs")}
    return [
        replace(item, label=short[item.key])
        for section in sections
        for item in section.items
        if item.key in short
    ]
