"""The key that a tool hands on: one for each decided call, the same for every attempt at it."""

from __future__ import annotations

import pytest

from agents_runtime import runs
from agents_runtime.gate import current_call_key
from agents_runtime.reviewed import idempotency_key
from tests.agents import effects
from tests.agents.reviewed import free
from tests.runtime.driving import APPROVE, advance, answer, call, pauses, pending, script, start

pytestmark = pytest.mark.usefixtures("runtime")
SAME = call("keyed", to="a")


def keys(name: str = "keyed_began") -> list[str]:
    return [effect["key"] for effect in effects.all_effects() if effect["name"] == name]


def test_a_key_stays_the_same_over_the_attempts_at_one_call() -> None:
    run = start("r-keyed", script([SAME]))
    effects.flag("fail_keyed").touch()
    run = answer(pending(run), APPROVE)
    assert run.status == "failed"
    effects.flag("fail_keyed").unlink()
    runs.retry(run.pk)
    assert advance(run).status == "finished"
    first, second = keys()
    assert first == second
    assert len(first) == 64


def test_calls_alike_have_keys_of_their_own_and_so_have_runs() -> None:
    for _ in range(2):
        run = start("r-keyed", script([SAME, SAME], [SAME]))
        for pause in pauses(run):
            run = answer(pause, APPROVE)
        assert answer(pending(run), APPROVE).status == "finished"
    assert len(keys()) == len(set(keys())) == 6


def test_a_tool_that_nobody_is_asked_about_has_a_key_too() -> None:
    run = start("r-keyed", script([call("free", to="a"), call("free", to="a")], [call("free", to="a")]))
    assert run.status == "finished", run.error
    assert len(set(keys("free"))) == 3


def test_an_async_tool_gets_its_key() -> None:
    run = start("r-async-keyed", script([call("akeyed", to="a")]))
    assert answer(pending(run), APPROVE).status == "finished"
    assert len(keys()) == 1


def test_there_is_no_key_outside_of_a_run() -> None:
    with pytest.raises(LookupError, match="no tool call of a run"):
        idempotency_key()
    with pytest.raises(LookupError):
        free.invoke({"to": "a"})
    assert current_call_key() == ""
