"""One card for each gated call: start, pause, answer, finish."""

from __future__ import annotations

import pytest

from agents_runtime.canonical import decode
from tests.agents import effects
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

pytestmark = pytest.mark.usefixtures("runtime")


def test_an_approved_call_runs_once_and_the_run_finishes() -> None:
    run = start("t-per-call", script([call("pay", to="ann", amount=5)]))
    assert run.status == "waiting"
    pause = pending(run)
    assert (pause.kind, pause.tool) == ("per_call", "pay")
    assert effects.count("pay") == 0
    run = answer(pause, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay", to="ann", amount=5) == 1
    assert last_words(run) == "done: paid 5 to ann"
    (attempt,) = attempts(run)
    assert (attempt.status, attempt.grant, attempt.pause_id) == ("succeeded", "decision", pause.pk)
    assert decode(attempt.arguments) == {"to": "ann", "amount": 5}


def test_siblings_wait_while_one_is_answered() -> None:
    run = start(
        "t-per-call",
        script(
            [
                call("drop", path="/a"),
                call("look", what="x"),
                call("drop", path="/b"),
                call("pay", to="a", amount=1),
            ]
        ),
    )
    assert effects.count("look") == 1
    first, second, third = pauses(run)
    assert [pause.place for pause in (first, second, third)] == [0, 2, 3]
    run = answer(second, APPROVE)
    assert run.status == "waiting"
    assert effects.count("drop") == effects.count("drop", path="/b") == 1
    assert [pause.status for pause in pauses(run)] == ["pending", "delivered", "pending"]
    answer(first, REJECT)
    run = answer(third, edit("pay", to="a", amount=2))
    assert run.status == "finished"
    assert effects.count("drop") == 1
    assert effects.count("pay", amount=2) == 1
    assert effects.count("look") == 1


def test_answers_given_together_are_delivered_one_at_a_time() -> None:
    run = start("t-per-call", script([call("drop", path="/a"), call("drop", path="/b")]))
    for pause in pauses(run):
        give(pause, APPROVE)
    run = advance(run)
    assert run.status == "finished"
    assert effects.count("drop") == 2
