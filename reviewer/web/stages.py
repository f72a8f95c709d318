"""At which stage a card stands for its reader: what happened, what is true now, what they may do next.

One stage at a time, each with tone, icon and word. The words of design/LOOK.md; nothing here draws.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents_runtime.models import Pause, ToolExecution
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.models import Decision, ReviewTask, TaskStatus, Verdict
from reviewer.web.rows import holder_of, last_decision


@dataclass(frozen=True)
class _Story:
    """What became of a decided task: its decision, and the last attempt to run its tool."""

    task: ReviewTask
    decision: Decision
    last: ToolExecution | None


@dataclass(frozen=True)
class Stage:
    """Where a card stands. ``key`` picks the bar; ``locks``: a form under edit can no longer be sent."""

    key: str
    tone: str = "neutral"
    icon: str = "clock"
    word: str = ""
    text: str = ""
    fact: str = ""
    fact_at: dt.datetime | None = None
    fact_until: dt.datetime | None = None
    works: bool = False
    locks: bool = True


def may_decide(task: ReviewTask, reader: User) -> bool:
    """Say whether the reader could decide this task if it were free: a member who did not direct its run."""
    return not task.run.is_directed_by(reader.reference) and permissions.is_member(reader, task.queue_id)


def executions_of(task: ReviewTask) -> Sequence[ToolExecution]:
    """Return the attempts to run what this task asked about, oldest first."""
    return list(task.pause.executions.filter(position=task.position).order_by("attempt", "pk"))


def stage_of(task: ReviewTask, reader: User, *, executions: Sequence[ToolExecution] | None = None) -> Stage:
    """Return the stage of a card for one reader."""
    if task.is_open:
        return _open_stage(task, reader)
    closed = _CLOSED.get(TaskStatus(task.status))
    if closed is not None:
        return closed(task)
    decision = last_decision(task)
    if decision is None:
        return Stage("decided", "info", "check", _("Decided"), fact_at=task.closed_at)
    ran = executions if executions is not None else executions_of(task)
    return _decided_stage(_Story(task, decision, ran[-1] if ran else None))


def _open_stage(task: ReviewTask, reader: User) -> Stage:
    holder = holder_of(task)
    if holder is not None and holder.pk != reader.pk:
        return Stage(
            "held",
            icon="lock",
            word=_("Claimed by %(name)s") % {"name": holder.display_name},
            fact_until=task.claimed_until,
            text=_(
                "You can read everything. The decision is theirs until the claim ends or they release it."
            ),
        )
    if task.run.requested_by == reader.reference:
        return Stage(
            "watching",
            icon="lock",
            word=_("Your own run"),
            text=_("Whoever started a run cannot decide its tasks. Somebody in %(queue)s will.")
            % {"queue": task.queue.name},
        )
    if task.run.is_directed_by(reader.reference):
        return Stage(
            "watching",
            icon="lock",
            word=_("Your own input"),
            text=_("Whoever gave a run input cannot decide its tasks. Somebody else in %(queue)s will.")
            % {"queue": task.queue.name},
        )
    if not may_decide(task, reader):
        return Stage(
            "watching",
            icon="lock",
            word=_("Only to read"),
            text=_("Only members of %(queue)s can decide its tasks.") % {"queue": task.queue.name},
        )
    return Stage("open", locks=False)


def _decided_stage(story: _Story) -> Stage:
    last = story.last
    if last is not None and last.in_doubt_since and last.status == "started":
        return _in_doubt(story)
    build = _BY_PAUSE.get(story.task.pause.status)
    return build(story) if build else Stage("decided", "info", "check", _("Decided"))


def _pending(story: _Story) -> Stage:
    left = story.task.pause.tasks.filter(status=TaskStatus.OPEN).count()
    return Stage(
        "decided",
        "info",
        "layers",
        _("Decided, waits for the rest"),
        fact_at=story.decision.decided_at,
        text=ngettext(
            "%(n)s more action of this pause has to be decided. They go out together.",
            "%(n)s more actions of this pause have to be decided. They go out together.",
            left,
        )
        % {"n": left},
    )


def _answered(story: _Story) -> Stage:
    if story.task.run.status == "failed":
        return Stage(
            "run_failed",
            "danger",
            "octagon-alert",
            _("Decided, but the run failed"),
            fact_at=story.task.run.updated_at,
            text=_("The decision is stored and has not gone out. A retry delivers it."),
        )
    if (
        Pause.objects.filter(run=story.task.run_id, status="delivering")
        .exclude(pk=story.task.pause_id)
        .exists()
    ):
        return Stage(
            "decided",
            "info",
            "hourglass",
            _("Decided, waits its turn"),
            fact_at=story.decision.decided_at,
            text=_("Another action of this run is still at work. This decision goes out when it is done."),
        )
    return Stage(
        "decided",
        "info",
        "check",
        _("Decided"),
        fact_at=story.decision.decided_at,
        text=_("The decision is stored. It goes to the agent as soon as a worker is free."),
    )


def _delivering(story: _Story) -> Stage:
    if story.last is not None and story.last.attempt > 1:
        fact = _("attempt %(n)s") % {"n": story.last.attempt}
        return Stage("delivering", "info", "send", _("Delivering"), fact=fact, works=True)
    return Stage("delivering", "info", "send", _("Delivering"), fact_at=story.decision.decided_at, works=True)


def _delivered(story: _Story) -> Stage:
    if story.last is not None and story.last.status == "asserted":
        return Stage(
            "done",
            "ok",
            "user-check",
            _("Settled"),
            fact_at=story.last.finished_at,
            text=_("A person said that it happened, and the agent was told so."),
        )
    if story.last is not None and story.last.status == "succeeded":
        return Stage("done", "ok", "circle-check", _("Executed"), fact=duration_words(story.last))
    words = {
        Verdict.REJECT: ("circle-x", _("Rejected"), _("Nothing was run. The agent was told why.")),
        Verdict.RESPOND: ("message-square", _("Answered"), _("The agent has the answer.")),
        Verdict.ANSWER: ("message-square", _("Answered"), _("The agent has the answer.")),
    }
    icon, word, text = words.get(
        Verdict(story.decision.verdict), ("circle-check", _("Delivered"), _("The agent went on with it."))
    )
    tone = "neutral" if story.decision.verdict == Verdict.REJECT else "ok"
    return Stage("done", tone, icon, word, text=text, fact_at=story.task.pause.closed_at)


def _came_to_nothing(story: _Story) -> Stage:
    """The pause ended without every decision of it taking effect; this one may have."""
    has_run = story.last is not None and story.last.status in {"succeeded", "asserted"}
    if has_run or story.decision.verdict not in {Verdict.APPROVE, Verdict.EDIT}:
        return _delivered(story)
    if story.last is not None and story.task.pause.status == "withdrawn":
        return Stage(
            "no_effect",
            "danger",
            "triangle-alert",
            _("Cancelled after its tool had started"),
            fact_at=story.task.pause.closed_at,
            text=_("It may have taken effect, and nobody undoes it from here: look at the target."),
        )
    return Stage(
        "no_effect",
        "warn",
        "triangle-alert",
        _("Decided, but not run"),
        fact_at=story.task.pause.closed_at,
        text=story.task.pause.error,
    )


def _failed(story: _Story) -> Stage:
    return Stage(
        "failed",
        "danger",
        "octagon-alert",
        _("Approved, but the tool failed"),
        fact_at=story.last.finished_at if story.last else story.task.pause.closed_at,
        text=_("The tool raised an error. It may have taken effect before it did: look at the target first."),
    )


def _in_doubt(story: _Story) -> Stage:
    return Stage(
        "in_doubt",
        "danger",
        "circle-question-mark",
        _("In doubt"),
        fact_at=story.last.in_doubt_since if story.last else None,
        text=_(
            "The worker stopped after the call went out and before an answer came back. It may have "
            "happened. Countersign does not retry by itself: look at the target, then say what is true."
        ),
    )


def _refused(story: _Story) -> Stage:
    return Stage(
        "refused",
        "warn",
        "triangle-alert",
        _("The agent refused this answer"),
        fact_at=story.task.pause.closed_at,
        text=_("Its own type check did not take it. A new card asks again and shows what was wrong."),
    )


def _expired(task: ReviewTask) -> Stage:
    told = {
        "pending": _("Its other cards wait; they go out together."),
        "delivered": _("The agent was told so."),
    }.get(task.pause.status, _("The agent is told so."))
    text = _("Nobody decided in time, so %(rule)s rejected it. Nothing was run from this card.")
    text = f"{text % {'rule': task.expiry_label or task.policy_label}} {told}"
    return Stage("closed", "warn", "hourglass", _("Expired and rejected"), fact_at=task.closed_at, text=text)


def _superseded(task: ReviewTask) -> Stage:
    text = _(
        "The run went on without this answer. The question no longer stands; nothing was run from this card."
    )
    return Stage("closed", "neutral", "git-branch", _("Superseded"), fact_at=task.closed_at, text=text)


def _withdrawn(task: ReviewTask) -> Stage:
    text = _("The run was cancelled, so the question no longer stands. Nothing was run from this card.")
    return Stage("closed", "neutral", "ban", _("Withdrawn"), fact_at=task.closed_at, text=text)


def duration_words(execution: ToolExecution) -> str:
    """Say how long an attempt took."""
    if execution.finished_at is None:
        return ""
    seconds = (execution.finished_at - execution.started_at).total_seconds()
    if seconds < 0.1:
        return _("in under 0.1 s")
    if seconds < 60:
        return _("in %(n)s s") % {"n": f"{seconds:.1f}"}
    return _("in %(n)s min") % {"n": round(seconds / 60)}


_CLOSED = {
    TaskStatus.EXPIRED: _expired,
    TaskStatus.SUPERSEDED: _superseded,
    TaskStatus.WITHDRAWN: _withdrawn,
}
_BY_PAUSE = {
    "pending": _pending,
    "answered": _answered,
    "delivering": _delivering,
    "delivered": _delivered,
    "failed": _failed,
    "in_doubt": _in_doubt,
    "refused": _refused,
    "superseded": _came_to_nothing,
    "withdrawn": _came_to_nothing,
}
