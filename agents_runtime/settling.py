"""Settling: what a reading of the thread means for the run, its pauses and its tool attempts.

Attempts nobody knows the end of, pauses that closed, pauses that are new, and then the run's own state.
Called before the first step, after every step, and whatever the step raised. The caller has locked the run
in its epoch, and saves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.db.models.expressions import RawSQL

from agents_runtime import attempts
from agents_runtime.canonical import decode, encode
from agents_runtime.compiled import SOME_ID, Compiled
from agents_runtime.desk import OpenedPause, get_desk
from agents_runtime.fates import Fate, fate_of
from agents_runtime.messages import messages_of
from agents_runtime.models import Pause, Run, RunStep
from agents_runtime.payloads import Asked, read, read_breakpoint
from agents_runtime.records import as_name, open_pauses
from agents_runtime.states import PauseStatus, RunStatus, Trouble
from agents_runtime.thread_state import AskAgain, CloseReviews, Step, ThreadState
from agents_runtime.writing import insert, insert_new, update

MAX_STATE = 400_000
AT_REST = frozenset({RunStatus.FINISHED, RunStatus.FAILED, RunStatus.CANCELLED})
STUCK = "The agent came back from this step without having moved."
UNDERWAY = frozenset({PauseStatus.ANSWERED, PauseStatus.DELIVERING})
_met_before = Compiled(
    lambda run_id, interrupt_ids: Pause.objects.filter(
        run=run_id, interrupt_id__in=RawSQL("SELECT unnest(%s::text[])", [interrupt_ids])
    ).order_by("round"),
    SOME_ID,
    ["some interrupt"],
)


@dataclass(frozen=True)
class Place:
    """Where a thread stood when its run was last settled: at which checkpoint, and at which tasks of it."""

    checkpoint_id: str = ""
    tasks: list[str] | None = None


@dataclass(frozen=True)
class _Found:
    """An interrupt that has no open pause yet; ``value`` is canonical."""

    interrupt_id: str
    namespace: str
    value: str
    asked: Asked
    was_answered: bool = False


@dataclass
class _Settlement:
    """One settlement in progress."""

    run: Run
    state: ThreadState
    step: Step | None
    pauses: list[Pause]

    @property
    def error(self) -> str:
        """What went wrong in the step, in words; a stop that only holds a failed call back is nothing new."""
        if self.step is None:
            return ""
        refused = (stop.reason for stop in self.step.outcome.stops if stop.kind == "refused")
        is_stuck = self.step.is_last_try and bool(self.state.tasks) and not self.state.interrupts
        return self.step.outcome.error or next(refused, STUCK if is_stuck else "")

    def goes_on(self) -> bool:
        """Say whether the thread itself is brought on next, unless that was just tried and failed."""
        if self.step is not None and self.error and isinstance(self.step.delivery, (AskAgain, CloseReviews)):
            return False
        return self.run.closes_reviews or self.is_to_ask_again()

    def is_to_ask_again(self) -> bool:
        """Say whether the thread holds a question with an answer that its agent refused for good."""
        open_ids = {pause.interrupt_id for pause in self.pauses if pause.is_open}
        return any(raised.was_answered and raised.id not in open_ids for raised in self.state.interrupts)

    def statuses(self) -> set[str]:
        """The statuses of the pauses that are open still."""
        return {pause.status for pause in self.pauses if pause.is_open}


def settle(run: Run, pauses: list[Pause], state: ThreadState, step: Step | None = None) -> list[Pause]:
    """Bring the records into line with the thread; return the open pauses of a run that goes on.

    ``pauses`` are those that are open now, locked with their run.
    """
    if run.status == RunStatus.CANCELLED:
        attempts.give_up(run)
    if run.status in AT_REST:
        return []
    if not state.exists:
        _settle_without_thread(run, step)
        return []
    doubts = attempts.mark_doubts(run) if run.has_started else attempts.NO_DOUBTS
    settlement = _Settlement(run, state, step, open_pauses(run) if doubts.new else pauses)
    _note_state(settlement)
    _close_pauses(settlement)
    _open_pauses(settlement)
    _keep_error(settlement)
    _conclude(settlement, is_in_doubt=bool(doubts.all))
    if doubts.new:
        get_desk().run_in_doubt(run, doubts.new)
    return [pause for pause in settlement.pauses if pause.is_open]


@lru_cache(maxsize=8)
def place_of(state: str) -> Place:
    """Read a run's stored state; it may be long, and every turn asks several times."""
    stored = decode(state) if state else {}
    return Place(stored.get("checkpoint_id", ""), stored.get("tasks"))


def is_held_by_breakpoint(pauses: Sequence[Pause]) -> bool:
    """Say whether a breakpoint waits for a person: any other delivery would pass it, too."""
    return any(pause.kind == Pause.Kind.STATIC and pause.status == PauseStatus.PENDING for pause in pauses)


def fail(run: Run, reason: str, trouble: Trouble = Trouble.STEP) -> None:
    """End the run with a reason and its kind, unless it rests already; a person may retry it."""
    if run.status in AT_REST or run.status == RunStatus.IN_DOUBT:
        return
    run.become(RunStatus.FAILED)
    run.error, run.trouble = reason, trouble
    get_desk().run_failed(run)


def _settle_without_thread(run: Run, step: Step | None) -> None:
    """The step ended before anything was stored: nothing has happened, and the input is still to give."""
    if step is not None:
        fail(run, step.outcome.error or "The agent stored nothing and said nothing.")


def _note_state(settlement: _Settlement) -> None:
    """The input has reached the thread once the thread stands at another checkpoint than last settled."""
    run, state = settlement.run, settlement.state
    has_moved = state.checkpoint_id != place_of(run.state).checkpoint_id
    if run.closes_reviews:
        run.closes_reviews = not state.is_finished  # the thread moved because it was closed: input comes next
    elif has_moved:
        run.pending_input = ""
    if has_moved or settlement.step is not None:
        run.state = _shown(state)


def _shown(state: ThreadState) -> str:
    shown = {
        "values": state.plain_values,
        "next": list(state.next),
        "tasks": sorted(state.tasks),
        "interrupts": [raised.id for raised in state.interrupts],
        "checkpoint_id": state.checkpoint_id,
    }
    text = encode(shown)
    if len(text) <= MAX_STATE:
        return text
    return encode({**shown, "values": {"too_large_to_show": len(text)}})


def _close_pauses(settlement: _Settlement) -> None:
    for pause in settlement.pauses:
        fate = fate_of(pause, settlement.state, settlement.step)
        if fate is not None:
            _close(pause, fate)


def _close(pause: Pause, fate: Fate) -> None:
    if pause.status == fate.status:
        return
    pause.become(fate.status)
    pause.error = fate.error
    pause.problems = encode(fate.problems)
    if not pause.is_open:
        pause.closed_at = pause.run.moment
    update(pause, "status", "error", "problems", "closed_at")
    get_desk().pause_closed(pause)


def _open_pauses(settlement: _Settlement) -> None:
    if settlement.run.closes_reviews:
        return
    known = {pause.interrupt_id for pause in settlement.pauses if pause.is_open}
    agent, messages = settlement.run.agent, messages_of(settlement.state.values)
    found = [
        _Found(
            raised.id,
            raised.namespace,
            encode(raised.value),
            read(raised, agent, messages),
            raised.was_answered,
        )
        for raised in settlement.state.interrupts
        if raised.id not in known
    ]
    if settlement.state.is_at_breakpoint:
        found.append(
            _Found(settlement.state.breakpoint_id, "", "null", read_breakpoint(settlement.state.next))
        )
    if not found:
        return
    earlier = _earlier(settlement.run, [one.interrupt_id for one in found])
    opened = [
        _open(
            settlement.run, one, earlier.get(one.interrupt_id) or _refused(settlement.run, one), place=place
        )
        for place, one in enumerate(found)
        if not _is_known(one, earlier.get(one.interrupt_id))
    ]
    if opened:
        settlement.pauses.extend(item.pause for item in opened)
        get_desk().run_paused(settlement.run, sorted(opened, key=lambda item: item.pause.place))


def _is_known(found: _Found, earlier: Pause | None) -> bool:
    """A breakpoint is asked once; a question with a stored answer that was refused is asked anew first."""
    if earlier is None:
        return False
    return found.asked.kind == Pause.Kind.STATIC or (
        found.was_answered and earlier.status == PauseStatus.REFUSED
    )


def _refused(run: Run, found: _Found) -> Pause | None:
    """Return the pause that this batch asks anew, under a new id: its answers were refused for good."""
    if found.asked.kind != Pause.Kind.BATCHED:
        return None
    refused = Pause.objects.filter(
        run=run, kind=found.asked.kind, status=PauseStatus.REFUSED, calls=encode(found.asked.calls)
    )
    return refused.filter(next__isnull=True).order_by("-closed_at").first()


def _earlier(run: Run, interrupt_ids: Sequence[str]) -> dict[str, Pause]:
    """Return the latest pause of each interrupt that was met before."""
    if not run.has_pauses:
        return {}
    return {pause.interrupt_id: pause for pause in _met_before.rows(run.pk, interrupt_ids)}


def _open(run: Run, found: _Found, last: Pause | None, *, place: int) -> OpenedPause:
    asked = found.asked
    if last is not None and last.status == PauseStatus.REFUSED:
        asked = asked.after_refusal(last.answer_list, attempts.problems_of(last))
    first = asked.requests[0]
    pause = Pause(
        run=run,
        namespace=found.namespace,
        interrupt_id=found.interrupt_id,
        round=last.round + 1 if last else 1,
        previous=last,
        kind=asked.kind,
        tool=as_name(first.tool),
        tool_call_id=as_name(first.tool_call_id),
        place=place if asked.place is None else asked.place,
        value=found.value,
        calls=encode(asked.calls),
        response_schema=encode(first.response_schema),
    )
    return OpenedPause(insert(pause), asked.requests)


def _keep_error(settlement: _Settlement) -> None:
    if settlement.step is None or not settlement.error:
        return
    run = settlement.run
    step = RunStep(
        run=run,
        key=f"error:{run.epoch}:{settlement.step.number}",
        kind=RunStep.Kind.ERROR,
        text=settlement.error,
    )
    insert_new([step])


def _conclude(settlement: _Settlement, *, is_in_doubt: bool) -> None:
    """Give the run the state that its thread and its pauses leave it in."""
    run, statuses, error = settlement.run, settlement.statuses(), settlement.error
    is_held = is_held_by_breakpoint(settlement.pauses) and not run.closes_reviews
    if is_in_doubt:
        run.become(RunStatus.IN_DOUBT)
    elif settlement.state.is_finished and not run.pending_input:
        _finish(run, settlement.state)
    elif not is_held and (statuses & UNDERWAY or run.retry_granted or settlement.goes_on()):
        pass  # more to deliver at once
    elif PauseStatus.PENDING in statuses:
        run.become(RunStatus.WAITING)
        run.error = error or run.error
    elif error or PauseStatus.FAILED in statuses:
        fail(run, _failure(settlement.pauses) or error, _trouble(settlement.pauses))


def _failure(pauses: Sequence[Pause]) -> str:
    return next((pause.error for pause in pauses if pause.status == PauseStatus.FAILED), "")


def _trouble(pauses: Sequence[Pause]) -> Trouble:
    failed = [pause for pause in pauses if pause.status == PauseStatus.FAILED]
    if any(pause.kind == Pause.Kind.BATCHED and not pause.executions.exists() for pause in failed):
        return Trouble.BATCH
    return Trouble.TOOL if any(pause.call_list for pause in failed) else Trouble.STEP


def _finish(run: Run, state: ThreadState) -> None:
    if run.status == RunStatus.FINISHED:
        return
    run.become(RunStatus.FINISHED)
    run.output, run.error, run.finished_at = encode(state.plain_values), "", run.moment
    run.trouble = ""
    get_desk().run_finished(run)
