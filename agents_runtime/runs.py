"""The front door of the agents' side: start, answer, retry, settle, add input, cancel; who is stuck.

Every verb runs inside or opens a transaction and reads: lock, guard, change, tell the desk, wake a worker on
commit. It imports no agent framework, so that the web may import it. Who may do what is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

import jsonschema_rs
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from agents_runtime import attempts, enqueue, retention
from agents_runtime.canonical import Json, decode, encode, has_lone_surrogates, to_json
from agents_runtime.compiled import SOME_ID, Compiled
from agents_runtime.desk import get_desk
from agents_runtime.diagnosis import Stuck, Way, Why, diagnose, find_stuck, is_of_other_build
from agents_runtime.direct import database_now
from agents_runtime.errors import AgentUnavailable, InvalidInput, NotFound, Problem, WrongState
from agents_runtime.models import AgentSpec, Pause, Run, ToolExecution
from agents_runtime.records import lock_run, open_pauses, save_run
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus
from agents_runtime.writing import NOW, Write, insert, read_when_asked, together, write

__all__ = ["Stuck", "Way", "Why", "diagnose", "find_stuck", "lock_run"]  # the front door shows these, too

Grant = ToolExecution.Grant
ALREADY_STARTED = "Withdrawn because the run was cancelled; its tool had already started."
RUN_CANCELLED = "Withdrawn because the run was cancelled."
CLOSED_FOR_INPUT = "Closed without a decision, because the run was given new input instead."
MOST_VALIDATORS = 32
OUTCOMES = frozenset({"happened", "run_again", "stop"})
SETTLED_STOP = "A person stopped the run; nobody knows whether it took effect."
SETTLED_AGAIN = "A person chose to run it again; nobody knows whether this attempt took effect."
_spec = Compiled(lambda name: AgentSpec.objects.filter(name=name), "some agent")
# PostgreSQL locks a row's tables in the order they are named in, and gives each as it is once it is locked.
_locked_pause = Compiled(
    lambda pause_id: (
        Pause.objects.select_for_update(of=("run", "self"))
        .select_related("run__agent")
        .annotate(moment=Now())
        .filter(pk=pause_id)
    ),
    SOME_ID,
)
_ANSWER = Write(
    before=f"moved AS (UPDATE agents_runtime_run SET updated_at = {NOW} WHERE id = %s)",  # noqa: S608  no value
    sql=f"""
    UPDATE agents_runtime_pause SET status = %s, answers = %s, answered_at = {NOW}
    WHERE id = %s
    """,  # noqa: S608  no value
    tables=frozenset({"agents_runtime_run", "agents_runtime_pause"}),
)


@together()
def start(agent: str, *, input: Json, requested_by: str) -> Run:
    """Accept a run of ``agent``; a worker starts it after commit.

    Raises ``NotFound``, ``AgentUnavailable``, or ``InvalidInput`` with JSON pointers into ``input``.
    """
    spec = _spec.first(agent)
    if spec is None:
        raise NotFound(_("There is no agent named %(name)s.") % {"name": agent})
    if not spec.is_available:
        reason = spec.import_error or _("it is no longer listed.")
        raise AgentUnavailable(
            _("%(name)s cannot be started: %(reason)s") % {"name": agent, "reason": reason}
        )
    _check_input(spec, input)
    run = Run(
        agent=spec,
        input=encode(input),
        pending_input=encode(input),
        requested_by=requested_by,
        gates=spec.gates,
        fingerprint=spec.fingerprint,
    )
    insert(run)
    get_desk().run_started(run)
    enqueue.start_run(run.pk)
    return run


def lock_pause(pause_id: UUID) -> Pause:
    """Lock a pause and, before it, its run; ``pause.run`` is the locked run. Call it in a transaction."""
    pause = _locked_pause.first(pause_id)
    if pause is None:
        raise NotFound(_("There is no such pause."))
    pause.run.moment = vars(pause).pop("moment")
    return pause


def answer(pause: Pause, answers: Sequence[Json]) -> None:
    """Record the answers of a locked pause, one for each position; a worker delivers them after commit."""
    run = pause.run
    if not run.is_live:
        raise WrongState(_("The run is %(status)s.") % {"status": run.get_status_display().lower()})
    if pause.status != PauseStatus.PENDING:
        raise WrongState(_("This was answered already or is closed."))
    if len(answers) != max(1, len(pause.call_list)):
        raise InvalidInput(_("Every position needs its answer before any is delivered."))
    pause.become(PauseStatus.ANSWERED)
    pause.answers = encode(list(answers))
    write(_ANSWER, run.pk, pause.status, pause.answers, pause.pk)
    read_when_asked(run, "updated_at")
    read_when_asked(pause, "answered_at")
    enqueue.resume_interrupt(run.pk, pause.pk)


@transaction.atomic
def retry(run_id: UUID) -> Run:
    """Allow one more attempt at whatever failed: a whole step, or tools that raised after approval.

    A run that failed because its agent's build changed goes on with the build that is registered now.
    """
    run = lock_run(run_id)
    has_failed = any(pause.status == PauseStatus.FAILED for pause in open_pauses(run))
    if run.status != RunStatus.FAILED and not (run.status == RunStatus.WAITING and (has_failed or run.error)):
        raise WrongState(_("Nothing of this run has failed."))
    for execution in _failed_attempts(run):
        execution.next_grant = Grant.RETRY
        execution.save(update_fields=["next_grant"])
    run.retry_granted, run.fingerprint = True, run.agent.fingerprint
    _set_to_work(run, "retry_granted", "fingerprint")
    return run


@transaction.atomic
def settle(run_id: UUID, *, outcome: str, result: Json = None, execution_id: int | None = None) -> Run:
    """Say what became of an attempt in doubt: it happened (with its result), run it again, or stop the run.

    ``execution_id`` names the attempt that the person saw; it is needed where several are in doubt.
    """
    if outcome not in OUTCOMES:
        raise InvalidInput(
            _("The outcome is one of happened, run_again and stop."), (Problem("/outcome", outcome),)
        )
    run = lock_run(run_id)
    if run.status != RunStatus.IN_DOUBT:
        raise WrongState(_("Nothing of this run is in doubt."))
    execution = _doubted(run, execution_id)
    if outcome == "stop":
        return cancel(run_id)
    if outcome == "happened":
        execution.result = encode(result)
        attempts.end(execution, ExecutionStatus.ASSERTED)
    else:
        execution.next_grant = Grant.RUN_AGAIN
        attempts.end(execution, ExecutionStatus.ABANDONED, error=SETTLED_AGAIN)
    if not attempts.are_in_doubt(run):
        _set_to_work(run)
    return run


@transaction.atomic
def add_input(run_id: UUID, input: Json, *, requested_by: str = "", close_open_reviews: bool = False) -> Run:
    """Start the next turn of a run that has finished one, on the word of ``requested_by``.

    A run that waits for people takes input only with ``close_open_reviews``: its open pauses are superseded,
    and a worker answers the model's unanswered calls in the thread before it hands the input over.
    """
    run = lock_run(run_id)
    retention.guard_has_thread(run)
    _check_input(run.agent, input)
    _make_room(run, close_open_reviews=close_open_reviews)
    run.pending_input, run.finished_at, run.pruned_at = encode(input), None, None
    if requested_by and not run.is_directed_by(requested_by):
        run.fed_by = encode([*decode(run.fed_by), requested_by])
    _set_to_work(run, "pending_input", "finished_at", "pruned_at", "closes_reviews", "fed_by")
    return run


@transaction.atomic
def accept_build(run_id: UUID) -> Run:
    """Let a run that began on another build of its agent go on with the one that is registered now."""
    run = lock_run(run_id)
    if not is_of_other_build(run):
        raise WrongState(_("The run is on the present build of its agent already."))
    if run.status == RunStatus.FAILED:
        return retry(run_id)
    if not run.is_live:
        raise WrongState(_("The run is %(status)s.") % {"status": run.get_status_display().lower()})
    run.fingerprint = run.agent.fingerprint
    save_run(run, "fingerprint")
    return run


@transaction.atomic
def wake(run_id: UUID) -> Run:
    """Have a worker look at a live run now: it delivers what is decided and reads what the thread asks."""
    run = lock_run(run_id)
    if not run.is_live:
        raise WrongState(_("The run is %(status)s.") % {"status": run.get_status_display().lower()})
    enqueue.start_run(run.pk)
    return run


@transaction.atomic
def cancel(run_id: UUID) -> Run:
    """End a run: its open pauses are withdrawn, and no gated tool of it starts after this commits."""
    run = lock_run(run_id)
    if run.status in {RunStatus.FINISHED, RunStatus.CANCELLED}:
        raise WrongState(_("The run is %(status)s already.") % {"status": run.get_status_display().lower()})
    for pause in open_pauses(run):
        _withdraw(pause)
    for execution in attempts.in_doubt(run).select_for_update():
        attempts.end(execution, ExecutionStatus.ABANDONED, error=SETTLED_STOP)
    run.become(RunStatus.CANCELLED)
    run.finished_at = database_now()
    save_run(run, "status", "finished_at")
    get_desk().run_cancelled(run)
    return run


def _make_room(run: Run, *, close_open_reviews: bool) -> None:
    """Refuse new input, or close what is open, so that no question is dropped without a word."""
    if run.status == RunStatus.FINISHED:
        return
    pauses = open_pauses(run)
    if run.status != RunStatus.WAITING:
        message = _("The run is %(status)s; new input can only follow a finished turn.")
        raise WrongState(message % {"status": run.get_status_display().lower()})
    if not close_open_reviews:
        raise WrongState(_("The run waits for people. Decide its open reviews first, or ask to close them."))
    if any(pause.status != PauseStatus.PENDING for pause in pauses):
        raise WrongState(_("A decision of this run is under way or has failed. Retry it or cancel the run."))
    for pause in pauses:
        pause.become(PauseStatus.SUPERSEDED)
        pause.error, pause.closed_at = CLOSED_FOR_INPUT, database_now()
        pause.save(update_fields=["status", "error", "closed_at"])
        get_desk().pause_closed(pause)
    run.closes_reviews = True


def _check_input(spec: AgentSpec, input: Json) -> None:
    if has_lone_surrogates(input):
        message = _("Half a character (a lone surrogate) stands in the input; no agent's state can hold it.")
        raise InvalidInput(message, (Problem("", message),))
    problems = tuple(
        Problem(_pointer(error.instance_path), error.message)
        for error in _validator(spec.input_schema).iter_errors(to_json(input))
    )
    if problems:
        raise InvalidInput(_("The input does not fit this agent."), problems)


@lru_cache(maxsize=MOST_VALIDATORS)
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(decode(schema), offline=True)


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def _failed_attempts(run: Run) -> list[ToolExecution]:
    """Return the latest attempts that raised at calls of pauses that are open still."""
    raised = ToolExecution.objects.select_for_update().filter(
        run=run, status=ExecutionStatus.RAISED, next_grant=""
    )
    latest: dict[str, ToolExecution] = {}
    for execution in raised.order_by("attempt"):
        latest[execution.call_key] = execution
    newer = ToolExecution.objects.filter(run=run).order_by("attempt").values_list("call_key", "attempt")
    last = dict(newer)
    return [execution for execution in latest.values() if last[execution.call_key] == execution.attempt]


def _doubted(run: Run, execution_id: int | None) -> ToolExecution:
    doubted = list(attempts.in_doubt(run).select_for_update())
    if execution_id is not None:
        doubted = [execution for execution in doubted if execution.pk == execution_id]
    if not doubted:
        raise WrongState(_("This attempt is not in doubt any more."))
    if len(doubted) > 1:
        message = _("Several tools of this run are in doubt: say which one.")
        raise InvalidInput(message, (Problem("/execution_id", message),))
    return doubted[0]


def _set_to_work(run: Run, *fields: str) -> None:
    run.become(RunStatus.RUNNING)
    run.error = run.trouble = ""
    save_run(run, "status", "error", "trouble", *fields)
    get_desk().run_resumed(run)
    enqueue.start_run(run.pk)


def _withdraw(pause: Pause) -> None:
    has_started = pause.executions.exclude(status=ExecutionStatus.ABANDONED).exists()
    pause.become(PauseStatus.WITHDRAWN)
    pause.error = ALREADY_STARTED if has_started else RUN_CANCELLED
    pause.closed_at = database_now()
    pause.save(update_fields=["status", "error", "closed_at"])
    get_desk().pause_closed(pause)
