"""Steps: whoever holds a thread's lock brings its run forward until there is nothing left to deliver.

    lock -> read -> turn -> [ engine.step -> read -> turn ]* -> unlock -> look once more

A turn is one transaction, checked by epoch: it settles what was read and begins what is delivered next. No
code of the agent runs in it: a reading runs what its author reduces its state with, and that may take long.
Lives here: the loop, and the choice. Does not live here: calling the graph (``engine``), and what a reading
of the thread means for runs and pauses (``settling``).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from agents_runtime import recovery, streams, thread_lock
from agents_runtime.canonical import decode
from agents_runtime.desk import get_desk
from agents_runtime.engine import Engine
from agents_runtime.errors import AgentUnavailable, StaleEpoch
from agents_runtime.models import Pause, Run, RunStep
from agents_runtime.payloads import resume_value
from agents_runtime.records import changeable, lock_for_turn, lock_run, read_run, save_changes
from agents_runtime.settling import fail, is_held_by_breakpoint, place_of, settle
from agents_runtime.states import PauseStatus, RunStatus, Trouble
from agents_runtime.thread_state import (
    AskAgain,
    CloseReviews,
    Delivery,
    GiveAnswer,
    GiveInput,
    GoOn,
    Step,
    ThreadState,
)
from agents_runtime.writing import insert_new, together, update

log = logging.getLogger(__name__)
MAX_DEATHS = 5
MAX_TRIES = 3
MAX_LOOKS = 20
AT_REST = frozenset({RunStatus.IN_DOUBT, RunStatus.FINISHED, RunStatus.FAILED, RunStatus.CANCELLED})
GONE = "The checkpoints of this run are gone; it cannot go on."
DIED = (
    "Its worker ended {deaths} times in a row while it ran this. It is not tried again by itself; "
    "the worker's log says more."
)
OTHER_BUILD = (
    "This run began on another build of its agent: other nodes, tools, gates or libraries. "
    "Retry it to go on with the present build, or cancel it."
)
LOST_STEP = (
    "This run waits in a step of {then}, and the present build of its agent makes {now} of it: it would lose "
    "its place, or read as finished. Bring back the build that it began on and retry it there, or cancel it."
)


def advance(run_id: UUID) -> None:
    """Bring a run forward; return at once if another worker holds its thread or nothing is to be done."""
    for _ in range(MAX_LOOKS):
        if not (_advance_once(run_id) and recovery.has_work(run_id)):
            return


def _advance_once(run_id: UUID) -> bool:
    """Return whether this worker had the lock and came to a settlement."""
    with thread_lock.hold(run_id) as epoch:
        if epoch is None:
            return False
        try:
            _drive(read_run(run_id), epoch)
        except StaleEpoch as lost:
            log.warning(
                "this worker lost the run to another one", extra={"run": str(run_id), "why": str(lost)}
            )
            return False
    return True


def _drive(run: Run, epoch: int) -> None:
    try:
        engine = Engine(run, epoch)
    except AgentUnavailable as problem:
        give_up(run.pk, epoch, str(problem), Trouble.AGENT)
        return
    if obstacle := _obstacle(run, epoch, engine):
        give_up(run.pk, epoch, *obstacle)
        return
    state, tries = engine.read_first(), Counter[UUID | None]()
    delivery = turn(run, epoch, state)
    while delivery is not None:
        pause_id = getattr(delivery, "pause_id", None)
        tries[pause_id] += 1
        outcome = engine.step(delivery)
        before, state = state, engine.read()
        is_last = tries[pause_id] >= MAX_TRIES and before.checkpoint_id == state.checkpoint_id
        step = Step(delivery, outcome, number=tries.total(), is_last_try=is_last)
        delivery = turn(run, epoch, state, step)


@together()
def turn(seen: Run, epoch: int, state: ThreadState, step: Step | None = None) -> Delivery | None:
    """Settle what a reading of the thread means, choose what is delivered next, and commit that it begins.

    Raises ``StaleEpoch`` if another worker holds the thread now; then nothing is written.
    """
    run, pauses = lock_for_turn(seen, epoch)
    before = changeable(run)
    if step is not None:
        streams.keep(run, step.outcome.steps)
    if step is None and run.status != RunStatus.CANCELLED and (reason := _lost_step(run, state)):
        fail(run, reason, Trouble.PLACE)
        pauses = []
    else:
        pauses = settle(run, pauses, state, step)
    if _was_stored(run) and not state.exists:
        fail(run, GONE, Trouble.CHECKPOINT)
    delivery = _begin(run, epoch, pauses, state)
    save_changes(run, before)
    return delivery


@together()
def give_up(run_id: UUID, epoch: int, reason: str, trouble: Trouble) -> None:
    """Fail a run that cannot even be read."""
    run = lock_run(run_id, epoch)
    before = changeable(run)
    fail(run, reason, trouble)
    run.settled_epoch = epoch
    save_changes(run, before)


def _obstacle(run: Run, epoch: int, engine: Engine) -> tuple[str, Trouble] | None:
    """Say why a run that has work to do must not even be read, if so."""
    deaths = epoch - run.settled_epoch - 1
    is_other_build = _was_stored(run) and run.fingerprint not in {"", engine.build}
    if not (deaths >= MAX_DEATHS or is_other_build) or not recovery.has_work(run.pk):
        return None
    return (OTHER_BUILD, Trouble.BUILD) if is_other_build else (DIED.format(deaths=deaths), Trouble.DEATHS)


def _lost_step(run: Run, state: ThreadState) -> str:
    """Say so if this build makes another step of the same checkpoint: a renamed node vanishes from it."""
    place = place_of(run.state)
    if not state.exists or place.checkpoint_id != state.checkpoint_id or place.tasks is None:
        return ""
    then, now = place.tasks, sorted(state.tasks)
    if then == now:
        return ""
    return LOST_STEP.format(then=", ".join(then) or "nothing", now=", ".join(now) or "nothing")


def _was_stored(run: Run) -> bool:
    return bool(place_of(run.state).checkpoint_id)


def _begin(run: Run, epoch: int, pauses: Sequence[Pause], state: ThreadState) -> Delivery | None:
    found = None if run.status in AT_REST else _next(run, pauses, state)
    if found is None:
        run.settled_epoch = epoch
        return None
    delivery, chosen = found
    again = {PauseStatus.DELIVERING, PauseStatus.FAILED} if run.retry_granted else {PauseStatus.DELIVERING}
    _set_to_work(run, delivery, state)
    for pause in pauses:
        if pause == chosen or pause.status in again:
            _begin_delivery(pause, epoch)
    return delivery


def _next(run: Run, pauses: Sequence[Pause], state: ThreadState) -> tuple[Delivery, Pause | None] | None:
    if not state.exists:
        return (GiveInput(decode(run.pending_input)), None) if run.pending_input else None
    if run.closes_reviews:
        return CloseReviews(), None
    if is_held_by_breakpoint(pauses):
        return None
    for pause in sorted(pauses, key=_turn_of):
        if _is_deliverable(run, pause):
            return _delivery(pause, state), pause
    if run.pending_input and state.is_finished:
        return GiveInput(decode(run.pending_input)), None
    if _is_spent(state, pauses):
        return AskAgain(), None
    is_held = bool(state.interrupts) or any(pause.kind == Pause.Kind.STATIC for pause in pauses)
    if state.tasks and (run.retry_granted or not is_held):
        return GoOn(), None
    return None


def _turn_of(pause: Pause) -> tuple[Any, ...]:
    """Deliver by the time of the answer; but whatever goes on passes a breakpoint, so that comes first."""
    return pause.kind != Pause.Kind.STATIC, pause.answered_at is None, pause.answered_at, pause.place


def _is_spent(state: ThreadState, pauses: Sequence[Pause]) -> bool:
    """Say whether the thread holds a question whose stored answer was refused for good: it must ask anew."""
    asked = {pause.interrupt_id for pause in pauses}
    return any(raised.was_answered and raised.id not in asked for raised in state.interrupts)


def _is_deliverable(run: Run, pause: Pause) -> bool:
    if pause.status == PauseStatus.FAILED:
        return run.retry_granted
    return pause.status in {PauseStatus.ANSWERED, PauseStatus.DELIVERING, PauseStatus.IN_DOUBT}


def _delivery(pause: Pause, state: ThreadState) -> Delivery:
    """An answer that the library has stored already must not be given again: it would be ignored."""
    raised = state.pending.get(pause.interrupt_id)
    if raised is None or raised.was_answered:
        return GoOn(pause.pk)
    return GiveAnswer(pause.pk, pause.interrupt_id, resume_value(pause))


def _set_to_work(run: Run, delivery: Delivery, state: ThreadState) -> None:
    was = run.status
    run.become(RunStatus.RUNNING)
    run.error, run.trouble, run.retry_granted = "", "", False
    run.started_at = run.started_at or run.moment
    if was == RunStatus.WAITING:
        get_desk().run_resumed(run)
    if isinstance(delivery, GiveInput):
        key = f"input:{state.checkpoint_id or 'first'}"
        step = RunStep(run=run, key=key, kind=RunStep.Kind.INPUT, data=run.pending_input)
        insert_new([step])


def _begin_delivery(pause: Pause, epoch: int) -> None:
    is_first = pause.status != PauseStatus.DELIVERING
    pause.become(PauseStatus.DELIVERING)
    pause.delivery_epoch, pause.error = epoch, ""
    pause.delivery_started_at = pause.delivery_started_at or pause.run.moment
    update(pause, "status", "delivery_epoch", "error", "delivery_started_at")
    if is_first:
        get_desk().delivery_started(pause)
