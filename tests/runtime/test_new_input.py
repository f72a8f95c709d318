"""New input while people are asked: refused, or it closes their cards first; it never drops a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents_runtime import runs
from agents_runtime.canonical import Json, decode
from agents_runtime.engine import CLOSED_CALL, Engine
from agents_runtime.errors import InvalidInput, WrongState
from agents_runtime.models import Run
from reviewer import claims, steering
from reviewer.decisions import decide
from reviewer.errors import NotAllowed
from reviewer.models import AuditEvent, ReviewTask
from tests.agents import effects
from tests.cast import Cast
from tests.runtime.crashing import KILLED, advance_in_child
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    answer,
    call,
    fresh,
    give,
    last_words,
    pauses,
    pending,
    script,
    start,
)

ClientOf = Callable[..., Client]
pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
LOOK = call("look", what="x")
NEXT = script([call("look", what="y")])


def history(run: Run) -> list[dict[str, Any]]:
    """Return the messages of a finished run."""
    return list(decode(run.output)["messages"])


def assert_valid(messages: list[dict[str, Any]]) -> None:
    """Every call of the model has exactly one answer, right after its turn: what providers demand."""
    for place, message in enumerate(messages):
        asked = [item["id"] for item in message.get("tool_calls", ())]
        following = messages[place + 1 : place + 1 + len(asked)]
        assert sorted(item.get("tool_call_id", "") for item in following) == sorted(asked)


def test_input_is_refused_while_people_are_asked_and_their_cards_stay() -> None:
    run = start("t-per-call", script([PAY]))
    with pytest.raises(WrongState, match="waits for people"):
        runs.add_input(run.pk, NEXT)
    assert [pause.status for pause in pauses(run)] == ["pending"]
    assert ReviewTask.objects.get(run=run).is_open
    assert advance(run).status == "waiting"


@pytest.mark.parametrize("agent", ["t-per-call", "t-batched"])
def test_closing_answers_the_models_calls_so_that_its_history_is_valid(agent: str) -> None:
    run = start(agent, script([PAY, LOOK, call("drop", path="/a")]))
    runs.add_input(run.pk, NEXT, close_open_reviews=True)
    assert {pause.status for pause in pauses(run)} == {"superseded"}
    assert {task.status for task in ReviewTask.objects.filter(run=run)} == {"superseded"}
    run = advance(run)
    assert run.status == "finished", run.error
    assert (run.closes_reviews, run.pending_input) == (False, "")
    assert effects.count("pay_began") == effects.count("drop") == 0
    assert effects.count("look", what="y") == 1
    assert effects.count("look", what="x") == (1 if agent == "t-per-call" else 0)
    messages = history(run)
    assert_valid(messages)
    assert last_words(run).count(CLOSED_CALL) == (2 if agent == "t-per-call" else 3)
    assert "saw y" in last_words(run)


def test_closing_keeps_what_was_decided_and_done_in_the_same_turn() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    first, second = pauses(run)
    run = answer(first, APPROVE)
    runs.add_input(run.pk, NEXT, close_open_reviews=True)
    run = advance(run)
    assert run.status == "finished", run.error
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("delivered", "superseded")
    assert effects.count("pay") == 1
    assert_valid(history(run))
    assert "paid 1 to a" in last_words(run)


@pytest.mark.parametrize(
    ("agent", "begin", "following"),
    [
        ("t-async", script([call("apay", to="a", amount=1)]), NEXT),
        ("t-inspector", {"ask": "good?"}, {"ask": "better?"}),
        ("t-breakpoint", {"ask": ""}, {"ask": ""}),
        ("t-crowd", {"ask": "3"}, {"ask": "2"}),
        ("t-boss", script([call("delegate", task=script([PAY])["messages"][0]["content"])]), NEXT),
    ],
)
def test_closing_works_for_every_kind_of_graph(agent: str, begin: Json, following: Json) -> None:
    run = start(agent, begin)
    assert run.status == "waiting"
    old = {pause.pk for pause in pauses(run)}
    runs.add_input(run.pk, following, close_open_reviews=True)
    run = advance(run)
    assert run.status in {"waiting", "finished"}, run.error
    assert not run.closes_reviews
    assert {pause.status for pause in pauses(run) if pause.pk in old} == {"superseded"}
    new = [pause for pause in pauses(run) if pause.pk not in old]
    assert len(new) == {"t-inspector": 1, "t-breakpoint": 1, "t-crowd": 2}.get(agent, 0)
    assert effects.count("pay_began") == effects.count("apay_began") == effects.count("act") == 0


def test_the_closed_question_can_no_longer_be_answered_and_its_tool_never_runs() -> None:
    run = start("t-per-call", script([PAY]))
    pause = pending(run)
    runs.add_input(run.pk, NEXT, close_open_reviews=True)
    with pytest.raises(WrongState):
        give(pause, APPROVE)
    advance(run)
    with pytest.raises(WrongState):
        give(pause, APPROVE)
    assert effects.count("pay_began") == 0


def test_input_that_does_not_fit_closes_nothing() -> None:
    run = start("t-inspector", {"ask": "good?"})
    with pytest.raises(InvalidInput):
        runs.add_input(run.pk, ["no", "mapping"], close_open_reviews=True)
    assert pending(run).status == "pending"


def test_input_waits_while_a_decision_is_under_way_or_has_failed() -> None:
    run = start("t-per-call", script([PAY, call("drop", path="/a")]))
    first, _second = pauses(run)
    give(first, APPROVE)
    with pytest.raises(WrongState, match="under way"):
        runs.add_input(run.pk, NEXT, close_open_reviews=True)
    effects.flag("fail_pay").touch()
    run = advance(run)
    assert run.status == "waiting"
    with pytest.raises(WrongState, match="has failed"):
        runs.add_input(run.pk, NEXT, close_open_reviews=True)


@pytest.mark.usefixtures("workers_that_die")
@pytest.mark.parametrize(
    ("place", "word", "side"),
    [
        ("agents_runtime.engine:Engine:step", "CloseReviews", "before"),
        ("agents_runtime.engine:Engine:_update", "__end__", "before"),
        ("agents_runtime.engine:Engine:_update", "__start__", "before"),
        ("agents_runtime.engine:Engine:step", "CloseReviews", "after"),
        ("agents_runtime.engine:Engine:step", "GiveInput", "before"),
        ("agents_runtime.engine:Engine:step", "GiveInput", "after"),
    ],
)
def test_a_worker_that_dies_while_it_closes_loses_neither_input_nor_validity(
    place: str, word: str, side: str
) -> None:
    run = start("t-per-call", script([PAY, LOOK]))
    runs.add_input(run.pk, NEXT, close_open_reviews=True)
    assert advance_in_child(run, place, word, side) == KILLED
    run = advance(run)
    assert run.status == "finished", run.error
    assert_valid(history(run))
    assert effects.count("look", what="y") >= 1
    assert sum(1 for message in history(run) if message["type"] == "human") == 2
    assert effects.count("pay_began") == 0


def test_the_trail_tells_which_cards_were_closed() -> None:
    run = start("t-per-call", script([PAY]))
    runs.add_input(run.pk, NEXT, close_open_reviews=True)
    told = AuditEvent.objects.filter(run_id=run.pk).values_list("type", flat=True)
    assert {"pause.superseded", "task.superseded", "run.resumed"} <= set(told)


def test_a_run_can_be_cancelled_while_it_closes() -> None:
    run = start("t-per-call", script([PAY]))
    runs.add_input(run.pk, NEXT, close_open_reviews=True)
    runs.cancel(run.pk)
    assert advance(run).status == "cancelled"
    assert effects.count("look_began") == 0


def test_an_edit_of_the_thread_that_fails_fails_the_run_and_a_retry_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = start("t-per-call", script([PAY]))
    runs.add_input(run.pk, NEXT, close_open_reviews=True)

    async def refuse(*_: object) -> None:
        raise RuntimeError("the library does not work today")

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "_update", refuse)
        run = advance(run)
    assert (run.status, run.trouble) == ("failed", "step")
    assert "does not work today" in run.error
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert "saw y" in last_words(run)
    assert fresh(run).closes_reviews is False


def test_an_answer_that_came_first_wins() -> None:
    run = start("t-per-call", script([PAY]))
    give(pending(run), REJECT)
    with pytest.raises(WrongState):
        runs.add_input(run.pk, NEXT, close_open_reviews=True)
    assert advance(run).status == "finished"


def test_whoever_gave_a_run_its_input_decides_none_of_its_cards(cast: Cast, client_of: ClientOf) -> None:
    """Else a lead could tell an agent to pay, and approve it alone."""
    run = start("t-per-call", script([PAY]))
    assert advance(run).status == "waiting"
    steering.add_input(run.pk, input=script([PAY]), by=cast.lead, close_open_reviews=True)
    assert advance(run).status == "waiting"
    task = ReviewTask.objects.get(run=run, status="open")
    with pytest.raises(NotAllowed, match="gave a run input"):
        decide(task.pk, by=cast.lead, answer=APPROVE, digest=task.digest)
    with pytest.raises(NotAllowed):
        claims.claim(task.pk, by=cast.lead)
    with pytest.raises(NotAllowed):
        claims.assign(task.pk, to=cast.lead, by=cast.admin)
    assert claims.claim_next(task.queue.slug, by=cast.lead) is None
    page = client_of(cast.lead).get(f"/tasks/{task.pk}/").content.decode()
    assert "Whoever gave a run input cannot decide its tasks." in page
    assert 'value="approve"' not in page
    decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    assert advance(run).status == "finished"

    steering.add_input(run.pk, input=script([PAY]), by=cast.admin)
    assert advance(run).status == "waiting"
    task = ReviewTask.objects.get(run=run, status="open")
    with pytest.raises(NotAllowed):  # what they said once stands in the conversation still
        decide(task.pk, by=cast.lead, answer=APPROVE, digest=task.digest)
