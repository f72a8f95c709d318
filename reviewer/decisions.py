"""Decide: the one way to decide a task, for pages, API and tests alike.

Reads: lock, guard, change, record, publish. The decision, its evidence and the pause's new state commit
together. What a decision is bound to is its digest: another digest is refused, and the new card shown.
"""

from __future__ import annotations

import datetime as dt
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents_runtime import runs
from agents_runtime.canonical import Json, decode, encode, storable
from agents_runtime.canonical import digest as digest_of
from agents_runtime.errors import Problem
from agents_runtime.models import Pause
from agents_runtime.writing import NOW, Write, insert, read_when_asked, together, write
from reviewer import claims, live, openings, queries
from reviewer.accounts.models import User
from reviewer.audit.record import Subject, record
from reviewer.audit.subjects import of_task
from reviewer.deadlines import is_over, rejection_of
from reviewer.errors import Conflict, Invalid
from reviewer.models import Decision, ReviewTask, TaskStatus, Verdict
from reviewer.shown import card_of, kept_changes

NAMED_VERDICTS = {Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT, Verdict.RESPOND}
MAX_COMMENT = 4_000
MAX_REASON = 40
_CONCLUDE = Write(
    before="""
    concluded AS (
        INSERT INTO reviewer_outcome (task_id, round, verdict, answer, decided_by_id)
        VALUES (%s, %s, %s, %s, %s)
    )
    """,
    sql=f"""
    UPDATE reviewer_reviewtask
    SET status = %s, version = %s, claimed_by_id = %s, claimed_until = %s, claim_version = %s,
        closed_at = {NOW}
    WHERE id = %s
    """,  # noqa: S608  no value
    tables=frozenset({"reviewer_outcome", "reviewer_reviewtask"}),
)


def decide(
    task_id: UUID,
    *,
    by: User,
    answer: Json,
    digest: str,
    claim_version: int | None = None,
    reason_code: str = "",
    comment: str = "",
    via: str = "web",
) -> Decision:
    """Record this person's decision on exactly the card with ``digest``, and answer the pause once complete.

    Raises ``NotFound`` for a task they may not see, ``NotAllowed`` for one they may not decide, ``Conflict``
    (decided, closed, stale, taken) with who and when, ``Invalid`` with JSON pointers into ``answer``,
    ``Unread`` where they would approve a card of high risk without having opened every part of it.
    A refusal because things moved on is itself recorded.
    """
    try:
        return _decide(
            task_id,
            by=by,
            answer=answer,
            digest=digest,
            claim_version=claim_version,
            reason_code=reason_code,
            comment=comment,
            via=via,
        )
    except Conflict as conflict:
        _record_conflict(conflict, by=by, via=via)
        raise


@together()
def _decide(
    task_id: UUID,
    *,
    by: User,
    answer: Json,
    digest: str,
    claim_version: int | None,
    reason_code: str,
    comment: str,
    via: str,
) -> Decision:
    task = queries.lock_whole(by, task_id)
    now = task.run.moment
    claims.guard_may_decide(task, by=by)
    claims.guard_open(task)
    _guard_in_time(task, now)
    _guard_digest(task, digest)
    claims.guard_not_taken(task, by=by)
    _guard_claim_version(task, by=by, claim_version=claim_version)
    _guard_answer(task, answer, comment=comment, reason_code=reason_code)
    openings.guard_read(task, verdict=verdict_of(answer), by=by)

    claims.hold(task, by=by, now=now)
    showing = openings.shown_to(task, by) if via == "web" else None
    card = card_of(task)
    decision = Decision(
        task=task,
        person=by,
        person_name=by.display_name,
        verdict=verdict_of(answer),
        answer=encode(answer),
        changes=kept_changes(card.changes_for_the_record(answer)),
        digest=task.digest,
        showing=showing,
        reason_code=storable(reason_code),
        comment=storable(comment),
        via=via,
    )
    insert(decision)
    made = of_task(
        task,
        outcome=decision.verdict,
        digest=task.digest,
        answer_digest=digest_of(answer),
        answer=encode(card.for_the_record(answer)),
        changes=decision.changes,
        **openings.facts_of(showing),
        reason_code=decision.reason_code,
        comment=decision.comment,
        via=via,
    )
    _conclude(task, decision, made)
    answer_when_complete(task.pause, decision)
    live.task_changed(task)
    live.run_changed(task.run_id, at_work=True)
    return decision


def verdict_of(answer: Json) -> Verdict:
    """Return what an answer means: one of the four named decisions, or any other answer."""
    named = answer.get("type") if isinstance(answer, dict) else None
    return Verdict(named) if isinstance(named, str) and named in NAMED_VERDICTS else Verdict.ANSWER


def _guard_in_time(task: ReviewTask, now: dt.datetime) -> None:
    """Refuse a decision that comes after the deadline, even if the sweep has not closed the task yet.

    A task that the sweep has held, because its run had failed by then, is open for good.
    """
    if task.overdue_at is None and is_over(task, now) and rejection_of(task) is not None:
        raise Conflict(
            _("Time is up: nobody decided this task by its deadline, so it is being rejected."),
            code="closed",
            when=task.due_at,
            task=task,
        )


def _guard_digest(task: ReviewTask, digest: str) -> None:
    if digest != task.digest:
        raise Conflict(
            _("This card has changed since you opened it. Look at it again before you decide."),
            code="stale",
            task=task,
        )


def _guard_claim_version(task: ReviewTask, *, by: User, claim_version: int | None) -> None:
    if claim_version is None or claim_version == task.claim_version:
        return
    holder = task.claimed_by.display_name if task.claimed_by and task.claimed_by_id != by.pk else ""
    raise Conflict(
        _("Your claim has run out, and the task was claimed again since."),
        code="stale",
        who=holder,
        when=task.claimed_until,
        task=task,
    )


def _guard_answer(task: ReviewTask, answer: Json, *, comment: str, reason_code: str) -> None:
    _guard_length(comment, MAX_COMMENT, "/comment")
    _guard_length(storable(reason_code), MAX_REASON, "/reason_code")
    errors = card_of(task).validate(answer)
    if errors:
        problems = tuple(Problem(error.pointer, error.message) for error in errors)
        raise Invalid(_("The answer does not fit what the agent asked for."), problems)


def _guard_length(text: str, limit: int, pointer: str) -> None:
    if len(text) > limit:
        message = _("Enter %(limit)s characters or fewer.") % {"limit": f"{limit:,}"}
        raise Invalid(message, (Problem(pointer, message),))


def _conclude(task: ReviewTask, decision: Decision, made: Subject) -> None:
    """Make one person's decision the outcome, and record it: every task asks for one decision today."""
    task.status = TaskStatus.DECIDED
    task.version += 1
    outcome = (task.pk, decision.round, decision.verdict, decision.answer, decision.pk)
    changes = (task.status, task.version, task.claimed_by_id, task.claimed_until, task.claim_version)
    record("decision.made", actor=decision.person, subject=made)
    write(_CONCLUDE, *outcome, *changes, task.pk)
    read_when_asked(task, "closed_at")


def answer_when_complete(pause: Pause, latest: Decision | None = None) -> None:
    """Answer the pause once every one of its tasks has an outcome, in the order of their positions.

    A pause with one task needs no look at others: ``latest``, which became its outcome, is the answer.
    """
    if latest is not None and len(pause.call_list) <= 1:
        runs.answer(pause, [decode(latest.answer)])
        return
    tasks = list(pause.tasks.order_by("position").values_list("outcome__answer", flat=True))
    if None in tasks:
        return
    runs.answer(pause, [decode(text) for text in tasks])


@transaction.atomic
def _record_conflict(conflict: Conflict, *, by: User, via: str) -> None:
    if conflict.task is None:
        return
    record("decision.refused", actor=by, subject=of_task(conflict.task, outcome=conflict.code, via=via))
