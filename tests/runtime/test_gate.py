"""The gate: no gated tool runs without its decision on exactly these arguments, whatever else goes wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableConfig

from agents_runtime import ledger, registry, runs, thread_lock
from agents_runtime.checkpointer import fenced_saver
from agents_runtime.engine import Engine
from agents_runtime.errors import StaleEpoch
from agents_runtime.fence import Fence
from agents_runtime.gate import interrupt_ids
from agents_runtime.models import Pause, Run
from agents_runtime.records import read_run
from agents_runtime.states import ExecutionStatus
from agents_runtime.steps import turn
from agents_runtime.thread_state import GateStop, GiveAnswer, ThreadState
from tests.agents import effects
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    answer,
    attempts,
    call,
    edit,
    fresh,
    give,
    pauses,
    pending,
    script,
    start,
)

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)


def test_a_rejected_call_does_not_run_when_its_condition_flips() -> None:
    run = start("t-forgetful", script([PAY]))
    effects.flag("gate_removed").touch()
    run = answer(pending(run), REJECT)
    assert effects.count("pay_began") == 0
    assert run.status == "failed"
    assert "does not allow it" in run.error
    assert attempts(run) == []


def test_an_undecided_call_of_a_batch_does_not_run_when_its_condition_flips() -> None:
    run = start("t-beside", script([PAY]))
    question = next(pause for pause in pauses(run) if pause.kind == "question")
    effects.flag("gate_removed").touch()
    run = answer(question, "no")
    assert effects.count("pay_began") == 0
    assert run.status == "waiting"
    assert "Nobody has decided" in run.error
    runs.retry(run.pk)
    assert advance(run).status == "waiting"
    answer(pending(run), REJECT)
    assert effects.count("pay_began") == 0
    assert attempts(run) == []


def test_a_batch_that_is_asked_beside_a_question_runs_when_it_is_approved() -> None:
    run = start("t-beside", script([PAY, call("pay", to="b", amount=2)], [PAY]))
    batch, question = sorted(pauses(run), key=lambda pause: pause.kind)
    run = answer(question, "no")
    run = answer(batch, APPROVE, REJECT)
    assert effects.count("pay") == 1
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay", to="a") == 2


def test_an_undecided_call_does_not_run_when_its_gate_vanishes() -> None:
    run = start("t-forgetful", script([PAY, call("pay", to="b", amount=2)]))
    first, second = pauses(run)
    effects.flag("gate_removed").touch()
    run = answer(first, APPROVE)
    assert effects.count("pay", to="b") == 0
    assert run.status == "waiting"
    assert "Nobody has decided" in run.error
    assert Pause.objects.get(pk=second.pk).status == "pending"
    effects.flag("gate_removed").unlink()
    run = answer(second, REJECT)
    assert run.status == "finished", run.error
    assert effects.count("pay", to="a") == 1
    assert effects.count("pay", to="b") == 0


def test_a_gated_tool_that_nobody_was_asked_about_does_not_run() -> None:
    run = start("t-unguarded", script([PAY]))
    assert effects.count("pay_began") == 0
    assert run.status == "failed"
    assert "nobody was asked" in run.error


def test_an_approval_forged_in_the_checkpoint_does_not_run_the_tool() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    forge_answer(run, "pay", APPROVE)
    run = answer(pending(run, "drop"), REJECT)
    assert effects.count("pay_began") == 0
    assert run.status == "waiting"
    assert "Nobody has decided" in run.error


def test_an_approval_forged_over_a_rejection_does_not_run_the_tool() -> None:
    run = start("t-per-call", script([PAY]))
    forge_answer(run, "pay", APPROVE)
    run = answer(pending(run), REJECT)
    assert effects.count("pay_began") == 0
    assert run.status == "failed"


def test_other_arguments_than_decided_do_not_run() -> None:
    run = start("t-per-call", script([PAY]))
    forge_answer(run, "pay", edit("pay", to="thief", amount=1_000_000))
    run = answer(pending(run), APPROVE)
    assert effects.count("pay_began") == 0
    assert "other arguments" in run.error


def test_a_worker_with_an_old_epoch_starts_no_tool_and_settles_nothing() -> None:
    run = start("t-per-call", script([PAY]))
    pause = pending(run)
    give(pause, APPROVE)
    state = ThreadState(exists=True, checkpoint_id="other")
    Run.objects.filter(pk=run.pk).update(status="running")
    Pause.objects.filter(pk=pause.pk).update(status="delivering", delivery_epoch=run.epoch)
    stop = ledger.open_call(a_call(run, epoch=run.epoch - 1))
    assert isinstance(stop, GateStop)
    assert stop.kind == "stale"
    with pytest.raises(StaleEpoch):
        turn(read_run(run.pk), run.epoch - 1, state)
    started = ledger.open_call(a_call(run, epoch=run.epoch))
    assert isinstance(started, ledger.Started)
    Run.objects.filter(pk=run.pk).update(epoch=run.epoch + 1)
    with pytest.raises(StaleEpoch):
        ledger.close_call(started.execution, epoch=run.epoch, status=ExecutionStatus.SUCCEEDED)


def test_a_worker_with_an_old_epoch_writes_no_checkpoint() -> None:
    run = start("t-per-call", script([PAY]))
    saver = fenced_saver(Fence(run.pk, run.epoch - 1), [])
    config = saver.get_tuple({"configurable": {"thread_id": run.thread_id}}).config
    with pytest.raises(StaleEpoch):
        saver.put_writes(config, [("messages", [])], "00000000-0000-0000-0000-000000000000")


def test_the_library_refuses_an_answer_to_what_is_not_pending_too() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    spent = pending(run, "pay")
    run = answer(spent, REJECT)
    with thread_lock.hold(run.pk) as epoch:
        assert epoch is not None
        engine = Engine(Run.objects.select_related("agent").get(pk=run.pk), epoch)
        for interrupt_id in (spent.interrupt_id, "0" * 32):
            outcome = engine.step(GiveAnswer(spent.pk, interrupt_id, APPROVE))
            assert "UnknownInterruptError" in outcome.error
    assert effects.count("pay_began") == 0


def test_a_call_starts_once_for_each_decision() -> None:
    run = start("t-per-call", script([PAY]))
    pause = pending(run)
    give(pause, APPROVE)
    Run.objects.filter(pk=run.pk).update(status="running")
    Pause.objects.filter(pk=pause.pk).update(status="delivering", delivery_epoch=run.epoch)
    assert isinstance(ledger.open_call(a_call(run, epoch=run.epoch)), ledger.Started)
    second = ledger.open_call(a_call(run, epoch=run.epoch))
    assert isinstance(second, GateStop)
    assert second.kind == "in_doubt"


@pytest.mark.parametrize("delivery", [{"status": "answered"}, {"status": "delivering", "delivery_epoch": 0}])
def test_an_approval_that_this_worker_is_not_delivering_starts_nothing(delivery: dict[str, object]) -> None:
    run = start("t-per-call", script([PAY]))
    pause = pending(run)
    give(pause, APPROVE)
    Run.objects.filter(pk=run.pk).update(status="running")
    Pause.objects.filter(pk=pause.pk).update(**delivery)
    stop = ledger.open_call(a_call(run, epoch=run.epoch))
    assert isinstance(stop, GateStop)
    assert "not being delivered" in stop.reason
    assert attempts(run) == []


def test_calls_of_deeply_nested_agents_are_told_apart() -> None:
    run = start("t-conditional", script([call("pay", to="a", amount=500)]))
    Run.objects.filter(pk=run.pk).update(status="running")
    deep = "|".join(["tools:" + "0" * 36] * 9)
    nested = [
        replace(a_call(run, epoch=run.epoch), namespace=f"{deep}|tools:{end}", interrupt_ids=[])
        for end in ("one", "two", "two")
    ]
    first, second, again = (ledger.open_call(one) for one in nested)
    assert isinstance(first, ledger.Started)
    assert isinstance(second, ledger.Started)
    assert isinstance(again, GateStop)


def test_a_cancelled_run_starts_no_tool() -> None:
    run = start("t-per-call", script([PAY]))
    Run.objects.filter(pk=run.pk).update(status="cancelled", finished_at=run.created_at)
    stop = ledger.open_call(a_call(run, epoch=run.epoch))
    assert isinstance(stop, GateStop)
    assert stop.kind == "cancelled"


def test_an_undeclared_argument_that_the_model_made_up_is_no_other_call() -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1, urgent=True)]))
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay", to="a", amount=1) == 1


def forge_answer(run: Run, tool: str, forged: object) -> None:
    """Write an answer straight into the thread's checkpoint, behind the product's back."""
    graph = registry.load_graph(run.agent)
    saver = fenced_saver(Fence(run.pk, fresh(run).epoch), [])
    config: RunnableConfig = {"configurable": {"thread_id": run.thread_id}}
    state = graph.copy({"checkpointer": saver}).get_state(config)
    (task,) = (task for task in state.tasks for one in task.interrupts if one.value["name"] == tool)
    saver.put_writes(state.config, [("__resume__", [forged])], task.id)


def a_call(run: Run, *, epoch: int) -> ledger.Call:
    """Return the call of the run's one pause as the gate would see it."""
    pause = Pause.objects.get(run=run)
    (told,) = pause.call_list
    namespace = pause.namespace
    assert pause.interrupt_id in interrupt_ids(namespace)
    return ledger.Call(
        run_id=run.pk,
        epoch=epoch,
        tool=told["tool"],
        tool_call_id=told["tool_call_id"],
        namespace=namespace,
        arguments=told["arguments"],
        interrupt_ids=interrupt_ids(namespace),
    )
