"""What a card says of its deadline: until when, whose rule that is, and what happens then."""

from __future__ import annotations

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from reviewer.cards import Card
from reviewer.deadlines import ends_in_rejection
from reviewer.models import ReviewTask


def deadline_words(task: ReviewTask, card: Card) -> str:
    """Return one sentence for an open card with a deadline, and nothing for any other."""
    if not task.is_open or task.due_at is None:
        return ""
    named = {"time": _moment(task), "rule": task.expiry_label or task.policy_label}
    if task.overdue_at is not None:
        return _("Overdue since %(time)s. It stays open until somebody decides. Set by %(rule)s.") % named
    if ends_in_rejection(task, card):
        return _("If nobody decides by %(time)s, it is rejected and nothing runs. Set by %(rule)s.") % named
    return _("If nobody decides by %(time)s, it stays open and is marked overdue. Set by %(rule)s.") % named


def _moment(task: ReviewTask) -> str:
    assert task.due_at is not None
    local = timezone.localtime(task.due_at)
    is_today = local.date() == timezone.localdate()
    return date_format(local, "H:i" if is_today else "j M, H:i")
