"""What each type of event is called, in the words of a compliance officer, with its tone and icon.

The one table of such words: the trail's list, its filter and an event's own page all read it. What an event
says about a decision depends on the verdict, so ``decision.made`` takes its word from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agents_runtime.canonical import Json
from reviewer.models import AuditEvent


@dataclass(frozen=True)
class EventWord:
    """A short label, and how it looks."""

    label: str | Promise
    tone: str = "neutral"
    icon: str = "info"


DECISIONS = "decision.made"

EVENT_WORDS: dict[str, EventWord] = {
    "decision.made": EventWord(_("Decided"), "info", "check"),
    "decision.refused": EventWord(_("Decision turned away"), "warn", "ban"),
    "task.opened": EventWord(_("Asked for a decision"), "neutral", "inbox"),
    "card.opened": EventWord(_("Opened the card"), "neutral", "file-text"),
    "card.expanded": EventWord(_("Opened hidden parts"), "neutral", "eye"),
    "task.claimed": EventWord(_("Claimed"), "neutral", "user-check"),
    "task.released": EventWord(_("Gave back"), "neutral", "undo-2"),
    "task.assigned": EventWord(_("Assigned"), "neutral", "user-plus"),
    "task.moved": EventWord(_("Moved to another queue"), "neutral", "shuffle"),
    "task.expired": EventWord(_("Expired and rejected"), "warn", "hourglass"),
    "task.overdue": EventWord(_("Overdue, stays open"), "warn", "hourglass"),
    "task.superseded": EventWord(_("Superseded"), "neutral", "git-branch"),
    "task.withdrawn": EventWord(_("Withdrawn"), "neutral", "ban"),
    "answer.delivering": EventWord(_("Answer sent to the agent"), "info", "send"),
    "pause.delivered": EventWord(_("Answer delivered"), "ok", "circle-check"),
    "pause.failed": EventWord(_("Approved, but the tool failed"), "danger", "octagon-alert"),
    "pause.in_doubt": EventWord(_("Delivery in doubt"), "danger", "circle-question-mark"),
    "pause.refused": EventWord(_("Agent refused the answer"), "warn", "triangle-alert"),
    "pause.superseded": EventWord(_("Pause superseded"), "neutral", "git-branch"),
    "pause.withdrawn": EventWord(_("Pause withdrawn"), "neutral", "ban"),
    "pause.expired": EventWord(_("Pause expired"), "warn", "hourglass"),
    "tool.started": EventWord(_("Tool started"), "info", "zap"),
    "tool.succeeded": EventWord(_("Tool ran"), "ok", "zap"),
    "tool.raised": EventWord(_("Tool failed"), "danger", "octagon-alert"),
    "tool.suspended": EventWord(_("Tool paused inside"), "neutral", "circle-pause"),
    "tool.asserted": EventWord(_("Said to have happened"), "ok", "user-check"),
    "tool.abandoned": EventWord(_("Outcome unknown, given up"), "warn", "circle-question-mark"),
    "tool.refused": EventWord(_("Gate stopped a call"), "danger", "shield-check"),
    "run.started": EventWord(_("Run started"), "neutral", "play"),
    "run.paused": EventWord(_("Run paused"), "neutral", "circle-pause"),
    "run.resumed": EventWord(_("Run resumed"), "neutral", "play"),
    "run.finished": EventWord(_("Run finished"), "ok", "circle-check"),
    "run.failed": EventWord(_("Run failed"), "danger", "octagon-alert"),
    "run.in_doubt": EventWord(_("Run in doubt"), "danger", "circle-question-mark"),
    "run.cancel_asked": EventWord(_("Asked to cancel the run"), "neutral", "ban"),
    "run.cancelled": EventWord(_("Run cancelled"), "neutral", "ban"),
    "run.retry_asked": EventWord(_("Asked for a retry"), "neutral", "rotate-ccw"),
    "run.settled": EventWord(_("Settled a doubt"), "info", "user-check"),
    "run.input_added": EventWord(_("Gave new input"), "neutral", "plus"),
    "run.reviews_closed": EventWord(_("Closed open reviews for new input"), "warn", "git-branch"),
    "run.build_accepted": EventWord(_("Let it go on with this build"), "info", "workflow"),
    "run.woken": EventWord(_("Woke a worker for it"), "neutral", "play"),
    "run.thread_deleted": EventWord(_("Checkpoints deleted"), "warn", "trash-2"),
    "queue.created": EventWord(_("Queue created"), "neutral", "plus"),
    "queue.deadline_set": EventWord(_("Deadline set"), "neutral", "hourglass"),
    "queue.renamed": EventWord(_("Queue renamed"), "neutral", "pencil"),
    "queue.member_set": EventWord(_("Member set"), "neutral", "user-plus"),
    "queue.member_removed": EventWord(_("Member removed"), "neutral", "users"),
    "policy.saved": EventWord(_("Policy changed"), "neutral", "workflow"),
    "policy.deleted": EventWord(_("Policy deleted"), "neutral", "trash-2"),
    "account.created": EventWord(_("Account created"), "neutral", "user-plus"),
    "token.issued": EventWord(_("API token issued"), "warn", "key-round"),
    "token.revoked": EventWord(_("API token revoked"), "neutral", "key-round"),
    "session.opened": EventWord(_("Signed in"), "neutral", "log-in"),
    "session.closed": EventWord(_("Signed out"), "neutral", "log-out"),
    "session.refused": EventWord(_("Sign-in refused"), "warn", "lock"),
    "session.locked": EventWord(_("Sign-in locked after many tries"), "danger", "lock"),
}

VERDICT_WORDS: dict[str, EventWord] = {
    "approve": EventWord(_("Approved"), "ok", "circle-check"),
    "edit": EventWord(_("Edited"), "info", "pencil"),
    "reject": EventWord(_("Rejected"), "danger", "circle-x"),
    "respond": EventWord(_("Answered"), "neutral", "message-square"),
    "answer": EventWord(_("Answered"), "neutral", "message-square"),
}


OTHER_OUTCOMES: dict[str, str | Promise] = {
    "expired": _("Expired"),
    "overdue": _("Overdue"),
    "superseded": _("Superseded"),
    "withdrawn": _("Withdrawn"),
    "delivered": _("Delivered"),
    "refused": _("Refused"),
    "failed": _("Failed"),
    "in_doubt": _("In doubt"),
    "finished": _("Finished"),
    "cancelled": _("Cancelled"),
}


def word_of(event: AuditEvent) -> EventWord:
    """Return what to call an event; a type that nobody named yet keeps its own name."""
    if event.type == DECISIONS and event.outcome in VERDICT_WORDS:
        return VERDICT_WORDS[event.outcome]
    return EVENT_WORDS.get(event.type) or EventWord(event.type.replace(".", " ").replace("_", " "))


def outcome_choices() -> Iterator[tuple[str, str | Promise]]:
    """Yield every outcome with its label, the verdicts first, for a filter."""
    for verdict, word in VERDICT_WORDS.items():
        yield verdict, _("Answered a question") if verdict == "answer" else word.label
    yield from OTHER_OUTCOMES.items()


def type_choices() -> Iterator[tuple[str, str | Promise]]:
    """Yield every type with its label, for a filter."""
    for type_, word in EVENT_WORDS.items():
        yield type_, word.label


FACT_WORDS: dict[str, str | Promise] = {
    "answer": _("Answer, as sent"),
    "answer_digest": _("Digest of the answer"),
    "answers_digest": _("Digest of the answers"),
    "arguments_digest": _("Digest of the arguments"),
    "attempt": _("Attempt"),
    "build": _("Build"),
    "changes": _("Changes to the proposal"),
    "claim_version": _("Claim number"),
    "comment": _("Note"),
    "count": _("How many"),
    "description": _("What it is for"),
    "deleted_by": _("Deleted by"),
    "digest": _("Digest of the card"),
    "due": _("Deadline"),
    "error": _("Error"),
    "execution": _("Attempt in the ledger"),
    "grant": _("Allowed by"),
    "input_digest": _("Digest of the input"),
    "interrupt": _("Interrupt"),
    "kind": _("Kind"),
    "language": _("Language"),
    "leads": _("Leads the queue"),
    "left": _("Moved from"),
    "member": _("Member"),
    "minutes": _("Minutes to decide"),
    "name": _("Name"),
    "next": _("Took the next one"),
    "old": _("Name before"),
    "on_expiry": _("When time is up"),
    "output_digest": _("Digest of the output"),
    "parts": _("Parts"),
    "person": _("Person"),
    "policy": _("Policy"),
    "queue": _("Queue"),
    "reason": _("Reason"),
    "reason_code": _("Reason"),
    "renderer": _("Version of the card renderer"),
    "result_digest": _("Digest of the result"),
    "risk": _("Risk"),
    "role": _("Role"),
    "round": _("Round"),
    "shown": _("Card as shown, SHA-256"),
    "tasks": _("Cards"),
    "title": _("Title"),
    "to": _("To"),
    "token": _("Token"),
    "tool": _("Tool"),
    "username": _("Account"),
    "via": _("Through"),
}


def fact_words(facts: Mapping[str, Json]) -> Iterator[tuple[str | Promise, str | Promise]]:
    """Yield the facts of an event that hold something, named and as text; an unknown name stays as it is."""
    for name, value in facts.items():
        if value is None or value == "":
            continue
        label = FACT_WORDS.get(name, name)
        if isinstance(value, bool):
            yield label, _("yes") if value else _("no")
        else:
            yield label, str(value)
