"""Lines of a run's story that the audit trail tells: who was asked, who decided, what was done to the run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents_runtime.canonical import Json, decode
from agents_runtime.states import PauseStatus
from reviewer import cards
from reviewer.audit.words import VERDICT_WORDS
from reviewer.models import AuditEvent, Decision, ReviewTask, Verdict
from reviewer.shown import card_of, changes_of
from reviewer.timeline.entries import Entry, Source, actor_name

CHANGES_TOLD = 3
BRIEF = 80
LOUD_RISKS = frozenset({"high", "critical"})


@dataclass(frozen=True)
class _Plain:
    """A line that needs no more than the event itself; ``said`` names the fact that holds foreign words."""

    icon: str
    title: str | Promise
    tone: str = ""
    note: str | Promise = ""
    said: str = ""


_BY_SYSTEM = {
    "pause.refused": _Plain(
        "triangle-alert",
        gettext_lazy("The agent refused the answer"),
        "warn",
        gettext_lazy("Its own type check did not take it. A new card asks again."),
        "error",
    ),
    "task.superseded": _Plain(
        "git-branch",
        gettext_lazy("Superseded"),
        "neutral",
        gettext_lazy("The run went on without an answer. Nothing was run from the card."),
    ),
    "task.expired": _Plain(
        "hourglass",
        gettext_lazy("Expired and rejected"),
        "warn",
        gettext_lazy("Nobody decided in time. Nothing was run from the card; the agent is told so."),
    ),
    "task.overdue": _Plain(
        "hourglass",
        gettext_lazy("Overdue"),
        "warn",
        gettext_lazy("Nobody decided in time. The card stays open."),
    ),
    "run.thread_deleted": _Plain(
        "trash-2",
        gettext_lazy("Checkpoints deleted"),
        "neutral",
        gettext_lazy("The run cannot go on any more. Its decisions and its trail are kept."),
    ),
    "tool.refused": _Plain(
        "shield-check",
        gettext_lazy("The gate stopped"),
        "danger",
        gettext_lazy("It had no decision for exactly this call. Nothing was run."),
        "reason",
    ),
    "run.cancelled": _Plain(
        "circle-stop", gettext_lazy("Cancelled"), "neutral", gettext_lazy("Open cards were withdrawn.")
    ),
    "run.finished": _Plain("circle-check", gettext_lazy("Finished"), "ok"),
    "run.failed": _Plain("octagon-alert", gettext_lazy("Failed"), "danger", said="error"),
}

_BY_PERSON = {
    "run.retry_asked": ("rotate-ccw", gettext_lazy("%(name)s asked for a retry")),
    "run.input_added": ("plus", gettext_lazy("%(name)s gave it new input")),
    "run.reviews_closed": ("git-branch", gettext_lazy("%(name)s closed its open cards for new input")),
    "run.build_accepted": ("workflow", gettext_lazy("%(name)s let it go on with the present build")),
    "run.woken": ("play", gettext_lazy("%(name)s woke a worker for it")),
    "run.cancel_asked": ("ban", gettext_lazy("%(name)s cancelled the run")),
}

_SETTLED = {
    "happened": gettext_lazy("%(name)s said that it happened"),
    "run_again": gettext_lazy("%(name)s chose to run it again"),
    "stop": gettext_lazy("%(name)s chose to stop the run"),
}

_DECIDED = {
    Verdict.APPROVE: gettext_lazy("%(name)s approved"),
    Verdict.REJECT: gettext_lazy("%(name)s rejected"),
    Verdict.RESPOND: gettext_lazy("%(name)s answered"),
    Verdict.ANSWER: gettext_lazy("%(name)s answered"),
}

_DELIVERY = {
    PauseStatus.PENDING: gettext_lazy("Waits for the other cards of this pause."),
    PauseStatus.ANSWERED: gettext_lazy("Not delivered yet."),
    PauseStatus.DELIVERING: gettext_lazy("Being delivered."),
    PauseStatus.DELIVERED: gettext_lazy("Delivered."),
    PauseStatus.FAILED: gettext_lazy("Delivered, but the tool failed."),
    PauseStatus.IN_DOUBT: gettext_lazy("Delivery is in doubt."),
    PauseStatus.REFUSED: gettext_lazy("The agent refused it."),
}
_NEVER_DELIVERED = gettext_lazy("Never delivered.")


def from_event(source: Source, event: AuditEvent) -> Entry | None:
    """Tell of one event, or return None for one that the story leaves out."""
    entry = _entry(source, event)
    return None if entry is None else replace(entry, key=f"event-{event.pk}", at=event.at)


def _entry(source: Source, event: AuditEvent) -> Entry | None:
    if event.type in _BY_SYSTEM:
        return _by_system(event, _BY_SYSTEM[event.type])
    if event.type in _BY_PERSON:
        icon, title = _BY_PERSON[event.type]
        return _by_person(source, event, icon, title)
    if event.type == "run.settled":
        title = _SETTLED.get(event.outcome, gettext_lazy("%(name)s settled it"))
        return _by_person(source, event, "user-check", title)
    if event.type == "run.started":
        return Entry(
            "play", _("Started"), aside=_("by %(name)s") % {"name": actor_name(event, source.reader)}
        )
    if event.type == "task.opened":
        return _asked(source, event)
    return _decided(source, event) if event.type == "decision.made" else None


def _by_system(event: AuditEvent, plain: _Plain) -> Entry:
    said = event_fact(event, plain.said) if plain.said else ""
    notes = [str(plain.note)] if plain.note else []
    return Entry(plain.icon, str(plain.title), tone=plain.tone, code=event.tool, notes=notes, said=said)


def _by_person(source: Source, event: AuditEvent, icon: str, title: str | Promise) -> Entry:
    name = actor_name(event, source.reader, capital=True)
    return Entry(icon, str(title) % {"name": name}, tone="info", event=event)


def _asked(source: Source, event: AuditEvent) -> Entry:
    """Tell of a card; of one in a queue that the reader is not in, only that there is one."""
    task = source.tasks.get(str(event.task_id))
    if task is None:
        notes = [_("Its card is in a queue that you are not in.")]
        return Entry("hourglass", _("Paused"), tone="warn", aside=_("for"), code=event.tool, notes=notes)
    return Entry(
        "hourglass",
        _("Paused"),
        tone="hot" if task.risk in LOUD_RISKS else "warn",
        aside=_("for") if task.tool else _("with a question"),
        code=task.tool,
        notes=[_facts_of(task)],
        task=task,
        took=task.closed_at - task.created_at if task.closed_at else None,
    )


def _facts_of(task: ReviewTask) -> str:
    where = {"queue": task.queue.name, "policy": task.policy_label}
    holder = task.claimed_by
    if task.is_open and holder and task.claimed_until and task.claimed_until > timezone.now():
        return _("%(queue)s, policy %(policy)s. Claimed by %(name)s") % {
            **where,
            "name": holder.display_name,
        }
    return _("%(queue)s, policy %(policy)s.") % where


def _decided(source: Source, event: AuditEvent) -> Entry:
    task, decision = source.tasks.get(str(event.task_id)), source.decisions.get(str(event.task_id))
    name = actor_name(event, source.reader, capital=True)
    if task is None or decision is None:
        return Entry("check", _("%(name)s decided") % {"name": name}, code=event.tool, event=event)
    word = VERDICT_WORDS[decision.verdict]
    return Entry(
        word.icon,
        _decision_title(task, decision, name),
        tone=word.tone,
        notes=_decision_notes(task, decision),
        event=event,
    )


def _decision_title(task: ReviewTask, decision: Decision, name: str) -> str:
    if decision.verdict != Verdict.EDIT:
        return str(_DECIDED[Verdict(decision.verdict)]) % {"name": name}
    count = len(changes_of(task, decision))
    title = ngettext(
        "%(name)s approved with %(count)s change", "%(name)s approved with %(count)s changes", count
    )
    return title % {"name": name, "count": count}


def _decision_notes(task: ReviewTask, decision: Decision) -> list[str]:
    delivery = _DELIVERY.get(PauseStatus(task.pause.status), _NEVER_DELIVERED)
    facts = {"title": task.title, "digest": task.short_digest, "delivery": delivery}
    notes = [_("%(title)s. Decided on digest %(digest)s. %(delivery)s") % facts]
    changes = card_of(task).mask.changes(changes_of(task, decision)[:CHANGES_TOLD])
    notes += [_change_words(change) for change in changes]
    answer = decode(decision.answer)
    message = answer.get("message") if isinstance(answer, dict) else answer
    if isinstance(message, str) and message:
        notes.append(_("To the agent: “%(text)s”") % {"text": message})
    if decision.comment:
        notes.append(_("Note: “%(text)s”") % {"text": decision.comment})
    return notes


def _change_words(change: cards.Change) -> str:
    if change.came_from is not None:
        return _("%(name)s: moved there from place %(old)s") % {
            "name": change.name,
            "old": change.came_from + 1,
        }
    if change.before is cards.MISSING:
        return _("%(name)s: added “%(after)s”") % {"name": change.name, "after": _brief(change.after)}
    if change.after is cards.MISSING:
        return _("%(name)s: removed “%(before)s”") % {"name": change.name, "before": _brief(change.before)}
    facts = {"name": change.name, "before": _brief(change.before), "after": _brief(change.after)}
    return _("%(name)s: “%(before)s” became “%(after)s”") % facts


def _brief(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= BRIEF else text[:BRIEF] + "…"


def event_fact(event: AuditEvent, name: str) -> str:
    """Return one fact of an event where it is a text, else nothing."""
    facts = decode(event.payload).get("facts")
    value = facts.get(name) if isinstance(facts, dict) else None
    return value if isinstance(value, str) else ""
