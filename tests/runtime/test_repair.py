"""What the library has bricked is found and freed: asked anew, gone on with, or stopped with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.timezone import now
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from agents_runtime import recovery, registry, runs
from agents_runtime.canonical import Json, decode
from agents_runtime.checkpointer import fenced_saver
from agents_runtime.fence import Fence
from agents_runtime.models import Run
from reviewer.models import ReviewTask
from tests.agents import effects
from tests.runtime.crashing import KILLED, advance_in_child
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    answer,
    attempts,
    call,
    fresh,
    give,
    last_words,
    pauses,
    pending,
    script,
    start,
)
from tests.runtime.storing import delete_thread

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
DROP = call("drop", path="/a")
RESPOND: Json = {"type": "respond", "message": "no"}  # what the library does not allow for ``drop``


@pytest.mark.parametrize("agent", ["t-batched", "t-deep", "t-async-batched"])
def test_a_batch_that_the_agent_refuses_is_asked_anew_whatever_the_agent(agent: str) -> None:
    paid = "apay" if agent == "t-async-batched" else "pay"
    run = start(agent, script([call("look", what="x")], [call(paid, to="a", amount=1)]))
    run = answer(pending(run), {"type": "no such decision"})
    assert run.status == "waiting", run.error
    again = pending(run)
    assert again.previous is not None
    assert again.previous.status == "refused"
    run = answer(again, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count(paid) == effects.count("look") == 1


def test_a_batch_that_the_agent_refuses_is_asked_anew_and_the_new_card_shows_why() -> None:
    run = start("t-batched", script([PAY, DROP]))
    old = pending(run)
    run = answer(old, APPROVE, RESPOND)
    assert run.status == "waiting", run.error
    old.refresh_from_db()
    assert old.status == "refused"
    again = pending(run)
    assert again.previous == old
    assert again.interrupt_id != old.interrupt_id
    assert effects.all_effects() == []
    for task in ReviewTask.objects.filter(pause=again):
        assert task.is_open
        assert task.previous is not None
        assert task.previous.pause == old
        (told,) = decode(task.refusal)
        assert "respond" in told["message"]
    run = answer(again, APPROVE, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay") == effects.count("drop") == 1


def test_a_batch_may_be_refused_again_and_again() -> None:
    run = start("t-batched", script([DROP]))
    for _ in range(3):
        run = answer(pending(run), RESPOND)
        assert run.status == "waiting", run.error
    run = answer(pending(run), REJECT)
    assert run.status == "finished", run.error
    assert [pause.status for pause in pauses(run)] == ["refused"] * 3 + ["delivered"]
    assert effects.count("drop_began") == 0
    assert attempts(run) == []


@pytest.mark.usefixtures("workers_that_die")
@pytest.mark.parametrize(
    ("place", "word", "side"),
    [
        ("agents_runtime.engine:Engine:step", "GiveAnswer", "after"),
        ("agents_runtime.engine:Engine:step", "AskAgain", "before"),
        ("agents_runtime.engine:Engine:_call", "None", "before"),
        ("agents_runtime.engine:Engine:step", "AskAgain", "after"),
    ],
)
def test_a_worker_that_dies_on_the_way_to_asking_anew_loses_nothing(place: str, word: str, side: str) -> None:
    run = start("t-batched", script([DROP]))
    give(pending(run), RESPOND)
    assert advance_in_child(run, place, word, side) == KILLED
    run = advance(run)
    assert run.status == "waiting", run.error
    again = pending(run)
    assert again.previous is not None
    run = answer(again, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("drop") == 1


def test_a_refused_batch_beside_another_task_stops_the_run_with_the_reason() -> None:
    run = start("t-beside", script([PAY]))
    batch = next(pause for pause in pauses(run) if pause.kind == "batched")
    question = next(pause for pause in pauses(run) if pause.kind == "question")
    run = answer(batch, RESPOND)
    run = answer(question, "yes") if run.status == "waiting" else run
    assert run.status == "failed"
    assert run.error
    assert effects.count("pay_began") == 0
    runs.cancel(run.pk)
    assert {pause.status for pause in pauses(run)} <= {"withdrawn", "delivered", "refused"}


def behind_the_back(run: Run) -> Any:
    """Return the run's graph as somebody would use it who goes round the product."""
    return registry.load_graph(run.agent).copy({"checkpointer": fenced_saver(Fence(run.pk, run.epoch), [])})


def config_of(run: Run) -> RunnableConfig:
    """Return the config that names the run's thread."""
    return {"configurable": {"thread_id": run.thread_id}}


def test_siblings_that_two_workers_stranded_are_found_by_the_sweep_and_go_on() -> None:
    run = start("t-crowd", {"ask": "2"})
    first, second = pauses(run)
    strand(run, {first.interrupt_id: "a", second.interrupt_id: "b"})
    state = behind_the_back(run).get_state(config_of(run))
    assert (state.next, state.interrupts) == ((), ())
    assert state.tasks  # nothing seems left, and yet it is not finished
    run = advance(run)  # as the sweep would have it done once somebody answers
    assert run.status == "finished", run.error
    assert {pause.status for pause in pauses(run)} == {"superseded"}
    assert sorted(decode(run.output)["answers"]) == ["a", "b"]


def strand(run: Run, answers: dict[str, str]) -> None:
    """Answer each interrupt with a reading of the thread from before the others' answers."""
    writes: list[tuple[Any, ...]] = []
    for interrupt_id, value in answers.items():
        graph = behind_the_back(run)
        saver = graph.checkpointer
        put = saver.put_writes
        saver.put_writes = lambda *args, **kwargs: writes.append((args, kwargs))
        graph.invoke(Command(resume={interrupt_id: value}), config_of(run))
        saver.put_writes = put
    saver = behind_the_back(run).checkpointer
    for args, kwargs in writes:
        saver.put_writes(*args, **kwargs)


def test_a_run_that_waits_and_asks_nobody_is_found_and_asks_again() -> None:
    run = start("t-per-call", script([PAY]))
    pause = pending(run)
    pause.status, pause.closed_at = "superseded", now()
    pause.save()
    Run.objects.filter(pk=run.pk).update(updated_at=now() - recovery.QUIET * 2, nudged_at=None)
    assert recovery.sweep_waiting() == 1
    assert recovery.sweep_waiting() == 0  # it was nudged a moment ago
    run = advance(run)
    assert run.status == "waiting"
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid 1 to a"
    assert fresh(run).trouble == ""


@pytest.mark.parametrize(
    ("trouble", "agent"), [("tool", "t-per-call"), ("step", "t-failing"), ("checkpoint", "t-per-call")]
)
def test_a_run_that_stops_says_of_which_kind_its_trouble_is(trouble: str, agent: str) -> None:
    run = start(agent, script([PAY]) if agent == "t-per-call" else {"ask": ""})
    if trouble == "checkpoint":
        delete_thread(run)
    effects.flag("fail_pay").touch()
    effects.flag("fail_node").touch()
    run = answer(pending(run), APPROVE)
    assert (run.status, run.trouble) == ("failed", trouble)
    if trouble != "checkpoint":
        effects.flag("fail_pay").unlink()
        effects.flag("fail_node").unlink()
        runs.retry(run.pk)
        run = advance(run)
        assert (run.status, run.trouble) == ("finished", "")
