"""What a person does to a run as a whole: start, retry, settle, wake, give it new input, cancel.

Each verb checks the right, calls the runtime's front door and records who did it, in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents_runtime import runs
from agents_runtime.canonical import Json, digest
from agents_runtime.models import Run, ToolExecution
from agents_runtime.states import ExecutionStatus
from reviewer import live, queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.audit.record import record
from reviewer.audit.subjects import of_execution, of_run
from reviewer.errors import Conflict, NotAllowed
from reviewer.models import ReviewTask


def start_run(agent: str, *, input: Json, by: User) -> Run:
    """Start a run in this person's name, who then can never decide its tasks."""
    if not permissions.can_start_runs(by):
        raise NotAllowed(_("Your role does not start runs."))
    return runs.start(agent, input=input, requested_by=by.reference)


@transaction.atomic
def retry(run_id: UUID, *, by: User) -> Run:
    """Let a failed run, or an approved call that failed, try once more."""
    _guard(run_id, by=by)
    run = runs.retry(run_id)
    record("run.retry_asked", actor=by, subject=of_run(run))
    return _publish(run)


@transaction.atomic
def settle(
    run_id: UUID, *, outcome: str, by: User, result: Json = None, execution_id: int | None = None
) -> Run:
    """Say what happened to a tool whose outcome nobody knows: ``happened``, ``run_again`` or ``stop``.

    ``execution_id`` is the attempt that this person saw: of any other one than that in doubt, 409.
    """
    _guard(run_id, by=by)
    seen = _attempt(run_id, execution_id)
    meant = seen.pk if seen else execution_id
    run = runs.settle(run_id, outcome=outcome, result=result, execution_id=meant)
    subject = of_execution(seen) if seen else of_run(run)
    facts = {**subject.facts, "result_digest": digest(result), "attempt_id": meant}
    record("run.settled", actor=by, subject=replace(subject, outcome=outcome, facts=facts))
    return _publish(run)


def _attempt(run_id: UUID, execution_id: int | None) -> ToolExecution | None:
    """Return the attempt that is meant; who names none means the only one that is in doubt."""
    found = ToolExecution.objects.select_related("run__agent").filter(run_id=run_id)
    if execution_id is not None:
        return found.filter(pk=execution_id).first()
    doubted = list(found.filter(status=ExecutionStatus.STARTED, in_doubt_since__isnull=False)[:2])
    return doubted[0] if len(doubted) == 1 else None


@transaction.atomic
def accept_build(run_id: UUID, *, by: User) -> Run:
    """Let a run of another build go on with the present one."""
    _guard(run_id, by=by)
    run = runs.accept_build(run_id)
    record("run.build_accepted", actor=by, subject=of_run(run, build=run.fingerprint))
    return _publish(run)


@transaction.atomic
def wake(run_id: UUID, *, by: User) -> Run:
    """Have a worker look at a run that nobody works on."""
    _guard(run_id, by=by)
    run = runs.wake(run_id)
    record("run.woken", actor=by, subject=of_run(run))
    return _publish(run)


@transaction.atomic
def add_input(run_id: UUID, *, input: Json, by: User, close_open_reviews: bool = False) -> Run:
    """Give a run its next input; ``Conflict`` names the tasks that are open, unless they are to be closed.

    Whoever does can never decide its tasks from then on, as whoever started it.
    """
    guard_may_feed(queries.get_run(by, run_id), by=by)
    tasks = queries.open_tasks_of_run(runs.lock_run(run_id))
    open_tasks = tasks.count()
    if open_tasks and not close_open_reviews:
        raise _open_reviews(open_tasks, list(queries.visible_tasks(by).filter(pk__in=tasks.values("pk"))))
    run = runs.add_input(
        run_id, input=input, requested_by=by.reference, close_open_reviews=close_open_reviews
    )
    if close_open_reviews and run.closes_reviews:
        record("run.reviews_closed", actor=by, subject=of_run(run, tasks=open_tasks))
    record("run.input_added", actor=by, subject=of_run(run, input_digest=digest(input)))
    return _publish(run)


@transaction.atomic
def cancel(run_id: UUID, *, by: User) -> Run:
    """Stop the run: open cards are withdrawn, and no gated tool of it starts afterwards."""
    _guard(run_id, by=by)
    run = runs.cancel(run_id)
    record("run.cancel_asked", actor=by, subject=of_run(run))
    return _publish(run)


def _open_reviews(count: int, visible: Sequence[ReviewTask]) -> Conflict:
    message = ngettext(
        "The run waits for %(n)s decision. Decide it first, or ask to close it.",
        "The run waits for %(n)s decisions. Decide them first, or ask to close them.",
        count,
    )
    return Conflict(message % {"n": count}, code="open_reviews", tasks=visible)


def guard_may_feed(run: Run, *, by: User) -> None:
    """Raise ``NotAllowed`` unless this person may give the run its next input."""
    if not permissions.can_feed_run(by, requested_by=run.requested_by):
        raise NotAllowed(_("Only its developer, a lead or an administrator can give a run new input."))


def _guard(run_id: UUID, *, by: User) -> None:
    run = queries.get_run(by, run_id)
    if not permissions.can_steer_run(by, run_id=run.pk, requested_by=run.requested_by):
        raise NotAllowed(
            _("Only members of the queues that this run has asked, its developer and leads can do this.")
        )


def _publish(run: Run) -> Run:
    live.run_changed(run.pk)
    return run
