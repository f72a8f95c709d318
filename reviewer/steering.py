"""What a person does to a run as a whole: start, retry, settle, give it new input, cancel.

Each verb checks the right, calls the runtime's front door and records who did it, in one transaction.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents_runtime import runs
from agents_runtime.canonical import Json, digest
from agents_runtime.models import Run
from reviewer import live, queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.audit.record import record
from reviewer.audit.subjects import of_run
from reviewer.errors import NotAllowed


@transaction.atomic
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
    """Say what happened to a tool whose outcome nobody knows: ``happened``, ``run_again`` or ``stop``."""
    _guard(run_id, by=by)
    run = runs.settle(run_id, outcome=outcome, result=result, execution_id=execution_id)
    record(
        "run.settled",
        actor=by,
        subject=of_run(run, outcome=outcome, result_digest=digest(result), execution=execution_id),
    )
    return _publish(run)


@transaction.atomic
def add_input(run_id: UUID, *, input: Json, by: User) -> Run:
    """Give a finished run its next input; refused while reviews are open."""
    guard_may_feed(queries.get_run(by, run_id), by=by)
    run = runs.add_input(run_id, input=input)
    record("run.input_added", actor=by, subject=of_run(run, input_digest=digest(input)))
    return _publish(run)


@transaction.atomic
def cancel(run_id: UUID, *, by: User) -> Run:
    """Stop the run: open cards are withdrawn, and no gated tool of it starts afterwards."""
    _guard(run_id, by=by)
    run = runs.cancel(run_id)
    record("run.cancel_asked", actor=by, subject=of_run(run))
    return _publish(run)


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
