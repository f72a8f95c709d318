"""Diagnosis: which runs are stuck, why each is, and which ways out are safe for it.

Reads the database and the list of held locks; changes nothing, and knows no agent framework, so that the web
may ask. Does not live here: walking the ways out (``runs``), and who may walk them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import models
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from agents_runtime import thread_lock
from agents_runtime.direct import database_now
from agents_runtime.models import Pause, Run
from agents_runtime.recovery import ago, with_work
from agents_runtime.states import LIVE_RUN, PauseStatus, RunStatus, Trouble

UNWORKED_AFTER = timedelta(seconds=30)
"""The sweep finds work within seconds; work that lies this long has no worker."""
LOCKED_AFTER = timedelta(minutes=5)
STOPPED = (RunStatus.FAILED, RunStatus.IN_DOUBT)


class Why(models.TextChoices):
    """Why a run is stuck."""

    IN_DOUBT = "in_doubt", _("A tool may have run, and nobody knows")
    TOOL = "tool", _("A tool failed after it was allowed")
    STEP = "step", _("A step of the agent failed")
    DEATHS = "deaths", _("Its workers died again and again")
    BATCH = "batch", _("The agent refused the answers and cannot be asked anew")
    CHECKPOINT = "checkpoint", _("Its checkpoints are gone")
    BUILD = "build", _("The agent’s build has changed")
    PLACE = "place", _("The agent’s build has lost its place")
    AGENT = "agent", _("The agent is missing")
    LOCKED = "locked", _("A worker has held it for long without a word")
    UNDELIVERED = "undelivered", _("A decision lies undelivered, without a worker")
    UNWORKED = "unworked", _("It has work to do, and no worker does it")
    NO_TASK = "no_task", _("It waits, but asks nobody")


class Way(models.TextChoices):
    """A safe way out of being stuck."""

    SETTLE = "settle", _("Say what happened")
    RETRY = "retry", _("Retry")
    ACCEPT_BUILD = "accept_build", _("Continue on this build")
    WAKE = "wake", _("Wake a worker")
    CANCEL = "cancel", _("Cancel run")


WAYS: dict[Why, tuple[Way, ...]] = {
    Why.IN_DOUBT: (Way.SETTLE, Way.CANCEL),
    Why.TOOL: (Way.RETRY, Way.CANCEL),
    Why.STEP: (Way.RETRY, Way.CANCEL),
    Why.DEATHS: (Way.RETRY, Way.CANCEL),
    Why.BATCH: (Way.CANCEL,),
    Why.CHECKPOINT: (Way.CANCEL,),
    Why.BUILD: (Way.ACCEPT_BUILD, Way.CANCEL),
    Why.PLACE: (Way.CANCEL,),
    Why.AGENT: (Way.CANCEL,),
    Why.LOCKED: (Way.CANCEL,),
    Why.UNDELIVERED: (Way.WAKE, Way.CANCEL),
    Why.UNWORKED: (Way.WAKE, Way.CANCEL),
    Why.NO_TASK: (Way.WAKE, Way.CANCEL),
}


@dataclass(frozen=True)
class Stuck:
    """A run that is stuck, the reason that counts most, and since when; ``failure``: of its failed pause."""

    run: Run
    why: Why
    since: dt.datetime
    failure: str = ""

    @property
    def ways(self) -> Sequence[Way]:
        """The ways out, the one to try first coming first."""
        if self.why == Why.BUILD and not is_of_other_build(self.run):
            return (Way.RETRY, Way.CANCEL)  # it was let go on, and the present build lost its place
        if self.why == Why.AGENT and self.run.status == RunStatus.FAILED and self.run.agent.is_available:
            return (Way.RETRY, Way.CANCEL)
        return WAYS[self.why]


def find_stuck(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return those of these runs that may be stuck, longest first; ``diagnose`` has the last word."""
    pauses = Pause.objects.filter(run=OuterRef("pk"))
    failed = Exists(pauses.filter(status=PauseStatus.FAILED))
    asks_nobody = ~Exists(pauses.filter(status=PauseStatus.PENDING)) & Q(updated_at__lte=ago(UNWORKED_AFTER))
    idle = Q(pk__in=with_work().filter(updated_at__lte=ago(UNWORKED_AFTER)).values("pk"))
    is_stuck = (
        Q(status__in=STOPPED)
        | Q(status=RunStatus.WAITING) & (failed | ~Q(error="") | asks_nobody)
        | Q(status__in=LIVE_RUN) & (idle | _has_other_build() | _has_no_agent())
    )
    return runs.filter(is_stuck).select_related("agent").order_by("updated_at", "pk")


def diagnose(runs: Sequence[Run]) -> list[Stuck]:
    """Say why each of these runs is stuck; a run that turns out to be at work is left out."""
    held = thread_lock.held_keys() if runs else set()
    pauses: dict[object, list[Pause]] = {}
    for pause in Pause.objects.filter(run__in=[run.pk for run in runs]).defer("value", "response_schema"):
        pauses.setdefault(pause.run_id, []).append(pause)
    found = (
        _diagnosis(run, pauses.get(run.pk, []), is_held=thread_lock.lock_key(run.pk) in held) for run in runs
    )
    return [stuck for stuck in found if stuck is not None]


def _diagnosis(run: Run, pauses: Sequence[Pause], *, is_held: bool) -> Stuck | None:
    failure = next((pause.error for pause in pauses if pause.status == PauseStatus.FAILED), "")
    why = _why(run, {pause.status for pause in pauses}, is_held=is_held)
    return None if why is None else Stuck(run, why, run.updated_at, failure)


def _why(run: Run, statuses: set[str], *, is_held: bool) -> Why | None:
    if run.status in {RunStatus.FINISHED, RunStatus.CANCELLED}:
        return None
    if run.status == RunStatus.IN_DOUBT:
        return Why.IN_DOUBT
    if not run.agent.is_available:
        return Why.AGENT
    if run.status == RunStatus.FAILED:
        return _why_failed(run)
    quiet_for = database_now() - run.updated_at
    has_work = run.status in {RunStatus.QUEUED, RunStatus.RUNNING} or PauseStatus.ANSWERED in statuses
    if has_work and is_held:
        return Why.LOCKED if quiet_for >= LOCKED_AFTER else None
    if has_work and quiet_for >= UNWORKED_AFTER:
        is_decided = statuses & {PauseStatus.ANSWERED, PauseStatus.DELIVERING}
        return Why.UNDELIVERED if is_decided else Why.UNWORKED
    if has_work:
        return None
    if is_of_other_build(run):
        return Why.BUILD
    if PauseStatus.FAILED in statuses:
        return Why.TOOL
    if run.error:
        return Why.STEP
    return Why.NO_TASK if PauseStatus.PENDING not in statuses and quiet_for >= UNWORKED_AFTER else None


def _why_failed(run: Run) -> Why:
    if run.trouble in {Trouble.CHECKPOINT, Trouble.BATCH}:
        return Why(run.trouble)
    if is_of_other_build(run):
        return Why.BUILD
    return Why(run.trouble or Trouble.STEP)


def is_of_other_build(run: Run) -> bool:
    """Say whether the run began on another build of its agent than the one that is registered now."""
    return bool(run.state and run.fingerprint and run.agent.fingerprint) and (
        run.fingerprint != run.agent.fingerprint
    )


def _has_other_build() -> Q:
    known = ~Q(state="") & ~Q(fingerprint="") & ~Q(agent__fingerprint="")
    return known & ~Q(fingerprint=F("agent__fingerprint"))


def _has_no_agent() -> Q:
    return Q(agent__is_listed=False) | ~Q(agent__import_error="")
