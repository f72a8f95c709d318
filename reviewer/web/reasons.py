"""The reasons a reviewer may give for a rejection: stored as codes, shown as words."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Reason:
    """One reason: its stored code, its words, and what it is for."""

    code: str
    label: str | Promise
    hint: str | Promise


REASONS = (
    Reason("wrong_scope", _("Wrong scope"), _("Too many, too few or other records")),
    Reason("not_allowed", _("Not allowed"), _("Against a policy or the law")),
    Reason("not_proven", _("Not proven"), _("The facts do not support it")),
    Reason("manipulation", _("Suspected manipulation"), _("The agent may have been misled")),
    Reason("wrong_value", _("Wrong value"), _("An amount, name or date is not right")),
    Reason("other", _("Another reason"), _("The message says which")),
)
CODES = frozenset(reason.code for reason in REASONS)


def reason_words(code: str) -> str:
    """Return the words of a stored code; codes that programs made up are shown as they are."""
    return next((str(reason.label) for reason in REASONS if reason.code == code), code)


def reason_error(code: str) -> str:
    """Return what is wrong with the reason of a rejection, or nothing."""
    return "" if code in CODES else str(_("Choose a reason"))
