"""A tool whose worker died may have taken effect: the run says so, and a person says what happened."""

from __future__ import annotations

import pytest

from agents_runtime import runs
from agents_runtime.canonical import Json
from agents_runtime.errors import InvalidInput, WrongState
from agents_runtime.models import Pause, Run
from agents_runtime.thread_state import ThreadState
from tests.agents import effects
from tests.runtime.crashing import KILLED, advance_in_child
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    answer,
    attempts,
    call,
    edit,
    give,
    last_words,
    pauses,
    pending,
    script,
    start,
)

pytestmark = pytest.mark.usefixtures("runtime", "workers_that_die")
PAY = call("pay", to="a", amount=1)
STORING = ("agents_runtime.checkpointer:FencedSaver:put_writes", "ToolMessage")
PUTTING = ("agents_runtime.checkpointer:FencedSaver:put", "'channel_values'")


def doubtful(agent: str = "t-per-call", *calls: Json, tool: str = "pay", flag: str = "exit_pay") -> Run:
    """Return a run in doubt about one call of ``tool``."""
    effects.flag(flag).touch()
    run = start(agent, script(list(calls or [PAY])))
    run = answer(pauses(run, tool=tool)[0], APPROVE)
    effects.flag(flag).unlink(missing_ok=True)
    assert run.status == "in_doubt", run.error
    return run


def test_a_killed_tool_is_in_doubt_and_never_run_again_by_itself() -> None:
    run = start("t-per-call", script([PAY]))
    give(pending(run), APPROVE)
    effects.flag("die_after_pay").touch()
    assert advance_in_child(run) == KILLED
    assert effects.count("pay") == 1
    for _ in range(2):
        run = advance(run)
        assert run.status == "in_doubt"
    assert effects.count("pay") == effects.count("pay_began") == 1
    (pause,) = pauses(run)
    assert pause.status == "in_doubt"
    (attempt,) = attempts(run)
    assert attempt.in_doubt_since is not None
    runs.settle(run.pk, outcome="happened", result="paid, I checked", execution_id=attempt.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid, I checked"
    assert effects.count("pay") == 1
    assert attempts(run)[0].status == "asserted"


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_what_a_person_asserts_reaches_the_model_without_a_run(agent: str) -> None:
    run = doubtful(agent)
    runs.settle(run.pk, outcome="happened", result={"receipt": 7})
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == 'done: {"receipt": 7}'
    assert effects.count("pay") == 0


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_running_it_again_is_one_more_attempt(agent: str) -> None:
    run = doubtful(agent)
    runs.settle(run.pk, outcome="run_again")
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert [(one.status, one.grant) for one in attempts(run)] == [
        ("abandoned", "decision"),
        ("succeeded", "run_again"),
    ]
    assert pauses(run)[0].status == "delivered"


def test_stopping_cancels_the_run() -> None:
    run = doubtful()
    run = runs.settle(run.pk, outcome="stop")
    run = advance(run)
    assert run.status == "cancelled"
    assert attempts(run)[0].status == "abandoned"
    assert effects.count("pay") == 0


def test_doubt_is_settled_for_the_attempt_that_the_person_saw() -> None:
    run = doubtful()
    (attempt,) = attempts(run)
    with pytest.raises(WrongState):
        runs.settle(run.pk, outcome="happened", execution_id=attempt.pk + 1)
    with pytest.raises(InvalidInput):
        runs.settle(run.pk, outcome="perhaps")
    runs.settle(run.pk, outcome="happened", result="ok", execution_id=attempt.pk)
    with pytest.raises(WrongState):
        runs.settle(run.pk, outcome="run_again", execution_id=attempt.pk)


def test_doubt_leaves_the_siblings_open() -> None:
    run = doubtful("t-per-call", PAY, call("drop", path="/a"))
    assert pending(run, "drop")
    answer(pending(run, "drop"), REJECT)
    runs.settle(run.pk, outcome="happened", result="paid")
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == effects.count("drop") == 0


def test_doubt_in_a_subagent_is_settled_alike() -> None:
    inner = script([PAY, call("drop", path="/b")])["messages"][0]["content"]
    run = doubtful("t-boss", call("delegate", task=inner))
    runs.settle(run.pk, outcome="happened", result="paid in the subagent")
    run = advance(run)
    assert run.status == "waiting", run.error
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    assert "paid in the subagent" in last_words(run)
    assert effects.count("pay") == 0
    assert effects.count("drop") == 1


def test_doubt_on_a_loop_is_settled_alike() -> None:
    run = start("t-async", script([call("apay", to="a", amount=1)]))
    give(pending(run), APPROVE)
    effects.flag("die_apay").touch()
    assert advance_in_child(run) == KILLED
    run = advance(run)
    assert run.status == "in_doubt"
    runs.settle(run.pk, outcome="happened", result="paid on the loop")
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid on the loop"
    assert effects.count("apay") == 0


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_a_result_that_was_recorded_but_not_stored_is_given_again_without_a_run(agent: str) -> None:
    run = start(agent, script([PAY, call("drop", path="/a")]))
    for pause in pauses(run):
        give(pause, *[APPROVE] * len(pause.call_list))
    assert advance_in_child(run, *STORING, "before") == KILLED
    run = advance(run)
    for attempt in attempts(run):  # the batch's other tool may have been running when the process died
        if attempt.in_doubt_since:
            result = {"pay": "paid 1 to a", "drop": "dropped /a"}[attempt.tool]
            runs.settle(run.pk, outcome="happened", result=result, execution_id=attempt.pk)
            run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid 1 to a | dropped /a"
    assert effects.count("pay") == 1
    assert effects.count("drop") <= 1


def test_an_edited_call_given_again_says_that_it_was_edited() -> None:
    run = start("t-per-call", script([PAY]))
    give(pending(run), edit("pay", to="b", amount=2))
    assert advance_in_child(run, *STORING, "before") == KILLED
    run = advance(run)
    assert run.status == "finished", run.error
    assert "human reviewer replaced" in last_words(run)
    assert effects.count("pay", to="b", amount=2) == effects.count("pay") == 1


@pytest.mark.parametrize(
    "point",
    [
        ("agents_runtime.engine:Engine:step", "GiveInput", "before"),
        ("agents_runtime.checkpointer:FencedSaver:put", "'channel_values'", "after"),
        ("agents_runtime.engine:Engine:step", "GiveInput", "after"),
    ],
)
def test_a_start_survives_the_death_of_its_worker(point: tuple[str, str, str]) -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    assert advance_in_child(run, *point) == KILLED
    run = advance(run)
    assert run.status == "waiting", run.error
    assert len(pauses(run)) == 1


@pytest.mark.parametrize(
    "point",
    [
        ("agents_runtime.engine:Engine:step", "GiveAnswer", "before"),
        (*STORING, "after"),
        (*PUTTING, "before"),
        (*PUTTING, "after"),
        ("agents_runtime.engine:Engine:step", "GiveAnswer", "after"),
    ],
)
@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_an_answer_takes_effect_once_whatever_dies(agent: str, point: tuple[str, str, str]) -> None:
    run = start(agent, script([PAY], [call("look", what="x")]))
    give(pending(run), APPROVE)
    assert advance_in_child(run, *point) == KILLED
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert Pause.objects.get(run=run).status == "delivered"


def test_a_step_whose_tasks_are_all_done_is_not_the_end_of_a_run() -> None:
    assert not ThreadState(exists=True, tasks=("tools",), next=()).is_finished
    assert not ThreadState(exists=True, tasks=(), next=("model",)).is_finished
    assert ThreadState(exists=True).is_finished
    assert not ThreadState(exists=False).is_finished
