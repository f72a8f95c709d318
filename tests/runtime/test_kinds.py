"""Every kind of pause becomes requests, and its answers reach the agent."""

from __future__ import annotations

import json

import pytest

from agents_runtime import runs
from agents_runtime.canonical import Json, decode
from agents_runtime.models import Pause
from tests.agents import effects
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    answer,
    call,
    edit,
    give,
    pauses,
    pending,
    script,
    start,
)

pytestmark = pytest.mark.usefixtures("runtime")


def test_a_batch_is_one_pause_with_a_position_for_each_call() -> None:
    run = start(
        "t-batched",
        script([call("pay", to="a", amount=1), call("look", what="x"), call("drop", path="/b")]),
    )
    pause = pending(run)
    assert pause.kind == "batched"
    assert [told["tool"] for told in pause.call_list] == ["pay", "drop"]
    assert [told["tool_call_id"] for told in pause.call_list] == ["call_0_0", "call_0_2"]
    assert effects.all_effects() == []
    run = answer(pause, edit("pay", to="a", amount=3), REJECT)
    assert run.status == "finished", run.error
    assert effects.count("pay", amount=3) == effects.count("pay") == 1
    assert effects.count("drop") == 0
    assert fresh_pause(pause).status == "delivered"


def test_equal_calls_of_a_batch_are_told_apart() -> None:
    twin = call("drop", path="/same")
    run = start("t-batched", script([twin, twin, twin]))
    run = answer(pending(run), APPROVE, REJECT, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("drop") == 2


def test_an_approval_that_the_agent_did_not_act_on_says_so() -> None:
    """Calls of one turn that share an id: the library drops all of them when one is rejected."""
    twin = {**call("drop", path="/same"), "id": "the-same"}
    run = start("t-batched", script([twin, twin, twin]))
    pause = pending(run)
    run = answer(pause, APPROVE, REJECT, APPROVE)
    assert run.status == "finished", run.error
    closed = fresh_pause(pause)
    assert (closed.status, effects.count("drop")) == ("superseded", 0)
    assert "did not run every call" in closed.error


@pytest.mark.parametrize("name", ["nul \x00", "long " * 200, "\x00" * 200, ""])
def test_names_that_no_column_holds_are_asked_about_all_the_same(name: str) -> None:
    shapes: list[Json] = [
        {"type": "tool_approval", "name": name, "args": {name: name}, "tool_call_id": name},
        {"action_requests": [{"name": name, "args": {}}]},
        {"action_request": {"action": name, "args": {}}, "config": {"allow_ignore": True}},
    ]
    for shape in shapes:
        run = start("t-parrot", {"ask": json.dumps(shape)})
        assert run.status == "waiting", run.error
        run = answer(pending(run), REJECT)
        assert run.status == "finished", run.error


def test_a_typed_question_is_asked_with_its_schema() -> None:
    run = start("t-inspector", {"ask": "ok?"})
    pause = pending(run)
    assert pause.kind == "question"
    assert decode(pause.value) == {"question": "ok?"}
    assert decode(pause.response_schema)["properties"]["score"]["maximum"] == 10
    run = answer(pause, {"verdict": "pass", "score": 7})
    assert decode(run.output)["answers"] == [{"verdict": "pass", "score": 7}]


def test_two_questions_in_one_node_are_two_pauses_and_any_value_is_shown() -> None:
    run = start("t-asker", {"ask": "x"})
    first = pending(run)
    shown = decode(first.value)
    assert shown["price"] == {"~type": "Decimal", "value": "1.50"}
    assert shown["nan"] == {"~type": "float", "value": "nan"}
    assert decode(first.response_schema) is True
    run = answer(first, {"any": ["thing", None]})
    second = pending(run)
    assert second.interrupt_id != first.interrupt_id
    assert decode(second.value) == "and then?"
    run = answer(second, False)
    assert decode(run.output)["answers"] == [{"any": ["thing", None]}, False]


@pytest.mark.parametrize("value", [None, {}, "", [], 0, False, "0" * 32, {"0" * 32: 1}])
def test_an_answer_reaches_the_agent_as_it_was_given(value: Json) -> None:
    run = start("t-asker", {"ask": "x"})
    run = answer(pending(run), value)
    run = answer(pending(run), "end")
    assert decode(run.output)["answers"] == [value, "end"]


def test_a_loop_that_asks_again_opens_a_new_pause_each_time() -> None:
    run = start("t-stubborn", {"ask": "x"})
    run = answer(pending(run), "many")
    assert decode(pending(run).value).startswith("'many' is no number")
    run = answer(pending(run), "lots")
    run = answer(pending(run), 12)
    assert run.status == "finished"
    assert decode(run.output)["answers"] == [12]
    assert len({pause.interrupt_id for pause in pauses(run)}) == 3


def test_a_breakpoint_is_a_pause_to_go_on() -> None:
    run = start("t-breakpoint", {"ask": "x"})
    pause = pending(run)
    assert pause.kind == "static"
    assert pause.interrupt_id.startswith("static:")
    assert effects.count("act") == 0
    run = answer(pause, "continue")
    assert run.status == "finished"
    assert effects.count("act") == 1


def test_a_breakpoint_after_a_node_is_a_pause_and_a_failure_behind_it_is_no_pause() -> None:
    run = start("t-breakpoint-after", {"ask": "x"})
    pause = pending(run)
    effects.flag("fail_node").touch()
    run = answer(pause, "continue")
    assert run.status == "failed"
    assert effects.count("act") == 1
    assert [one.status for one in pauses(run)] == ["delivered"]
    effects.flag("fail_node").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("act") == 2


def test_many_questions_side_by_side_each_get_their_own_answer() -> None:
    run = start("t-crowd", {"ask": "12"})
    asked = pauses(run)
    assert [decode(pause.value)["number"] for pause in asked] == [str(number) for number in range(12)]
    for pause in reversed(asked):
        give(pause, int(decode(pause.value)["number"]))
    run = advance(run)
    assert run.status == "finished", run.error
    assert decode(run.output)["answers"] == list(range(12))


def test_a_subagents_calls_are_asked_about_one_by_one() -> None:
    inner = script([call("pay", to="a", amount=1), call("drop", path="/b")])["messages"][0]["content"]
    run = start("t-boss", script([call("delegate", task=inner), call("look", what="x")]))
    assert run.status == "waiting"
    pay, drop = sorted(pauses(run), key=lambda pause: pause.tool, reverse=True)
    run = answer(drop, REJECT)
    assert run.status == "waiting"
    assert effects.count("pay") == effects.count("drop") == 0
    assert fresh_pause(pay).status == "pending"
    run = answer(pay, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert effects.count("look") == 1


def test_a_tool_that_asks_again_is_suspended_and_goes_on() -> None:
    run = start("t-per-call", script([call("haggle", to="a", amount=9)]))
    run = answer(pending(run), APPROVE)
    assert run.status == "waiting"
    question = pending(run)
    assert question.kind == "question"
    (attempt,) = run.executions.all()
    assert attempt.status == "suspended"
    run = answer(question, "yes")
    assert run.status == "finished", run.error
    assert effects.count("haggle") == 1
    (attempt,) = run.executions.all()
    assert attempt.status == "succeeded"


def test_a_condition_that_says_no_lets_the_call_through_and_is_recorded() -> None:
    run = start("t-conditional", script([call("pay", to="a", amount=5), call("pay", to="b", amount=500)]))
    assert effects.count("pay") == 1
    (attempt,) = run.executions.all()
    assert (attempt.grant, attempt.pause_id, attempt.status) == ("condition", None, "succeeded")
    run = answer(pending(run), REJECT)
    assert run.status == "finished"
    assert effects.count("pay") == 1


def test_async_agents_run_on_a_loop() -> None:
    run = start("t-async", script([call("apay", to="a", amount=1), call("apay", to="b", amount=2)]))
    assert run.status == "waiting"
    for pause in pauses(run):
        give(pause, APPROVE)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("apay") == 2
    assert [attempt.status for attempt in run.executions.all()] == ["succeeded", "succeeded"]


def fresh_pause(pause: Pause) -> Pause:
    return Pause.objects.get(pk=pause.pk)
