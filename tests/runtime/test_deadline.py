"""A step that takes too long is ended, says so, and can do nothing more."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from agents_runtime import runs
from agents_runtime.gate import Gate, ToolStopped
from agents_runtime.models import AgentSpec
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
    last_words,
    pending,
    script,
    start,
)
from tests.runtime.locking import no_tool_begins, wait_for_a_tool_to_begin

pytestmark = pytest.mark.usefixtures("runtime")
BUSY = 4  # seconds that a busy machine may take until a tool begins
HANGING = [("t-per-call", "pay", "wait_pay"), ("t-async", "apay", "wait_apay_on_loop")]


@pytest.fixture(autouse=True)
def short_deadline(settings: Settings) -> None:
    settings.COUNTERSIGN_STEP_DEADLINE = 1


def test_a_hung_step_fails_and_its_late_end_changes_nothing(settings: Settings) -> None:
    effects.flag("wait_look").touch()
    run = start("t-per-call", script([call("look", what="x")]))
    assert run.status == "failed"
    assert run.error == "This step took longer than 1 seconds and was ended."
    effects.flag("wait_look").unlink()
    wait_until(lambda: effects.count("look") == 1)
    assert fresh(run).status == "failed"
    settings.COUNTERSIGN_STEP_DEADLINE = 60
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: saw x"


def test_a_gated_tool_that_hangs_is_in_doubt() -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    effects.flag("wait_pay").touch()
    run = answer(pending(run), APPROVE)
    assert run.status == "in_doubt"
    effects.flag("wait_pay").unlink()
    wait_until(lambda: effects.count("pay") == 1)
    assert fresh(run).status == "in_doubt"
    (attempt,) = attempts(run)
    assert attempt.status == "started"
    runs.settle(run.pk, outcome="happened", result="paid after all")
    run = advance(run)
    assert last_words(run) == "done: paid after all"
    assert effects.count("pay") == 1


@pytest.mark.parametrize(("agent", "tool", "flag"), HANGING)
def test_a_gated_tool_that_begins_as_its_step_ends_is_in_doubt(
    agent: str, tool: str, flag: str, settings: Settings
) -> None:
    settings.COUNTERSIGN_STEP_DEADLINE = BUSY  # the tool has to come to its beginning within it
    run = start(agent, script([call(tool, to="a", amount=1)]))
    give(pending(run), APPROVE)
    effects.flag(flag).touch()
    at_once(lambda: advance(run), _let_it_begin_after_the_deadline)
    (attempt,) = attempts(run)
    assert (attempt.status, fresh(run).status) == ("started", "in_doubt")
    effects.flag(flag).unlink()


def test_nothing_begins_behind_the_end_of_its_step() -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    gate = Gate(run.pk, run.epoch)
    with gate.standing():
        assert gate.ask("pay", lambda: None) is None
    with pytest.raises(ToolStopped):
        gate.ask("pay", lambda: pytest.fail("the ledger was asked"))


def test_an_agent_may_have_a_limit_of_its_own(settings: Settings) -> None:
    settings.COUNTERSIGN_STEP_DEADLINE = 600
    AgentSpec.objects.filter(name="t-per-call").update(step_seconds=2)
    effects.flag("wait_look").touch()
    run = start("t-per-call", script([call("look", what="x")]))
    effects.flag("wait_look").unlink()
    assert run.error == "This step took longer than 2 seconds and was ended."


def test_a_hung_async_step_is_ended_for_good() -> None:
    run = start("t-async", script([call("apay", to="a", amount=1)]))
    effects.flag("wait_apay_on_loop").touch()
    run = answer(pending(run), APPROVE)
    assert run.status == "in_doubt"
    effects.flag("wait_apay_on_loop").unlink()
    assert effects.count("apay") == 0


def test_an_async_step_that_keeps_its_loop_keeps_no_other_run_from_going_on(settings: Settings) -> None:
    run = start("t-async", script([call("apay", to="a", amount=1)]))
    effects.flag("wait_apay").touch()
    assert answer(pending(run), APPROVE).status == "in_doubt"
    settings.COUNTERSIGN_STEP_DEADLINE = 30
    other = start("t-async", script([call("apay", to="b", amount=1)]))
    effects.flag("wait_apay").unlink()
    assert (other.status, other.error) == ("waiting", "")


def _let_it_begin_after_the_deadline() -> None:
    with no_tool_begins():
        wait_for_a_tool_to_begin(seconds=BUSY + 1)
