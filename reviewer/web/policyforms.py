"""The form of a policy: what was typed, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict

from django.utils.translation import gettext as _

from agents_runtime.errors import Problem
from reviewer.errors import Invalid
from reviewer.models import Policy
from reviewer.models.queues import OnExpiry, Risk
from reviewer.web.requests import whole_number

MOST_MINUTES = 60 * 24 * 90


class PolicyArguments(TypedDict):
    """What ``organising.save_policy`` takes of a form."""

    name: str
    agent: str
    tool: str
    risk: str
    minutes_to_decide: int | None
    on_expiry: str


@dataclass(frozen=True)
class PolicyForm:
    """The fields as typed; ``problems`` by the field's name."""

    name: str = ""
    agent: str = ""
    tool: str = ""
    risk: str = Risk.MEDIUM
    minutes: str = ""
    on_expiry: str = OnExpiry.HOLD
    is_known: bool = False
    problems: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> PolicyArguments:
        """Return the typed policy; ``Invalid`` names the field that does not fit."""
        if self.risk not in Risk.values:
            raise _invalid("/risk", _("Choose one"))
        return PolicyArguments(
            name=self.name,
            agent=self.agent,
            tool=self.tool,
            risk=self.risk,
            minutes_to_decide=minutes_of(self.minutes),
            on_expiry=self.on_expiry,
        )

    def with_problems(self, problems: Iterable[Problem]) -> PolicyForm:
        """Return the form with messages at its fields."""
        return replace(self, problems={problem.pointer.lstrip("/"): problem.message for problem in problems})


def minutes_of(typed: str) -> int | None:
    """Return the minutes that were typed, None for nothing; ``Invalid`` at /minutes for anything else."""
    if not typed:
        return None
    minutes = whole_number(typed)
    if minutes is None or not 0 < minutes <= MOST_MINUTES:
        raise _invalid(
            "/minutes", _("Enter a whole number from 1 to %(most)s, or nothing") % {"most": MOST_MINUTES}
        )
    return minutes


def policy_form(policy: Policy) -> PolicyForm:
    """Return the form that changes a policy."""
    return PolicyForm(
        name=policy.name,
        agent=policy.agent,
        tool=policy.tool,
        risk=policy.risk,
        minutes=str(policy.minutes_to_decide or ""),
        on_expiry=policy.on_expiry,
        is_known=True,
    )


def read_policy(posted: Mapping[str, str]) -> PolicyForm:
    """Return the form as it was sent."""
    return PolicyForm(
        name=posted.get("name", "").strip(),
        agent=posted.get("agent", "").strip(),
        tool=posted.get("tool", "").strip(),
        risk=posted.get("risk", ""),
        minutes=posted.get("minutes", "").strip(),
        on_expiry=posted.get("on_expiry", OnExpiry.HOLD),
        is_known=posted.get("known") == "1",
    )


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(message, (Problem(pointer, message),))
