"""The ledger: whether a gated call may start, and one committed row for each attempt at it.

Every answer is given in the transaction that opens the row, with the run and the pause locked: a decision
cannot change, a run cannot be cancelled, and a second worker cannot start the same call while it is given.
Run and pause are locked by one statement where that finds both, in this order: PostgreSQL locks the rows that
it found together in the order in which the statement names their tables, and gives them as they are then.
The row is committed before the tool's code runs. Does not live here: stopping a tool (``gate``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.db.models import CharField, Exists, OuterRef, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Concat

from agents_runtime.canonical import Json, decode, digest, encode, same, storable
from agents_runtime.compiled import SOME_ID, Compiled
from agents_runtime.desk import get_desk
from agents_runtime.errors import NotFound, StaleEpoch
from agents_runtime.models import Pause, Run, ToolExecution
from agents_runtime.payloads import allowed_arguments
from agents_runtime.records import as_name, lock_pause
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus
from agents_runtime.thread_state import GateStop
from agents_runtime.writing import NOW, Found, Write, insert, together, update, write

Grant = ToolExecution.Grant
DONE = frozenset({ExecutionStatus.SUCCEEDED, ExecutionStatus.ASSERTED})
SUSPENDED = ExecutionStatus.SUSPENDED
MAX_NAMESPACE = 500
STARTED_BEFORE = "It was started before, and nobody knows how that ended."
FAILED_BEFORE = "It failed before."
BATCH_KINDS = (Pause.Kind.BATCHED, Pause.Kind.LEGACY)
UNDERWAY = frozenset({PauseStatus.DELIVERING, PauseStatus.FAILED, PauseStatus.IN_DOUBT})


@dataclass(frozen=True)
class Call:
    """A tool call that is about to run; ``interrupt_ids``: those its task may have raised, latest first."""

    run_id: UUID
    epoch: int
    tool: str
    tool_call_id: str
    namespace: str
    arguments: Json
    interrupt_ids: Sequence[str]


@dataclass(frozen=True)
class Started:
    """The call may run now; the row of this attempt is committed."""

    execution: ToolExecution

    @property
    def call_key(self) -> str:
        """What names the call within its run: the same for every attempt at it."""
        return self.execution.call_key


@dataclass(frozen=True)
class Finished:
    """The call ran before, or a person said so: give this result again. ``edited``: changed arguments."""

    call_key: str
    replay_type: str
    replay: bytes | None
    asserted: Json = None
    edited: Json = None


Answer = Started | Finished | None
"""None: the call is not gated, and the run goes on."""


@dataclass(frozen=True)
class _Claim:
    """The position of a pause that a call belongs to."""

    pause: Pause
    position: int
    was_tried: bool = True
    """Whether there may be an attempt at it."""

    @cached_property
    def call(self) -> dict[str, Json]:
        return self.pause.call_list[self.position]

    @cached_property
    def answer(self) -> Json:
        answers = self.pause.answer_list
        return answers[self.position] if self.position < len(answers) else None

    @property
    def key(self) -> str:
        return f"{self.pause.interrupt_id}:{self.position}"


# What the gate, and the desk that it tells, read; what else is wanted after all is read when it is wanted.
_OF_RUN = ("agent", "status", "gates", "epoch", "agent__name")
_OF_PAUSE = ("interrupt_id", "round", "calls", "status", "answers", "delivery_epoch")
_FROM_RUN = ("run", *(f"run__{name}" for name in _OF_RUN))


def _run(run_id: UUID) -> QuerySet[Run]:
    """Return a run, locked, and whether a batch was ever asked in it."""
    has_batches = Exists(Pause.objects.filter(run=OuterRef("pk"), kind__in=BATCH_KINDS))
    return (
        Run.objects.select_for_update(of=("self",))
        .select_related("agent")
        .only(*_OF_RUN)
        .annotate(has_batches=has_batches)
        .filter(pk=run_id)
        .order_by()
    )


def _asked_of_call(run_id: UUID, tool: str, interrupt_ids: str) -> QuerySet[Pause]:
    """Return the pauses that asked about a call by itself, each locked after its run.

    The ids are one text: a list of fifty takes longer to write down than the rest of the statement.
    """
    asked = Pause.objects.filter(
        run=run_id,
        kind=Pause.Kind.PER_CALL,
        tool=tool,
        interrupt_id__in=RawSQL("SELECT unnest(string_to_array(%s, ' '))", [interrupt_ids]),
    )
    key = Concat(OuterRef("interrupt_id"), Value(":0"), output_field=CharField())
    was_tried = Exists(ToolExecution.objects.filter(run=OuterRef("run"), call_key=key))
    return (
        asked.select_for_update(of=("run", "self"))
        .select_related("run__agent")
        .only(*_OF_PAUSE, *_FROM_RUN)
        .annotate(was_tried=was_tried)
        .order_by()
    )


_locked_run = Compiled(_run, SOME_ID)
_locked_latest = Compiled(
    lambda run_id, key: (
        ToolExecution.objects.select_for_update().filter(run=run_id, call_key=key).order_by("-attempt")[:1]
    ),
    SOME_ID,
    "some key",
)
_locked_asked_of_call = Compiled(_asked_of_call, SOME_ID, "some tool", "some interrupts")
_END = Write(
    before="""
    standing AS MATERIALIZED (
        SELECT id FROM agents_runtime_run WHERE id = %s AND epoch = %s FOR UPDATE
    )
    """,
    sql=f"""
    UPDATE agents_runtime_toolexecution AS attempt
    SET status = %s, result = %s, error = %s, replay_type = %s, replay = %s, next_grant = %s,
        finished_at = {NOW}
    FROM standing WHERE attempt.id = %s AND attempt.run_id = standing.id AND attempt.epoch = %s
        AND attempt.status = '{ExecutionStatus.STARTED}' AND attempt.in_doubt_since IS NULL
    RETURNING attempt.finished_at
    """,  # noqa: S608  no value
    tables=frozenset({"agents_runtime_toolexecution"}),
)
"""The run is locked before the attempt: only what it gives is joined to the row that changes."""


class _Refused(Exception):
    """Carries the stop out of the checks."""

    def __init__(self, kind: str, reason: str, pause: Pause | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.pause = kind, storable(reason), pause


def open_call(call: Call) -> Answer | GateStop:
    """Answer a call that wants to start."""
    with together():
        own = _own_claim(call)
        run = own.pause.run if own else _lock_run(call.run_id)
        return _answer(run, call, lambda: _open_gated(run, call, own))


def open_once(*, run_id: UUID, epoch: int, key: str, arguments: Json) -> Answer | GateStop:
    """Answer code of a plain node that wants to do something once; ``key`` names it within the run."""
    call = Call(run_id, epoch, tool=key, tool_call_id="", namespace="", arguments=arguments, interrupt_ids=())
    with together():
        run = _lock_run(run_id)
        return _answer(run, call, lambda: _open_once(run, call))


def close_call(
    execution: ToolExecution,
    *,
    epoch: int,
    status: ExecutionStatus,
    result: str = "",
    replay: tuple[str, bytes] | None = None,
    error: str = "",
    may_run_again: bool = False,
) -> None:
    """Record how an attempt ended; raise ``StaleEpoch`` if this worker may no longer say so.

    ``may_run_again``: it raised an error of which the agent's author says that nothing has happened.
    """
    execution.become(status)
    execution.result, execution.error = result, storable(error)
    execution.next_grant = Grant.HARMLESS if may_run_again else ""
    if replay is not None:
        execution.replay_type, execution.replay = replay

    def check(ended: Found) -> None:
        if not ended:
            raise StaleEpoch(f"{execution} was settled meanwhile, or its worker no longer holds the run.")
        ((execution.finished_at,),) = ended

    with together():
        write(
            _END,
            *(execution.run_id, epoch),
            *(execution.status, execution.result, execution.error),
            *(execution.replay_type, execution.replay, execution.next_grant),
            *(execution.pk, epoch),
            then=check,
        )
        get_desk().tool_finished(execution)


def _answer(run: Run, call: Call, decide: Callable[[], Answer]) -> Answer | GateStop:
    try:
        _check_run(run, call)
        return decide()
    except _Refused as refused:
        if refused.kind == "refused":
            get_desk().tool_refused(run, call.tool, refused.reason)
        pause_id = refused.pause.pk if refused.pause else None
        return GateStop(refused.kind, call.tool, refused.reason, pause_id)


def _lock_run(run_id: UUID) -> Run:
    run = _locked_run.first(run_id)
    if run is None:
        raise NotFound("There is no such run.")
    return run


def _check_run(run: Run, call: Call) -> None:
    if run.epoch != call.epoch:
        raise _Refused("stale", "Another worker holds the run now.")
    if run.status != RunStatus.RUNNING:
        raise _Refused("cancelled", f"The run is {run.get_status_display().lower()}.")


def _own_claim(call: Call) -> _Claim | None:
    """A call that was asked about by itself is known by its task: the task's interrupts carry its name.

    Whether it was tried is seen before the run is locked. It is so still: only the worker that holds the run
    in its present epoch adds attempts and pauses, one by one, and that worker is the one who asks.
    """
    rank = {interrupt_id: place for place, interrupt_id in enumerate(call.interrupt_ids)}
    own = _locked_asked_of_call.rows(call.run_id, as_name(call.tool), " ".join(call.interrupt_ids))
    latest = min(own, key=lambda pause: (rank[pause.interrupt_id], -pause.round), default=None)
    return None if latest is None else _Claim(latest, 0, was_tried=vars(latest)["was_tried"])


def _claim_in_batch(run: Run, call: Call) -> _Claim | None:
    """Return the locked batch and the position that a call belongs to, whatever was decided there."""
    claim = _batch_claim(run, call) if vars(run)["has_batches"] else None
    return _Claim(lock_pause(run, claim.pause.pk), claim.position) if claim else None


def _batch_claim(run: Run, call: Call) -> _Claim | None:
    """A call of a batch runs in another task than the batch's: it is known by tool and id, or arguments."""
    batches = Pause.objects.filter(run=run, kind__in=BATCH_KINDS).defer("value", "response_schema")
    claims = (
        _Claim(pause, position)
        for pause in batches
        for position, told in enumerate(pause.call_list)
        if _is_same_call(pause, told, call)
    )
    return min(claims, key=lambda claim: _rank_in_batch(claim, call), default=None)


def _is_same_call(pause: Pause, told: dict[str, Json], call: Call) -> bool:
    """Compare by id where the batch tells one. Where it tells none, a batch that nobody decided counts too:
    its agent may have gone on without waiting.
    """
    if told["tool"] != call.tool:
        return False
    if told["tool_call_id"]:
        return bool(told["tool_call_id"] == call.tool_call_id)
    if pause.status in UNDERWAY:
        return True
    if pause.status == PauseStatus.DELIVERED:
        began = pause.executions.filter(
            tool_call_id=as_name(call.tool_call_id), status__in=[SUSPENDED, *DONE]
        )
        return began.exists()
    return same(told["arguments"], call.arguments)


def _rank_in_batch(claim: _Claim, call: Call) -> tuple[bool, bool, bool, bool, int]:
    """Twins share tool and perhaps id: first what is underway, what has these arguments, what has not run."""
    is_idle = claim.pause.status not in UNDERWAY
    is_allowed, arguments = allowed_arguments(claim.call, claim.answer)
    has_run = ToolExecution.objects.filter(
        run_id=claim.pause.run_id, call_key=claim.key, status__in=[ExecutionStatus.STARTED, *DONE]
    ).exists()
    is_other = not (is_allowed and _fit(call, arguments, claim))
    return is_idle, claim.pause.status != PauseStatus.DELIVERED, is_other, has_run, claim.position


def _open_once(run: Run, call: Call) -> Started | Finished:
    key = f"once:{digest(call.tool)}"
    latest = _latest(run, key)
    if latest is None:
        return _start(run, call, None, key=key, attempt=1, grant=Grant.ONCE)
    if latest.arguments_digest != digest(call.arguments):
        raise _Refused("refused", f"The key {call.tool} was used before, with other arguments.")
    if latest.status in DONE:
        return _finished(latest, None)
    if latest.status == ExecutionStatus.STARTED:
        raise _Refused("in_doubt", STARTED_BEFORE)
    if not latest.next_grant:
        raise _Refused("refused", latest.error or FAILED_BEFORE)
    return _start_again(run, call, None, latest)


def _open_gated(run: Run, call: Call, own: _Claim | None) -> Answer:
    claim = own or _claim_in_batch(run, call)
    if claim is None and call.tool not in decode(run.gates):
        return None
    key = claim.key if claim else f"{digest(call.namespace)}:{as_name(call.tool_call_id)}"
    latest = None if claim and not claim.was_tried else _latest(run, key)
    _check_decision(run, call, claim)
    if latest is None:
        _check_delivery(call, claim)
        return _start(
            run, call, claim, key=key, attempt=1, grant=Grant.DECISION if claim else Grant.CONDITION
        )
    if latest.status in DONE:
        return _finished(latest, claim)
    if latest.status == ExecutionStatus.STARTED:
        raise _Refused("in_doubt", STARTED_BEFORE, latest.pause)
    if latest.status == SUSPENDED:
        return _reenter(latest, call)
    if not latest.next_grant:
        raise _Refused("held", latest.error or FAILED_BEFORE, latest.pause)
    _check_delivery(call, claim)
    return _start_again(run, call, claim, latest)


def _latest(run: Run, key: str) -> ToolExecution | None:
    """Lock and return the latest attempt at a call of a locked run."""
    latest = _locked_latest.first(run.pk, key)
    if latest is not None:
        latest.run = run
    return latest


def _start_again(run: Run, call: Call, claim: _Claim | None, latest: ToolExecution) -> Started:
    """Use up the permit that a person gave for one more attempt."""
    grant = Grant(latest.next_grant)
    latest.next_grant = ""
    update(latest, "next_grant")
    return _start(run, call, claim, key=latest.call_key, attempt=latest.attempt + 1, grant=grant)


def _check_decision(run: Run, call: Call, claim: _Claim | None) -> None:
    """Refuse unless somebody allowed this call with exactly these arguments, or nobody need be asked."""
    if claim is None:
        gate = decode(run.gates)[call.tool]
        if not (isinstance(gate, dict) and gate.get("conditional")):
            raise _Refused("refused", f"{call.tool} is gated, and nobody was asked about this call.")
        return
    if claim.answer is None:
        raise _Refused("refused", f"Nobody has decided on this call of {call.tool} yet.", claim.pause)
    is_allowed, arguments = allowed_arguments(claim.call, claim.answer)
    if not is_allowed:
        raise _Refused("refused", f"The decision on this call of {call.tool} does not allow it.", claim.pause)
    if not _fit(call, arguments, claim):
        raise _Refused(
            "refused", f"{call.tool} was about to run with other arguments than decided.", claim.pause
        )


def _check_delivery(call: Call, claim: _Claim | None) -> None:
    """Refuse a first or repeated start unless this worker is delivering the answer right now."""
    if claim is None:
        return
    pause = claim.pause
    if pause.status != PauseStatus.DELIVERING or pause.delivery_epoch != call.epoch:
        raise _Refused("refused", f"The decision on this call of {call.tool} is not being delivered.", pause)


def _fit(call: Call, allowed: Json, claim: _Claim) -> bool:
    """Compare what would run with what was allowed; names that the tool does not declare never reach it."""
    if same(allowed, call.arguments):
        return True
    if not (isinstance(allowed, dict) and isinstance(call.arguments, dict)):
        return False
    tools: dict[str, Json] = decode(claim.pause.run.agent.tools)
    declared = ((tools.get(call.tool) or {}).get("args_schema") or {}).get("properties")
    if not isinstance(declared, dict):
        return False
    reaching = {name: value for name, value in allowed.items() if name in declared or name in call.arguments}
    return same(reaching, call.arguments)


def _finished(execution: ToolExecution, claim: _Claim | None) -> Finished:
    is_edited = claim is not None and isinstance(claim.answer, dict) and claim.answer.get("type") == "edit"
    return Finished(
        call_key=execution.call_key,
        replay_type=execution.replay_type,
        replay=bytes(execution.replay) if execution.replay is not None else None,
        asserted=decode(execution.result) if execution.status == ExecutionStatus.ASSERTED else None,
        edited=decode(execution.arguments) if is_edited else None,
    )


def _reenter(execution: ToolExecution, call: Call) -> Started:
    """The tool itself paused, and its own question is answered: the same attempt goes on."""
    if execution.arguments_digest != digest(call.arguments):
        raise _Refused("refused", f"{call.tool} came back with other arguments than it paused with.")
    execution.become(ExecutionStatus.STARTED)
    execution.epoch, execution.finished_at = call.epoch, None
    update(execution, "status", "epoch", "finished_at")
    get_desk().tool_started(execution)
    return Started(execution)


def _start(
    run: Run, call: Call, claim: _Claim | None, *, key: str, attempt: int, grant: ToolExecution.Grant
) -> Started:
    execution = ToolExecution(
        run=run,
        pause=claim.pause if claim else None,
        position=claim.position if claim else 0,
        call_key=key,
        attempt=attempt,
        tool=as_name(call.tool),
        tool_call_id=as_name(call.tool_call_id),
        namespace=storable(call.namespace)[:MAX_NAMESPACE],
        arguments=encode(call.arguments),
        arguments_digest=digest(call.arguments),
        grant=grant,
        epoch=call.epoch,
    )
    get_desk().tool_started(execution)
    insert(execution, waits=True)
    return Started(execution)
