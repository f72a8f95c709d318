"""What fails says so, is never asked about twice, and goes on only when a person allows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from pytest_django.fixtures import Settings

from agents_runtime import registry, runs, steps
from agents_runtime.canonical import Json, decode
from agents_runtime.checkpointer import fenced_saver
from agents_runtime.desk import OpenedPause, get_desk
from agents_runtime.errors import WrongState
from agents_runtime.fence import Fence
from agents_runtime.models import Run
from reviewer.intake import Desk
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
    last_words,
    pauses,
    pending,
    script,
    start,
)
from tests.runtime.storing import delete_thread

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_a_tool_that_raises_after_approval_waits_for_a_persons_retry(agent: str) -> None:
    effects.flag("fail_pay").touch()
    run = start(agent, script([PAY]))
    pause = pending(run)
    run = answer(pause, APPROVE)
    assert run.status == "failed"
    assert "pay does not work today" in run.error
    pause.refresh_from_db()
    assert pause.status == "failed"
    with pytest.raises(WrongState):
        give(pause, REJECT)
    run = advance(run)
    assert run.status == "failed"
    assert effects.count("pay_began") == 1
    effects.flag("fail_pay").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert [(one.status, one.grant) for one in attempts(run)] == [
        ("raised", "decision"),
        ("succeeded", "retry"),
    ]
    pause.refresh_from_db()
    assert pause.status == "delivered"


def test_a_retry_is_one_retry() -> None:
    effects.flag("fail_pay").touch()
    run = answer(pending(start("t-per-call", script([PAY]))), APPROVE)
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "failed"
    run = advance(run)
    assert effects.count("pay_began") == 2
    assert len(attempts(run)) == 2


def test_a_failed_call_is_held_while_its_siblings_are_decided() -> None:
    effects.flag("fail_pay").touch()
    run = start("t-per-call", script([PAY, call("drop", path="/a"), call("drop", path="/b")]))
    run = answer(pending(run, "pay"), APPROVE)
    assert run.status == "waiting"
    first, second = pauses(run, tool="drop")
    run = answer(first, APPROVE)
    assert run.status == "waiting"
    run = answer(second, APPROVE)
    assert effects.count("pay_began") == 1
    assert effects.count("drop") == 2
    assert run.status == "failed"
    effects.flag("fail_pay").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert effects.count("drop") == 2


def test_a_failed_call_can_be_retried_while_a_sibling_waits() -> None:
    effects.flag("fail_pay").touch()
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    run = answer(pending(run, "pay"), APPROVE)
    effects.flag("fail_pay").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "waiting"
    assert effects.count("pay") == 1
    run = answer(pending(run), REJECT)
    assert run.status == "finished", run.error


def test_a_node_that_raises_after_its_answer_can_be_retried() -> None:
    effects.flag("fail_node").touch()
    run = answer(pending(start("t-failing", {"ask": "x"})), "yes")
    assert run.status == "failed"
    assert "the node does not work today" in run.error
    assert pauses(run)[0].status == "failed"
    effects.flag("fail_node").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished"
    assert decode(run.output)["answers"] == ["yes"]
    assert effects.count("node") == 1


def test_a_failed_run_can_be_cancelled() -> None:
    effects.flag("fail_pay").touch()
    run = answer(pending(start("t-per-call", script([PAY]))), APPROVE)
    run = runs.cancel(run.pk)
    assert run.status == "cancelled"
    assert pauses(run)[0].status == "withdrawn"
    with pytest.raises(WrongState):
        runs.retry(run.pk)


def test_an_answer_that_the_agent_refuses_opens_a_linked_pause() -> None:
    run = start("t-inspector", {"ask": "ok?"})
    first = pending(run)
    run = answer(first, {"verdict": "maybe", "score": 11})
    assert run.status == "waiting"
    first.refresh_from_db()
    assert first.status == "refused"
    assert {problem["pointer"] for problem in decode(first.problems)} == {"/verdict", "/score"}
    second = pending(run)
    assert (second.round, second.previous_id, second.interrupt_id) == (2, first.pk, first.interrupt_id)
    run = answer(second, {"verdict": "pass", "score": 10})
    assert run.status == "finished"


def test_a_refused_edit_leaves_its_siblings_alone() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    pay, drop = pauses(run)
    give(pay, edit("pay", to="a"))
    give(drop, APPROVE)
    run = advance(run)
    assert run.status == "waiting"
    assert effects.count("drop") == 1
    pay.refresh_from_db()
    assert pay.status == "refused"
    assert [problem["pointer"] for problem in decode(pay.problems)] == ["/edited_action/args/amount"]
    run = answer(pending(run), edit("pay", to="a", amount=4))
    assert run.status == "finished", run.error
    assert effects.count("pay", amount=4) == effects.count("pay") == 1
    assert effects.count("drop") == 1


def in_subagent(*calls: Json) -> Json:
    """Return the input by which the boss lets its subagent make these calls."""
    return script([call("delegate", task=script(list(calls))["messages"][0]["content"])])


def test_a_subagents_tool_that_raises_waits_for_a_persons_retry() -> None:
    effects.flag("fail_pay").touch()
    run = start("t-boss", in_subagent(PAY, call("drop", path="/a")))
    run = answer(pending(run, "pay"), APPROVE)
    assert run.status == "waiting"
    assert pauses(run, tool="pay")[0].status == "failed"
    run = answer(pending(run), APPROVE)
    assert effects.count("pay_began") == 1
    assert effects.count("drop") == 1
    assert run.status == "failed"
    effects.flag("fail_pay").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == effects.count("drop") == 1


def test_an_edit_that_a_subagent_refuses_opens_a_linked_pause() -> None:
    run = start("t-boss", in_subagent(PAY, call("drop", path="/a")))
    run = answer(pending(run, "pay"), edit("pay", to=5, amount="x"))
    assert run.status == "waiting"
    assert effects.all_effects() == []
    again = pending(run, "pay")
    assert again.round == 2
    answer(again, edit("pay", to="b", amount=2))
    run = answer(pending(run), REJECT)
    assert run.status == "finished", run.error
    assert effects.count("pay", to="b", amount=2) == effects.count("pay") == 1


def test_a_desk_that_takes_nothing_ends_the_run_and_not_the_worker(settings: Settings) -> None:
    settings.COUNTERSIGN_DESK = f"{__name__}.ClosedDesk"
    get_desk.cache_clear()
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    for _ in range(steps.MAX_DEATHS):
        with pytest.raises(LookupError):
            steps.advance(run.pk)
    run = advance(run)
    assert run.status == "failed"
    assert "the worker's log says more" in run.error
    settings.COUNTERSIGN_DESK = "reviewer.intake.Desk"
    get_desk.cache_clear()
    runs.retry(run.pk)
    assert advance(run).status == "waiting"


class ClosedDesk(Desk):
    """A desk that cannot open tasks."""

    def run_paused(self, run: Run, opened: Sequence[OpenedPause]) -> None:
        """Fail."""
        raise LookupError("no desk today")


def test_a_cancelled_run_withdraws_its_pauses_and_runs_nothing_more() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    first, second = pauses(run)
    give(first, APPROVE)
    runs.cancel(run.pk)
    run = advance(run)
    assert run.status == "cancelled"
    assert {pause.status for pause in pauses(run)} == {"withdrawn"}
    assert effects.count("pay_began") == 0
    with pytest.raises(WrongState):
        give(second, APPROVE)


def test_a_run_whose_checkpoints_are_gone_fails_and_starts_nothing_anew() -> None:
    run = start("t-per-call", script([PAY]))
    forget_thread(run)
    run = answer(pending(run), APPROVE)
    assert run.status == "failed"
    assert "gone" in run.error
    assert effects.all_effects() == []


def test_an_agent_that_cannot_be_loaded_fails_its_run_with_the_reason() -> None:
    run = start("t-per-call", script([PAY]))
    Run.objects.filter(pk=run.pk).update(status="waiting")
    spec = run.agent
    entry, spec.entry = spec.entry, "tests.agents.assistants:nothing"
    spec.save()
    run = answer(pending(run), APPROVE)
    assert run.status == "failed"
    assert "no longer listed" in run.error
    spec.entry = entry
    spec.save()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1


def test_a_run_of_another_build_stops_with_a_choice_before_it_is_even_read() -> None:
    run = start("t-per-call", script([PAY]))
    Run.objects.filter(pk=run.pk).update(fingerprint="0" * 64)
    assert advance(run).status == "waiting"  # nothing to do, so nothing is wrong yet
    run = answer(pending(run), APPROVE)
    assert run.status == "failed"
    assert "another build" in run.error
    assert effects.count("pay_began") == 0
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1


def test_new_input_is_refused_while_reviews_are_open_and_starts_the_next_turn_afterwards() -> None:
    run = start("t-per-call", script([PAY]))
    with pytest.raises(WrongState):
        runs.add_input(run.pk, script([call("look", what="y")]))
    run = answer(pending(run), APPROVE)
    runs.add_input(run.pk, script([call("look", what="y")]))
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid 1 to a | saw y"
    assert effects.count("look") == 1
    run = advance(run)
    assert effects.count("look") == 1


def test_pauses_that_the_agent_left_behind_are_superseded() -> None:
    run = start("t-per-call", script([PAY]))
    pause = pending(run)
    leave_behind(run)
    run = answer(pause, APPROVE)
    pause.refresh_from_db()
    assert pause.status == "superseded"
    assert effects.count("pay_began") == 0
    assert fresh(run).status == "finished"


def forget_thread(run: Run) -> None:
    """Delete the thread's checkpoints, behind the product's back."""
    delete_thread(run)


def leave_behind(run: Run) -> None:
    """Move the thread on without the answer, behind the product's back."""
    graph = registry.load_graph(run.agent).copy({"checkpointer": fenced_saver(Fence(run.pk, run.epoch), [])})
    config: RunnableConfig = {"configurable": {"thread_id": run.thread_id}}
    graph.update_state(config, {"messages": [AIMessage("never mind")]}, as_node="model")
    graph.invoke(None, config)
