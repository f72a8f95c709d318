"""The one table of states: every status a run, pause or execution may have, and every allowed change.

Database constraints, triggers, guards and the state-machine test all derive from these tables.
Review tasks keep theirs in ``reviewer.models.tasks``.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents_runtime.errors import WrongState

Transitions = Mapping[str, frozenset[str]]


class RunStatus(models.TextChoices):
    """What a run (one LangGraph thread) is doing now."""

    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    WAITING = "waiting", _("Waiting for people")
    IN_DOUBT = "in_doubt", _("In doubt")
    FINISHED = "finished", _("Finished")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


class Trouble(models.TextChoices):
    """Why a run stopped: it decides which ways out are safe."""

    STEP = "step", _("A step of the agent failed")
    TOOL = "tool", _("A tool failed after it was allowed")
    AGENT = "agent", _("The agent is missing")
    BUILD = "build", _("The agent's build has changed")
    PLACE = "place", _("The agent's build has lost the run's place")
    CHECKPOINT = "checkpoint", _("The checkpoints are gone")
    DEATHS = "deaths", _("Its workers died again and again")
    BATCH = "batch", _("The agent refused a batch of answers")


class PauseStatus(models.TextChoices):
    """What has become of one interrupt."""

    PENDING = "pending", _("Waiting for an answer")
    ANSWERED = "answered", _("Answered")
    DELIVERING = "delivering", _("Being delivered")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Approved, failed")
    IN_DOUBT = "in_doubt", _("In doubt")
    REFUSED = "refused", _("Answer refused by the agent")
    SUPERSEDED = "superseded", _("Superseded")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    EXPIRED = "expired", _("Expired")


class ExecutionStatus(models.TextChoices):
    """What has become of one attempt to run a gated tool."""

    STARTED = "started", _("Started")
    SUCCEEDED = "succeeded", _("Succeeded")
    RAISED = "raised", _("Raised an error")
    SUSPENDED = "suspended", _("Paused inside the tool")
    ASSERTED = "asserted", _("A person said it happened")
    ABANDONED = "abandoned", _("Outcome unknown, given up")


RUN_TRANSITIONS: Transitions = {
    "queued": frozenset({"running", "failed", "cancelled"}),
    "running": frozenset({"waiting", "in_doubt", "finished", "failed", "cancelled"}),
    "waiting": frozenset({"running", "in_doubt", "finished", "failed", "cancelled"}),
    "in_doubt": frozenset({"running", "waiting", "cancelled"}),
    "failed": frozenset({"running", "cancelled"}),
    "finished": frozenset({"running"}),  # new input on a finished thread starts its next turn
    "cancelled": frozenset(),
}
LIVE_RUN = frozenset({"queued", "running", "waiting", "in_doubt"})

PAUSE_TRANSITIONS: Transitions = {
    "pending": frozenset({"answered", "superseded", "withdrawn", "expired"}),
    "answered": frozenset({"delivering", "superseded", "withdrawn"}),
    "delivering": frozenset(
        {"delivered", "failed", "in_doubt", "refused", "answered", "superseded", "withdrawn"}
    ),
    "failed": frozenset({"delivering", "delivered", "in_doubt", "withdrawn", "superseded"}),
    "in_doubt": frozenset({"delivering", "delivered", "failed", "withdrawn", "superseded"}),
    "delivered": frozenset(),
    "refused": frozenset(),
    "superseded": frozenset(),
    "withdrawn": frozenset(),
    "expired": frozenset(),
}
OPEN_PAUSE = frozenset({"pending", "answered", "delivering", "failed", "in_doubt"})

EXECUTION_TRANSITIONS: Transitions = {
    "started": frozenset({"succeeded", "raised", "suspended", "asserted", "abandoned"}),
    "suspended": frozenset({"started", "abandoned"}),
    "raised": frozenset({"abandoned"}),
    "succeeded": frozenset(),
    "asserted": frozenset(),
    "abandoned": frozenset(),
}


def check_transition(table: Transitions, subject: str, *, old: str, new: str) -> None:
    """Raise ``WrongState`` unless ``old`` may become ``new``."""
    if new not in table[old]:
        raise WrongState(
            _("%(subject)s is %(old)s and cannot become %(new)s.")
            % {
                "subject": subject,
                "old": old,
                "new": new,
            }
        )


def pairs(table: Transitions) -> list[tuple[str, str]]:
    """Return every allowed change as (old, new), for database triggers and tests."""
    return sorted((old, new) for old, targets in table.items() for new in targets)
