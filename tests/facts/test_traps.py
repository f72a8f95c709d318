"""What others fell into with plain LangGraph sequences, trap by trap: here it comes out right.

Each test is named by its row. What the library itself does is kept apart, in ``tests/contracts``.
"""

from __future__ import annotations

from typing import Any

import pytest

from agents_runtime import runs, steps
from agents_runtime.canonical import Json, decode
from agents_runtime.errors import InvalidInput, WrongState
from reviewer import decisions
from reviewer.errors import Conflict, Invalid
from tests.agents import effects
from tests.doors import ApiClient
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    answer,
    at_once,
    attempts,
    call,
    edit,
    give,
    pauses,
    pending,
    script,
    start,
)
from tests.runtime.reviewing import Reviewer

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
DROPS = [call("drop", path=path) for path in ("/a", "/b", "/c")]


def test_trap_01_a_partial_answer_leaves_its_siblings_as_they_were_and_in_the_order_of_the_calls(
    ines: Reviewer,
) -> None:
    run = start("t-per-call", script(DROPS))
    before = {task.arguments["path"]: task.pause.interrupt_id for task in ines.cards(run)}
    run = ines.decide(ines.cards(run)[1], APPROVE)
    after = {task.arguments["path"]: task.pause.interrupt_id for task in ines.cards(run)}
    assert list(after) == ["/a", "/c"]
    assert after.items() <= before.items()
    assert effects.count("drop") == effects.count("drop", path="/b") == 1


def test_trap_02_a_bad_answer_to_a_batch_is_refused_before_it_can_brick_the_thread(ines: Reviewer) -> None:
    run = start("t-batched", script(DROPS[:2]))
    first, second = ines.cards(run)
    for bad in ({"type": "accept"}, {"type": "respond"}, {"type": "respond", "message": "x"}, {}, None):
        with pytest.raises(Invalid):
            decisions.decide(first.pk, by=ines.person, answer=bad, digest=first.digest)
    with pytest.raises(InvalidInput):
        give(pending(run), APPROVE)
    ines.decide(first, APPROVE)
    run = ines.decide(second, REJECT)
    assert run.status == "finished", run.error
    assert effects.count("drop") == 1


def test_trap_02_a_thread_that_is_bricked_all_the_same_is_asked_anew_under_a_new_id() -> None:
    run = start("t-batched", script(DROPS[:1]))
    bad: Json = {"type": "respond", "message": "past the check of the card"}
    run = answer(pending(run), bad)
    assert run.status == "waiting", run.error
    old, new = pauses(run)
    assert (old.status, new.status, new.previous_id) == ("refused", "pending", old.pk)
    assert new.interrupt_id != old.interrupt_id
    assert answer(new, APPROVE).status == "finished"
    assert effects.count("drop") == 1


def test_trap_03_an_invalid_answer_to_a_call_is_stored_nowhere_and_asked_for_again() -> None:
    run = start("t-per-call", script([PAY]))
    run = answer(pending(run), edit("pay", to="a", amount="much"))
    assert run.status == "waiting"
    assert [pause.status for pause in pauses(run)] == ["refused", "pending"]
    assert effects.all_effects() == []
    assert answer(pending(run), APPROVE).status == "finished"


def test_trap_04_a_valid_and_an_invalid_answer_together_are_delivered_one_at_a_time() -> None:
    run = start("t-per-call", script([PAY, *DROPS[:1]]))
    give(pending(run, "pay"), edit("pay", to="a", amount="much"))
    give(pending(run, "drop"), APPROVE)
    run = advance(run)
    assert effects.count("drop") == 1
    assert [(pause.tool, pause.status) for pause in pauses(run)] == [
        ("pay", "refused"),
        ("drop", "delivered"),
        ("pay", "pending"),
    ]


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_trap_05_the_same_answer_twice_at_once_runs_the_tool_once(agent: str) -> None:
    run = start(agent, script([PAY]))
    give(pending(run), APPROVE)
    at_once(*[lambda: steps.advance(run.pk)] * 2)
    assert advance(run).status == "finished"
    assert effects.count("pay_began") == effects.count("pay") == 1


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_trap_06_an_approved_call_that_failed_says_so_and_takes_no_rejection(
    ines: Reviewer, agent: str
) -> None:
    effects.flag("fail_pay").touch()
    run = start(agent, script([PAY]))
    task = ines.card(run)
    ines.decide(task, APPROVE)
    assert "Approved, but the tool failed" in ines.page(task)
    with pytest.raises(Conflict):
        decisions.decide(task.pk, by=ines.person, answer=REJECT, digest=task.digest)
    assert advance(run).status == "failed"
    assert effects.count("pay_began") == 1


def test_trap_07_an_unknown_or_spent_answer_is_told_so_at_every_door(ines: Reviewer, api_client: Any) -> None:
    program: ApiClient = api_client(ines.person)
    run = start("t-per-call", script([PAY, *DROPS[:1]]))
    pay, _ = ines.cards(run)
    body = {"answer": APPROVE, "digest": pay.digest}
    assert program.post(f"tasks/{run.pk}/decision", body).status_code == 404
    assert program.post(f"tasks/{pay.pk}/decision", body).status_code == 200
    assert program.post(f"tasks/{pay.pk}/decision", body).status_code == 409
    with pytest.raises(WrongState):
        give(pauses(run, tool="pay")[0], APPROVE)
    assert advance(run).status == "waiting"
    assert effects.count("pay") == 1


LIKE_A_MAP: list[Json] = [{}, {"0" * 32: 1}, {"0" * 32: {}, "f" * 32: None}]


@pytest.mark.parametrize("value", LIKE_A_MAP)
def test_trap_08_an_answer_that_looks_like_a_map_of_ids_is_an_answer(ines: Reviewer, value: Json) -> None:
    run = ines.answer(start("t-shower", {"ask": "text"}), value)
    assert decode(run.output)["answers"] == [value]


def test_trap_09_none_false_and_nothing_are_answers(ines: Reviewer) -> None:
    values: list[Json] = [None, False, "", 0, []]
    for value in values:
        run = ines.answer(start("t-shower", {"ask": "text"}), value)
        assert decode(run.output)["answers"] == [value]


def test_trap_10_new_input_never_drops_an_open_review(ines: Reviewer) -> None:
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    following = script([call("look", what="x")])
    with pytest.raises(WrongState):
        runs.add_input(run.pk, following)
    assert ines.card(run) == task
    runs.add_input(run.pk, following, close_open_reviews=True)
    run = advance(run)
    assert run.status == "finished", run.error
    task.refresh_from_db()
    assert task.status == "superseded"
    assert (effects.count("pay_began"), effects.count("look")) == (0, 1)
    (closed,) = (one for one in decode(run.output)["messages"] if one.get("name") == "pay")
    assert (closed["type"], closed["status"]) == ("tool", "error")


def test_trap_11_a_condition_that_flips_lets_no_rejected_call_run() -> None:
    run = start("t-forgetful", script([PAY]))
    effects.flag("gate_removed").touch()
    run = answer(pending(run), REJECT)
    assert run.status == "failed"
    assert "does not allow it" in run.error
    assert effects.count("pay_began") == 0


def test_trap_12_an_edit_cannot_reach_another_tool(ines: Reviewer) -> None:
    sneaky = edit("drop", path="/everything")
    for agent in ("t-batched", "t-per-call"):
        task = ines.card(start(agent, script([PAY])))
        with pytest.raises(Invalid):
            decisions.decide(task.pk, by=ines.person, answer=sneaky, digest=task.digest)
    run = start("t-batched", script([PAY]))
    run = answer(pending(run), sneaky)  # past the check of the card, straight into the thread
    assert run.status == "failed"
    assert effects.count("drop_began") == 0


def test_trap_13_a_schema_that_the_library_only_shows_is_enforced(ines: Reviewer) -> None:
    task = ines.card(start("t-typed", {"ask": "schema"}))
    for bad in ({"nonsense": 1}, {"score": "7"}, {"score": 7, "more": 1}, {}, None, 7):
        with pytest.raises(Invalid):
            decisions.decide(task.pk, by=ines.person, answer=bad, digest=task.digest)
    assert ines.decide(task, {"score": 7}).status == "finished"


def test_trap_14_what_runs_again_with_its_node_starts_no_gated_call_again() -> None:
    run = start("t-per-call", script([call("haggle", to="a", amount=1)]))
    run = answer(pending(run), APPROVE)
    run = answer(pending(run), "yes")
    assert run.status == "finished", run.error
    assert effects.count("haggle_began") == 2  # the tool's own body began anew after its own question
    assert effects.count("haggle") == 1
    assert [(one.attempt, one.status) for one in attempts(run)] == [(1, "succeeded")]


def test_trap_15_a_question_need_not_be_json(ines: Reviewer) -> None:
    shown: dict[str, Json] = {
        "moment": {"~type": "datetime", "value": "2026-11-30T12:55:00+00:00"},
        "pydantic": {"weight": 1.5, "to": "Ann"},
        "bytes": {"~type": "bytes", "base64": "AP8="},
        "nan": {"~type": "float", "value": "nan"},
    }
    for name, wanted in shown.items():
        assert ines.card(start("t-shower", {"ask": name})).arguments == wanted


def test_trap_16_an_answer_after_the_end_is_no_success(ines: Reviewer) -> None:
    run = start("t-per-call", script([PAY]))
    task = ines.card(run)
    run = ines.decide(task, APPROVE)
    assert run.status == "finished"
    with pytest.raises(Conflict) as told:
        decisions.decide(task.pk, by=ines.person, answer=APPROVE, digest=task.digest)
    assert told.value.who == "Ines H."
    with pytest.raises(WrongState):
        give(task.pause, APPROVE)
    assert advance(run).finished_at == run.finished_at
    assert effects.count("pay") == 1
