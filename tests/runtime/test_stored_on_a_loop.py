"""Checkpoints of async agents: whoever stores one holds the run's row, and ends without the loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
from pytest_django.fixtures import Settings

from agents_runtime import checkpointer, ledger
from agents_runtime.checkpointer import fenced_saver, on_loop
from agents_runtime.fence import Fence
from agents_runtime.gate import in_database
from agents_runtime.models import Run
from agents_runtime.thread_state import GateStop
from tests.agents import effects
from tests.runtime.crashing import wait_until
from tests.runtime.driving import (
    APPROVE,
    advance,
    answer,
    at_once,
    attempts,
    call,
    fresh,
    give,
    pauses,
    pending,
    script,
    start,
)
from tests.runtime.locking import (
    DJANGO,
    no_checkpoint_is_stored,
    wait_for_whoever_stores,
    wait_until_waiting_for_a_saver,
)
from tests.runtime.storing import at, stored

pytestmark = pytest.mark.usefixtures("runtime")
CALLS, ROUNDS, AT_ONCE = 5, 4, 3
AGENTS = pytest.mark.parametrize("agent", ["t-async", "t-async-batched", "r-async"])


def test_a_gate_keeps_the_loop_until_a_checkpoint_is_stored_and_both_go_on() -> None:
    run = start("t-async", script([call("apay", to="a", amount=1)]))
    saver = fenced_saver(Fence(run.pk, run.epoch), set())
    writes = [("messages", "more than a socket holds" * 50_000) for _ in range(8)]

    async def store_and_ask() -> object:
        storing = asyncio.create_task(saver.aput_writes(at("elsewhere", "1"), writes, "task"))
        await asyncio.to_thread(wait_for_whoever_stores)
        answer = in_database(lambda: ledger.open_call(_call_of(run)))
        await storing
        return answer

    with no_checkpoint_is_stored():
        both = on_loop(store_and_ask())
        wait_until_waiting_for_a_saver(DJANGO)
    assert isinstance(both.result(timeout=60), GateStop)
    assert stored("elsewhere") == ["1"] * len(writes)


@pytest.mark.parametrize("agent", ["t-async", "r-async"])
def test_a_tool_that_ends_while_its_run_stores_a_checkpoint_goes_on_when_that_is_stored(agent: str) -> None:
    run = start(agent, script([call("apay", to=str(number), amount=number) for number in range(2)]))
    first, second = pauses(run)
    effects.flag("wait_apay_on_loop").touch()
    give(first, APPROVE)
    working = threading.Thread(target=at_once, args=(lambda: advance(run),))
    with no_checkpoint_is_stored():
        working.start()
        wait_for_whoever_stores()  # that the second call asks
        effects.flag("wait_apay_on_loop").unlink()
        wait_until_waiting_for_a_saver(DJANGO)
    working.join()
    answer(second, APPROVE)
    _expect_all_done(run, calls=2)


@AGENTS
def test_many_gates_beside_many_checkpoints_of_their_runs_never_wait_for_each_other_in_a_ring(
    agent: str,
) -> None:
    for _ in range(ROUNDS):
        decided = [_decided(agent, calls=CALLS) for _ in range(AT_ONCE)]
        at_once(*[lambda run=run: advance(run) for run in decided])
        for run in decided:
            _expect_all_done(run, calls=CALLS)


def test_a_step_that_keeps_the_loop_is_ended_and_its_thread_is_read(settings: Settings) -> None:
    run = start("t-async", script([call("apay", to="a", amount=1)]))
    loop = checkpointer._loop()
    settings.COUNTERSIGN_STEP_DEADLINE = 1
    effects.flag("wait_apay").touch()
    run = answer(pending(run), APPROVE)
    assert run.status == "in_doubt"
    effects.flag("wait_apay").unlink()
    wait_until(loop.is_closed)
    assert effects.count("apay") == 1
    assert fresh(run).status == "in_doubt"


def _decided(agent: str, *, calls: int) -> Run:
    """Return a run whose calls were all approved, and none of them run yet."""
    run = start(agent, script([call("apay", to=str(number), amount=number) for number in range(calls)]))
    for pause in pauses(run):
        give(pause, *[APPROVE for _ in pause.call_list])
    return run


def _call_of(run: Run) -> ledger.Call:
    """Return a call that nobody has decided on."""
    return ledger.Call(
        run_id=run.pk,
        epoch=run.epoch,
        tool="apay",
        tool_call_id="",
        namespace="",
        arguments={"to": "a", "amount": 1},
        interrupt_ids=[],
    )


def _expect_all_done(run: Run, *, calls: int) -> None:
    run = fresh(run)
    assert run.status == "finished", run.error
    assert [attempt.status for attempt in attempts(run)] == ["succeeded"] * calls
