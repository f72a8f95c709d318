"""What the gate locks, in which order, and that it goes by what stands there once it has the locks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import IntegrityError

from agents_runtime import ledger
from agents_runtime.errors import StaleEpoch
from agents_runtime.models import Pause, Run
from agents_runtime.states import ExecutionStatus
from agents_runtime.thread_state import GateStop
from tests.runtime.driving import APPROVE, at_once, attempts, call, give, pending, script, start
from tests.runtime.locking import is_free, outsider, wait_for_whoever_asks
from tests.runtime.test_gate import a_call

pytestmark = pytest.mark.usefixtures("runtime")
GIVE_UP = "UPDATE agents_runtime_toolexecution SET status = 'abandoned'"
HOLD = "SELECT FROM agents_runtime_{} WHERE id = %s FOR UPDATE"


@pytest.fixture
def delivering(runtime: None) -> Pause:
    """An approval of one call that is on its way to the agent."""
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    pause = pending(run)
    give(pause, APPROVE)
    Run.objects.filter(pk=run.pk).update(status="running")
    Pause.objects.filter(pk=pause.pk).update(status="delivering", delivery_epoch=run.epoch)
    return Pause.objects.get(pk=pause.pk)


@contextmanager
def meanwhile(job: Callable[[], object]) -> Iterator[list[object]]:
    """Do something in a thread of its own until the end; what it returns, or raises, is in the list then."""
    outcome: list[object] = []

    def note() -> None:
        try:
            outcome.append(job())
        except (StaleEpoch, IntegrityError) as error:
            outcome.append(error)

    working = threading.Thread(target=at_once, args=(note,))
    working.start()
    yield outcome
    working.join()


def opening(pause: Pause) -> Callable[[], object]:
    call = a_call(pause.run, epoch=pause.run.epoch)
    return lambda: ledger.open_call(call)


def closing(pause: Pause) -> Callable[[], object]:
    run, started = pause.run, opening(pause)()
    assert isinstance(started, ledger.Started)
    return lambda: ledger.close_call(started.execution, epoch=run.epoch, status=ExecutionStatus.SUCCEEDED)


@pytest.mark.parametrize(("held", "free"), [("run", "pause"), ("pause", None)])
def test_a_call_that_begins_locks_its_run_and_then_its_pause(
    delivering: Pause, held: str, free: str | None
) -> None:
    rows = {"run": delivering.run_id, "pause": delivering.pk}
    with outsider(HOLD.format(held), rows[held]) as other, meanwhile(opening(delivering)) as outcome:
        wait_for_whoever_asks()
        assert [name for name in rows if is_free(name, rows[name])] == ([free] if free else [])
        other.commit()
    assert [type(one) for one in outcome] == [ledger.Started]


@pytest.mark.parametrize(("held", "free"), [("run", "toolexecution"), ("toolexecution", None)])
def test_a_call_that_ends_locks_its_run_and_then_its_attempt(
    delivering: Pause, held: str, free: str | None
) -> None:
    close = closing(delivering)
    (attempt,) = attempts(delivering.run)
    rows = {"run": delivering.run_id, "toolexecution": attempt.pk}
    with outsider(HOLD.format(held), rows[held]) as other, meanwhile(close) as outcome:
        wait_for_whoever_asks()
        assert [name for name in rows if is_free(name, rows[name])] == ([free] if free else [])
        other.commit()
    assert outcome == [None]
    assert [one.status for one in attempts(delivering.run)] == ["succeeded"]


CHANGES = {
    "cancelled": "UPDATE agents_runtime_run SET status = 'cancelled', finished_at = now()",
    "stale": "UPDATE agents_runtime_run SET epoch = epoch + 1",
    "not being delivered": "UPDATE agents_runtime_pause SET status = 'failed'",
    "Nobody has decided": "UPDATE agents_runtime_pause SET answers = '[null]'",
    "other arguments": "UPDATE agents_runtime_pause SET calls = replace(calls, '\"a\"', '\"thief\"')",
}


@pytest.mark.parametrize(("told", "change"), CHANGES.items(), ids=list(CHANGES))
def test_a_call_that_waited_goes_by_what_stands_there_now(delivering: Pause, told: str, change: str) -> None:
    with outsider(change) as other, meanwhile(opening(delivering)) as outcome:
        wait_for_whoever_asks()
        other.commit()
    (stop,) = outcome
    assert isinstance(stop, GateStop)
    assert told in f"{stop.kind}: {stop.reason}"
    assert attempts(delivering.run) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE agents_runtime_run SET epoch = epoch + 1",
        "UPDATE agents_runtime_toolexecution SET in_doubt_since = now()",
    ],
)
def test_the_end_of_a_call_that_waited_goes_by_what_stands_there_now(delivering: Pause, change: str) -> None:
    close = closing(delivering)
    with outsider(change) as other, meanwhile(close) as outcome:
        wait_for_whoever_asks()
        other.commit()
    assert [type(one) for one in outcome] == [StaleEpoch]
    assert [one.status for one in attempts(delivering.run)] == ["started"]


def test_a_call_that_was_given_up_while_its_end_waited_does_not_end_again(delivering: Pause) -> None:
    close = closing(delivering)
    with outsider(GIVE_UP) as other, meanwhile(close) as outcome:
        wait_for_whoever_asks()
        other.commit()
    assert [type(one) for one in outcome] == [StaleEpoch]


def test_a_call_that_two_begin_at_once_begins_once(delivering: Pause) -> None:
    """One gate asks one by one; if two ever stood there, the ledger's key would let one through."""
    opens = opening(delivering)
    held = outsider(HOLD.format("run"), delivering.run_id)
    with held as other, meanwhile(opens) as one, meanwhile(opens) as another:
        wait_for_whoever_asks(2)
        other.commit()
    assert sorted(type(answer).__name__ for answer in one + another) in (
        ["IntegrityError", "Started"],
        ["GateStop", "Started"],
    )
    assert len(attempts(delivering.run)) == 1
