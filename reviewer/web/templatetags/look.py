"""Tags that draw the small things every page shows: icons, people, times, deadlines, risk, digests.

Words follow design/LOOK.md: relative under an hour, the clock today, the date before; the reader is "you".
Nothing here reads the database.
"""

from __future__ import annotations

import datetime as dt
from typing import Any
from uuid import UUID

from django import template
from django.contrib.messages import constants as levels
from django.templatetags.static import static
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from agents_runtime.models import Run
from reviewer.accounts.models import User
from reviewer.models import ReviewTask, TaskStatus, Verdict

register = template.Library()

HOT_AGE = dt.timedelta(minutes=20)
SOON = dt.timedelta(minutes=15)
URGENT = dt.timedelta(minutes=5)
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)

_TONES = {
    levels.DEFAULT_TAGS[levels.DEBUG]: ("neutral", "info"),
    levels.DEFAULT_TAGS[levels.INFO]: ("info", "info"),
    levels.DEFAULT_TAGS[levels.SUCCESS]: ("ok", "circle-check"),
    levels.DEFAULT_TAGS[levels.WARNING]: ("warn", "triangle-alert"),
    levels.DEFAULT_TAGS[levels.ERROR]: ("danger", "octagon-alert"),
}

_VERDICTS = {
    Verdict.APPROVE: ("ok", "circle-check"),
    Verdict.EDIT: ("info", "pencil"),
    Verdict.REJECT: ("danger", "circle-x"),
    Verdict.RESPOND: ("neutral", "message-square"),
    Verdict.ANSWER: ("neutral", "message-square"),
}

_CLOSINGS = {
    TaskStatus.EXPIRED: ("warn", "hourglass"),
    TaskStatus.SUPERSEDED: ("neutral", "git-branch"),
    TaskStatus.WITHDRAWN: ("neutral", "ban"),
}

RUN_LOOKS = {
    "queued": ("neutral", "clock"),
    "running": ("info", "play"),
    "waiting": ("warn", "circle-pause"),
    "in_doubt": ("danger", "circle-question-mark"),
    "finished": ("ok", "circle-check"),
    "failed": ("danger", "octagon-alert"),
    "cancelled": ("neutral", "ban"),
}


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """Draw one symbol of the sprite; ``size`` is "s", "l" or nothing."""
    extra = f" icon--{size}" if size else ""
    return format_html(
        '<svg class="icon{}" aria-hidden="true"><use href="{}#i-{}"/></svg>',
        extra,
        static("icons/sprite.svg"),
        name,
    )


@register.filter
def person(user: User | None) -> str:
    """Name a person as people read it: "Ines H."."""
    if user is None or not user.is_authenticated:
        return gettext("nobody")
    return user.display_name


@register.simple_tag
def who(user: User | None, reader: User, *, capital: bool = False) -> str:
    """Name a person to the reader, who is "you"."""
    if user is None:
        return gettext("nobody")
    if user.pk == reader.pk:
        return gettext("You") if capital else gettext("you")
    return user.display_name


@register.simple_tag
def avatar(user: User, size: str = "", *, reader: User | None = None, label: str = "") -> SafeString:
    """Draw a person's initials; blue when the person is the reader."""
    classes = "avatar"
    if size:
        classes += f" avatar--{size}"
    if reader is not None and reader.pk == user.pk:
        classes += " avatar--you"
    name = label or user.display_name
    return format_html(
        '<span class="{}" role="img" aria-label="{}" title="{}">{}</span>', classes, name, name, user.initials
    )


@register.simple_tag
def ago(moment: dt.datetime | None) -> SafeString | str:
    """Tell when something happened; the full time is in the title, and the page's clock keeps it fresh."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>',
        local.isoformat(),
        _full(local),
        _ago_words(local),
    )


@register.simple_tag
def clock(moment: dt.datetime | None) -> SafeString | str:
    """Tell the time of day to the second, for trails of what happened when."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        _full(local),
        local.strftime("%H:%M:%S"),
    )


@register.simple_tag
def brief_age(moment: dt.datetime) -> str:
    """Tell an age in the fewest signs: "26m", "3h", "2d"."""
    age = timezone.now() - moment
    if age < HOUR:
        return gettext("%(n)sm") % {"n": max(0, int(age.total_seconds() // 60))}
    if age < 2 * DAY:
        return gettext("%(n)sh") % {"n": int(age.total_seconds() // 3600)}
    return gettext("%(n)sd") % {"n": age.days}


@register.simple_tag
def age(moment: dt.datetime) -> str:
    """Tell an age in words, for tables and figures: "26 min", "3 h", "2 days"."""
    passed = timezone.now() - moment
    if passed < HOUR:
        return gettext("%(n)s min") % {"n": max(0, int(passed.total_seconds() // 60))}
    if passed < 2 * DAY:
        return gettext("%(n)s h") % {"n": int(passed.total_seconds() // 3600)}
    return gettext("%(n)s days") % {"n": passed.days}


@register.simple_tag
def due(
    deadline: dt.datetime | None, asked: dt.datetime | None = None, *, suffix: str = ""
) -> SafeString | str:
    """Draw the time left to a deadline: a ring for the share that is left, and the words."""
    if deadline is None:
        return ""
    left = deadline - timezone.now()
    span = (deadline - asked) if asked else HOUR
    share = round(100 * max(0.0, min(1.0, left / span))) if span else 0
    tone = _due_tone(left)
    words = _left_words(left)
    return format_html(
        '<span class="due" data-due="{}" data-asked="{}"{} title="{}">'
        '<svg class="ring" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6"/>'
        '<circle cx="8" cy="8" r="6" pathlength="100" stroke-dasharray="{} 100"/></svg>'
        "<span><span data-due-words>{}</span>{}</span></span>",
        deadline.isoformat(),
        asked.isoformat() if asked else "",
        format_html(' data-tone="{}"', tone) if tone else "",
        _full(timezone.localtime(deadline)),
        share,
        words,
        f" {suffix}" if suffix and left > dt.timedelta(0) else "",
    )


@register.simple_tag
def claim_left(until: dt.datetime) -> SafeString:
    """Count down a claim in minutes and seconds; the page's clock keeps it fresh."""
    left = max(0, int((until - timezone.now()).total_seconds()))
    return format_html(
        '<span class="num" data-claim-until="{}">{}</span>',
        until.isoformat(),
        f"{left // 60}:{left % 60:02d}",
    )


@register.simple_tag
def risk(task: ReviewTask) -> SafeString:
    """Draw the risk of a row: bars and the word."""
    return format_html(
        '<span class="risk" data-risk="{}">{}{}</span>',
        task.risk,
        icon(f"risk-{task.risk}"),
        task.get_risk_display(),
    )


@register.simple_tag
def risk_chip(task: ReviewTask) -> SafeString:
    """Draw the risk of a card: bars and the words, framed."""
    words = {
        "low": gettext("Low risk"),
        "medium": gettext("Medium risk"),
        "high": gettext("High risk"),
        "critical": gettext("Critical risk"),
    }[task.risk]
    return format_html(
        '<span class="chip" data-risk="{}">{}{}</span>', task.risk, icon(f"risk-{task.risk}"), words
    )


@register.simple_tag
def verdict(value: str) -> SafeString:
    """Draw a verdict: "Approved", "Edited", "Rejected", "Answered", each with its tone and icon."""
    choice = Verdict(value)
    tone_name, icon_name = _VERDICTS[choice]
    return format_html(
        '<span class="said" data-tone="{}">{}{}</span>', tone_name, icon(icon_name), choice.label
    )


@register.simple_tag
def closing(status: str) -> SafeString:
    """Draw how a task closed without a decision: expired, superseded or withdrawn."""
    choice = TaskStatus(status)
    tone_name, icon_name = _CLOSINGS[choice]
    return format_html(
        '<span class="said" data-tone="{}">{}{}</span>', tone_name, icon(icon_name), choice.label
    )


@register.simple_tag
def run_status(run: Run) -> SafeString:
    """Draw what a run is doing: tone, icon and word."""
    tone_name, icon_name = RUN_LOOKS[run.status]
    return format_html(
        '<span class="said" data-tone="{}">{}{}</span>', tone_name, icon(icon_name), run.get_status_display()
    )


@register.filter
def tone(level_tag: str) -> str:
    """Return the tone of a message's level."""
    return _TONES.get(level_tag, ("neutral", "info"))[0]


@register.filter
def tone_icon(level_tag: str) -> str:
    """Return the icon of a message's level."""
    return _TONES.get(level_tag, ("neutral", "info"))[1]


@register.filter
def short_digest(digest: str) -> str:
    """Shorten a digest as people compare it: "3f9a…c2"."""
    return f"{digest[:4]}…{digest[-2:]}" if len(digest) > 8 else digest


@register.filter
def short_id(value: str | UUID) -> str:
    """Shorten a technical id: first and last four signs."""
    text = str(value)
    return f"{text[:4]}…{text[-4:]}" if len(text) > 12 else text


@register.filter
def lookup(mapping: dict[str, Any], key: str) -> Any:
    """Return ``mapping[key]``, or nothing."""
    return mapping.get(key)


def _full(local: dt.datetime) -> str:
    return formats.date_format(local, "DATETIME_FORMAT") + local.strftime(" (%Z)")


def _ago_words(local: dt.datetime) -> str:
    now = timezone.localtime()
    age = now - local
    if age < dt.timedelta(minutes=1):
        return gettext("just now")
    if age < HOUR:
        minutes = int(age.total_seconds() // 60)
        return ngettext("%(n)s min ago", "%(n)s min ago", minutes) % {"n": minutes}
    if local.date() == now.date():
        return local.strftime("%H:%M")
    return (
        formats.date_format(local, "j M, H:i")
        if local.year == now.year
        else formats.date_format(local, "j M Y")
    )


def _due_tone(left: dt.timedelta) -> str:
    if left < URGENT:
        return "danger"
    return "warn" if left < SOON else ""


def _left_words(left: dt.timedelta) -> str:
    if left <= dt.timedelta(0):
        return gettext("Overdue")
    minutes = int(left.total_seconds() // 60)
    if minutes < 1:
        return gettext("under 1 min left")
    if minutes < 90:
        return ngettext("%(n)s min left", "%(n)s min left", minutes) % {"n": minutes}
    if left < 2 * DAY:
        hours = round(left.total_seconds() / 3600)
        return ngettext("%(n)s h left", "%(n)s h left", hours) % {"n": hours}
    return ngettext("%(n)s day left", "%(n)s days left", left.days) % {"n": left.days}
