"""A breakpoint in one branch beside a question in another one: no answer to the one passes the other."""

from __future__ import annotations

import pytest

from agents_runtime import recovery, runs
from agents_runtime.canonical import decode
from agents_runtime.models import Pause, Run
from tests.agents import effects
from tests.runtime.driving import advance, answer, pauses, start

pytestmark = pytest.mark.usefixtures("runtime")
AGENTS = ("t-stops-beside", "t-async-stops-beside", "t-stops-beside-deeper")


def open_pauses(run: Run) -> tuple[Pause, Pause]:
    """Return the question and the breakpoint that wait."""
    (stop,) = pauses(run, status="pending", kind=Pause.Kind.STATIC)
    (question,) = pauses(run, status="pending", kind=Pause.Kind.QUESTION)
    return question, stop


@pytest.mark.parametrize("agent", AGENTS)
def test_answering_the_question_first_leaves_the_breakpoint_closed(agent: str) -> None:
    run = start(agent, {"ask": "x"})
    question, stop = open_pauses(run)
    run = answer(question, "this")
    assert run.status == "waiting"
    assert effects.count("act") == 0
    assert not recovery.has_work(run.pk)  # the answer waits for a person, and nobody is woken for it
    run = answer(stop, "continue")
    assert run.status == "finished", run.error
    assert [pause.status for pause in pauses(run)] == ["delivered", "delivered"]
    assert sorted(decode(run.output)["answers"]) == ["acted", "this"]
    assert effects.count("act") == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_passing_the_breakpoint_first_leaves_the_question_open(agent: str) -> None:
    run = start(agent, {"ask": "x"})
    question, stop = open_pauses(run)
    run = answer(stop, "continue")
    assert (run.status, effects.count("act")) == ("waiting", 1)
    assert [pause.status for pause in pauses(run, status="pending")] == ["pending"]
    run = answer(question, "this")
    assert run.status == "finished", run.error
    assert sorted(decode(run.output)["answers"]) == ["acted", "this"]
    assert effects.count("act") == 1


def test_a_retry_of_a_branch_that_failed_leaves_the_breakpoint_closed() -> None:
    effects.flag("fail_node").touch()
    run = start("t-stops-beside-trouble", {"ask": "x"})
    effects.flag("fail_node").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert effects.count("act") == 0
    (stop,) = pauses(run, status="pending", kind=Pause.Kind.STATIC)
    run = answer(stop, "continue")
    assert run.status == "finished", run.error
    assert sorted(decode(run.output)["answers"]) == ["acted", "tried"]
