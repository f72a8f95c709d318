"""What was measured of the libraries and decides the design, finding by finding: here it comes out right.

Each test is named by its finding. What the library itself does is kept apart, in ``tests/contracts``.
"""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st
from langgraph.types import Command

from agents_runtime import registry, runs, steps, thread_lock
from agents_runtime.canonical import Json, decode
from agents_runtime.engine import Engine, _given
from agents_runtime.errors import InvalidInput, WrongState
from agents_runtime.models import AgentSpec, Run
from agents_runtime.thread_state import GiveAnswer
from reviewer import decisions
from reviewer.errors import Invalid
from tests.agents import effects
from tests.cast import Cast
from tests.doors import ApiClient, json_of
from tests.runtime.crashing import KILLED, advance_in_child
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    answer,
    at_once,
    attempts,
    call,
    give,
    pauses,
    pending,
    script,
    start,
)
from tests.runtime.reviewing import Reviewer
from tests.runtime.storing import delete_thread

pytestmark = pytest.mark.usefixtures("runtime")
PAY = call("pay", to="a", amount=1)
DROP = call("drop", path="/b")


@pytest.mark.usefixtures("workers_that_die")
def test_finding_01_an_answer_that_a_dead_worker_took_along_is_still_in_the_database() -> None:
    run = start("t-per-call", script([PAY]))
    give(pending(run), APPROVE)
    assert advance_in_child(run, "agents_runtime.engine:Engine:step", "GiveAnswer", "before") == KILLED
    assert pauses(run)[0].status == "delivering"
    assert effects.count("pay_began") == 0
    assert advance(run).status == "finished"
    assert effects.count("pay") == 1


def test_finding_02_a_rejection_after_a_failed_approval_is_refused_and_nothing_runs_again() -> None:
    effects.flag("fail_pay").touch()
    run = answer(pending(start("t-per-call", script([PAY]))), APPROVE)
    (pause,) = pauses(run)
    assert pause.status == "failed"
    with pytest.raises(WrongState):
        give(pause, REJECT)
    advance(run)
    assert effects.count("pay_began") == 1


def test_finding_03_two_workers_with_one_answer_run_the_tool_once() -> None:
    run = start("t-per-call", script([PAY, DROP]))
    for pause in pauses(run):
        give(pause, APPROVE)
    at_once(*[lambda: steps.advance(run.pk)] * 2)
    assert advance(run).status == "finished"
    assert (effects.count("pay_began"), effects.count("drop_began")) == (1, 1)
    assert len(attempts(run)) == 2


def test_finding_04_two_workers_that_answer_siblings_strand_nobody() -> None:
    run = start("t-per-call", script([PAY, DROP]))

    def decide_and_bring_forward(tool: str) -> None:
        give(pending(run, tool), APPROVE)
        steps.advance(run.pk)

    at_once(lambda: decide_and_bring_forward("pay"), lambda: decide_and_bring_forward("drop"))
    run = advance(run)
    assert run.status == "finished", run.error
    assert (effects.count("pay"), effects.count("drop")) == (1, 1)


def test_finding_05_an_answer_to_a_thread_without_checkpoints_starts_nothing() -> None:
    run = start("t-per-call", script([PAY, call("look", what="x")]))
    effects.clear()
    delete_thread(run)
    run = answer(pending(run), APPROVE)
    assert run.status == "failed"
    assert "gone" in run.error
    assert effects.all_effects() == []


def test_finding_06_an_answer_given_again_does_not_answer_the_next_question() -> None:
    run = start("t-asker", {"ask": "x"})
    first = pending(run)
    run = answer(first, "one")
    with thread_lock.hold(run.pk) as epoch:
        assert epoch is not None
        engine = Engine(Run.objects.select_related("agent").get(pk=run.pk), epoch)
        outcome = engine.step(GiveAnswer(first.pk, first.interrupt_id, "one"))
    assert "UnknownInterruptError" in outcome.error
    assert pending(run).interrupt_id != first.interrupt_id
    run = answer(pending(run), "two")
    assert decode(run.output)["answers"] == ["one", "two"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    )
)
def test_finding_07_no_answer_is_ever_handed_over_without_its_id(value: Json) -> None:
    run = Run()
    given_value = _given(GiveAnswer(run.pk, "a" * 32, value))
    assert isinstance(given_value, Command)
    assert given_value.resume == {"a" * 32: value}


def test_finding_08_no_malformed_answer_reaches_a_batch(ines: Reviewer) -> None:
    run = start("t-batched", script([PAY, DROP]))
    pay, drop = ines.cards(run)
    for task, bad in ((pay, {"type": "edit"}), (drop, {"type": "edit"}), (drop, [APPROVE])):
        with pytest.raises(Invalid):
            decisions.decide(task.pk, by=ines.person, answer=bad, digest=task.digest)
    for wrong_number in ([], [APPROVE], [APPROVE] * 3):
        with pytest.raises(InvalidInput):
            give(pending(run), *wrong_number)
    ines.decide(pay, REJECT)
    assert ines.decide(drop, REJECT).status == "finished"


def deploy(run: Run, monkeypatch: pytest.MonkeyPatch, *changes: str) -> None:
    """Change the agent's code, and register its build as a new worker would."""
    for change in changes:
        effects.flag(change).touch()
    monkeypatch.setattr(registry, "_graphs", {})
    graph = registry.load_graph(run.agent)
    AgentSpec.objects.filter(pk=run.agent_id).update(fingerprint=registry.graph_fingerprint(graph))


@pytest.mark.parametrize("change", ["mode_switched", "gates_gone"])
def test_finding_09_a_rejection_holds_on_a_build_that_asks_otherwise(
    monkeypatch: pytest.MonkeyPatch, cast: Cast, api_client: Any, change: str
) -> None:
    program: ApiClient = api_client(cast.lead)
    run = start("t-gatekeeper", script([PAY, DROP]))
    deploy(run, monkeypatch, change)
    with pytest.raises(CommandError, match="1 run"):
        call_command("check_agents", stdout=io.StringIO())
    run = answer(pending(run, "pay"), REJECT)
    assert run.status == "failed"
    assert "another build" in run.error
    assert json_of(program.get(f"runs/{run.pk}"))["trouble"] == "build"
    accepted = program.post(f"runs/{run.pk}/build")  # a person chooses this build
    assert (accepted.status_code, json_of(accepted)["status"]) == (200, "running")
    advance(run)
    assert (effects.count("pay_began"), effects.count("drop_began")) == (0, 0)
    assert attempts(run) == []


@pytest.mark.parametrize("change", [["renamed_left"], ["renamed_left", "renamed_right"]])
def test_finding_09_a_node_that_was_renamed_never_reads_as_finished(
    monkeypatch: pytest.MonkeyPatch, change: list[str]
) -> None:
    run = start("t-mover", {"ask": "x"})
    first, second = pauses(run)
    deploy(run, monkeypatch, *change)
    run = answer(first, "one")
    assert (run.status, run.trouble) == ("failed", "build")
    assert "another build" in run.error
    runs.accept_build(run.pk)
    run = advance(run)
    assert (run.status, run.trouble) == ("failed", "place")
    assert "left" in run.error
    assert [pause.status for pause in pauses(run)] == ["answered", "pending"]
    for name in change:
        effects.flag(name).unlink()
    deploy(run, monkeypatch)  # the old build is brought back
    runs.accept_build(run.pk)
    run = advance(run)
    assert run.status == "waiting"
    run = answer(second, "two")
    assert run.status == "finished", run.error
    assert sorted(decode(run.output)["answers"]) == ["one", "two"]


def test_finding_10_a_deep_agent_that_gates_only_itself_runs_no_gated_tool_in_its_subagent() -> None:
    task = str(script([PAY])["messages"][0]["content"])
    run = start("t-deep-half", script([call("task", description=task, subagent_type="general-purpose")]))
    assert run.status == "failed"
    assert "nobody was asked" in run.error
    assert effects.count("pay_began") == 0


def test_finding_10_a_permission_whose_gate_the_author_dropped_is_not_seen_and_one_that_was_merged_is(
    ines: Reviewer,
) -> None:
    secret = call("write_file", file_path="/secrets/a", content="42")
    run = start("t-deep-permissions-per-call", script([secret]))
    assert ines.card(run).tool == "write_file"
    run = ines.answer(run, REJECT)
    assert decode(run.output).get("files", {}) == {}
