"""The front door: what it takes, what it refuses, and that it needs no agent framework."""

from __future__ import annotations

import subprocess
import sys
from uuid import uuid4

import pytest
from django.db import transaction

from agents_runtime import runs
from agents_runtime.canonical import decode
from agents_runtime.errors import AgentUnavailable, InvalidInput, NotFound, WrongState
from agents_runtime.models import AgentSpec
from tests.runtime.driving import APPROVE, advance, answer, call, give, pending, script, start
from tests.servers import PROJECT, servers

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)


def test_the_web_never_imports_an_agent_framework() -> None:
    program = (
        "import django, sys; django.setup(); import agents_runtime.runs, reviewer.config.asgi;"
        "print([name for name in sys.modules if name.split('.')[0] in"
        " {'langgraph', 'langchain', 'langchain_core'}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env=servers().child_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_unknown_agents_runs_and_pauses_are_not_found() -> None:
    with pytest.raises(NotFound):
        runs.start("nobody", input={}, requested_by="tests")
    for verb in (runs.retry, runs.cancel):
        with pytest.raises(NotFound):
            verb(uuid4())
    with pytest.raises(NotFound):
        runs.settle(uuid4(), outcome="stop")
    with pytest.raises(NotFound), transaction.atomic():
        runs.lock_pause(uuid4())


def test_an_agent_that_is_broken_or_unlisted_cannot_start() -> None:
    AgentSpec.objects.filter(name="t-asker").update(import_error="No module named nothing.")
    with pytest.raises(AgentUnavailable, match="No module named nothing"):
        runs.start("t-asker", input={}, requested_by="tests")
    AgentSpec.objects.filter(name="t-stubborn").update(is_listed=False)
    with pytest.raises(AgentUnavailable, match="no longer listed"):
        runs.start("t-stubborn", input={}, requested_by="tests")


def test_input_that_does_not_fit_says_where() -> None:
    AgentSpec.objects.filter(name="t-asker").update(
        input_schema='{"type":"object","required":["a"],"properties":{"b":{"type":"array","items":{"type":"integer"}}}}'
    )
    with pytest.raises(InvalidInput) as refused:
        runs.start("t-asker", input={"b": [1, "x"]}, requested_by="tests")
    assert sorted(problem.pointer for problem in refused.value.problems) == ["", "/b/1"]


def test_a_run_remembers_what_it_started_with() -> None:
    run = start("t-per-call", script([PAY]))
    assert run.requested_by == "tests"
    assert decode(run.input) == script([PAY])
    assert run.gates == run.agent.gates
    assert run.pending_input == ""
    shown = decode(run.state)
    assert shown["next"] == ["tools"]
    assert shown["values"]["messages"][0]["type"] == "human"
    assert shown["interrupts"] == [pending(run).interrupt_id]
    assert shown["checkpoint_id"]


def test_a_pause_takes_as_many_answers_as_it_has_positions() -> None:
    run = start("t-batched", script([PAY, PAY]))
    pause = pending(run)
    for wrong in ([], [APPROVE], [APPROVE] * 3):
        with pytest.raises(InvalidInput):
            give(pause, *wrong)
    give(pause, APPROVE, APPROVE)
    assert advance(run).status == "finished"


def test_verbs_refuse_what_does_not_fit_the_state() -> None:
    run = start("t-per-call", script([PAY]))
    with pytest.raises(WrongState):
        runs.retry(run.pk)
    with pytest.raises(WrongState):
        runs.settle(run.pk, outcome="happened")
    run = answer(pending(run), APPROVE)
    with pytest.raises(WrongState, match="finished already"):
        runs.cancel(run.pk)
