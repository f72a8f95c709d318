"""No gated tool runs without its decision on exactly these arguments: with the callback alone, and reviewed.

``t-`` agents use the library's middleware, ``r-`` agents are their twins with ``ReviewedTools``.
"""

from __future__ import annotations

import pytest

from agents_runtime import engine, registry, runs
from agents_runtime.canonical import Json, decode
from agents_runtime.models import AgentSpec, Pause
from tests.agents import effects
from tests.runtime.crashing import KILLED, advance_in_child
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
from tests.runtime.test_gate import forge_answer

pytestmark = pytest.mark.usefixtures("runtime", "workers_that_die")
PAY = call("pay", to="a", amount=1)
DROP = call("drop", path="/a")
STORING = ("agents_runtime.checkpointer:FencedSaver:put_writes", "ToolMessage")
FORMS = pytest.mark.parametrize("form", ["t", "r"])


@FORMS
def test_a_call_runs_once_and_has_one_row(form: str) -> None:
    run = start(f"{form}-per-call", script([PAY]))
    run = answer(pending(run), edit("pay", to="b", amount=2))
    assert run.status == "finished", run.error
    assert effects.count("pay", to="b", amount=2) == effects.count("pay_began") == 1
    (attempt,) = attempts(run)
    assert (attempt.status, attempt.grant) == ("succeeded", "decision")
    assert "Executed instead: pay" in last_words(run)


@FORMS
def test_a_call_on_a_loop_runs_once_and_has_one_row(form: str) -> None:
    run = start(f"{form}-async", script([call("apay", to="a", amount=1)]))
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("apay") == len(attempts(run)) == 1


@FORMS
def test_a_condition_that_flips_lets_no_rejected_call_run(form: str) -> None:
    run = start(f"{form}-forgetful", script([PAY]))
    effects.flag("gate_removed").touch()
    run = answer(pending(run), REJECT)
    assert effects.count("pay_began") == 0
    assert run.status == "failed"
    assert "does not allow it" in run.error
    assert attempts(run) == []


@FORMS
def test_a_condition_that_flips_lets_no_undecided_call_run(form: str) -> None:
    run = start(f"{form}-forgetful", script([PAY, call("pay", to="b", amount=2)]))
    first, second = pauses(run)
    effects.flag("gate_removed").touch()
    run = answer(first, APPROVE)
    assert effects.count("pay", to="b") == 0
    assert "Nobody has decided" in run.error
    effects.flag("gate_removed").unlink()
    run = answer(second, REJECT)
    assert run.status == "finished", run.error
    assert effects.count("pay") == effects.count("pay", to="a") == 1


@FORMS
def test_an_edit_that_a_vanished_condition_skips_does_not_run_as_proposed(form: str) -> None:
    run = start(f"{form}-per-call", script([PAY]))
    forge_answer(run, "pay", APPROVE)
    run = answer(pending(run), edit("pay", to="b", amount=2))
    assert effects.count("pay_began") == 0
    assert "other arguments" in run.error


@FORMS
def test_a_gate_that_asks_nobody_lets_nothing_run(form: str) -> None:
    run = start(f"{form}-unguarded", script([PAY]))
    assert effects.count("pay_began") == 0
    assert run.status == "failed"
    assert "nobody was asked" in run.error


def meet(agent: str) -> None:
    """Let this process know the agent's build before a flag changes what it shows: it looks once."""
    engine._build(registry.load_graph(AgentSpec.objects.get(name=agent)))


@FORMS
@pytest.mark.parametrize("given", [APPROVE, REJECT])
def test_a_mode_that_switches_to_batches_while_a_call_waits_runs_what_was_decided(
    form: str, given: Json
) -> None:
    meet(f"{form}-changing")
    run = start(f"{form}-changing", script([PAY, DROP]))
    effects.flag("mode_switched").touch()
    run = answer(pending(run, "pay"), given)
    assert effects.count("pay") == (1 if given == APPROVE else 0)
    assert effects.count("drop_began") == 0
    assert run.status == "waiting"
    effects.flag("mode_switched").unlink()
    run = answer(pending(run, "drop"), REJECT)
    assert effects.count("drop_began") == 0


@FORMS
@pytest.mark.parametrize("given", [APPROVE, REJECT])
def test_a_mode_that_switches_from_batches_while_a_batch_waits_asks_again(form: str, given: Json) -> None:
    meet(f"{form}-changing")
    effects.flag("mode_switched").touch()
    run = start(f"{form}-changing", script([PAY]))
    batch = pending(run)
    assert batch.kind == "batched"
    effects.flag("mode_switched").unlink()
    run = answer(batch, given)
    assert effects.count("pay_began") == 0
    assert Pause.objects.get(pk=batch.pk).status == ("superseded" if given == APPROVE else "delivered")
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1


@FORMS
@pytest.mark.parametrize("given", [REJECT, None])
def test_an_approval_forged_in_the_checkpoint_runs_nothing(form: str, given: Json) -> None:
    run = start(f"{form}-per-call", script([PAY, DROP]))
    forge_answer(run, "pay", APPROVE)
    run = answer(pending(run, "pay" if given else "drop"), given or REJECT)
    assert effects.count("pay_began") == 0
    assert run.error


@FORMS
def test_arguments_forged_in_the_checkpoint_do_not_run(form: str) -> None:
    run = start(f"{form}-per-call", script([PAY]))
    forge_answer(run, "pay", edit("pay", to="thief", amount=1_000_000))
    run = answer(pending(run), APPROVE)
    assert effects.count("pay_began") == 0
    assert "other arguments" in run.error


@FORMS
def test_a_retry_middleware_after_the_gate_runs_nothing_twice(form: str) -> None:
    run = start(f"{form}-retry-inside", script([PAY]))
    effects.flag("fail_pay").touch()
    run = answer(pending(run), APPROVE)
    assert effects.count("pay_began") == 1
    assert run.status == "failed"
    assert "does not work today" in run.error
    effects.flag("fail_pay").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert [one.status for one in attempts(run)] == ["raised", "succeeded"]


def test_an_error_that_its_author_calls_harmless_is_tried_again_and_each_attempt_has_its_row() -> None:
    effects.flag("fail_pay").touch()
    run = start("r-harmless", script([PAY]))
    run = answer(pending(run), APPROVE)
    assert run.status == "failed"
    assert [(one.status, one.grant) for one in attempts(run)] == [
        ("raised", "decision"),
        ("raised", "harmless"),
        ("raised", "harmless"),
    ]
    effects.flag("fail_pay").unlink()
    runs.retry(run.pk)
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert [one.status for one in attempts(run)] == [*["raised"] * 3, "succeeded"]


@FORMS
def test_an_error_that_the_agent_tells_its_model_ends_the_call_as_it_was_decided(form: str) -> None:
    effects.flag("fail_pay").touch()
    run = start(f"{form}-errors-told", script([PAY]))
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: It failed: pay does not work today"
    assert pauses(run)[0].status == "delivered"
    assert [one.status for one in attempts(run)] == ["raised"]
    assert effects.count("pay_began") == 1


@FORMS
def test_a_tool_that_pauses_itself_is_suspended_and_never_in_doubt(form: str) -> None:
    run = start(f"{form}-per-call", script([call("haggle", to="a", amount=3)]))
    run = answer(pending(run), APPROVE)
    assert run.status == "waiting", run.error
    (attempt,) = attempts(run)
    assert (attempt.status, attempt.in_doubt_since) == ("suspended", None)
    run = answer(pending(run), "yes")
    assert run.status == "finished", run.error
    (attempt,) = attempts(run)
    assert (attempt.status, attempt.attempt) == ("succeeded", 1)
    assert effects.count("haggle") == 1


@FORMS
@pytest.mark.parametrize("agent", ["boss", "deep-per-call", "own-callbacks"])
def test_a_subagents_tool_runs_with_its_own_decision_only(form: str, agent: str) -> None:
    run = start(f"{form}-{agent}", delegated(agent, [PAY, DROP]))
    assert effects.count("pay_began") == effects.count("drop_began") == 0
    answer(pending(run, "drop"), REJECT)
    assert effects.count("pay_began") == effects.count("drop_began") == 0
    run = answer(pending(run, "pay"), APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert effects.count("drop_began") == 0
    assert [(one.tool, one.status) for one in attempts(run)] == [("pay", "succeeded")]


@FORMS
@pytest.mark.parametrize("agent", ["boss", "deep-per-call", "own-callbacks"])
def test_a_subagents_tool_does_not_run_with_other_arguments_than_were_decided(form: str, agent: str) -> None:
    run = start(f"{form}-{agent}", delegated(agent, [PAY]))
    pause = pending(run)
    shown = pause.calls.replace('"amount":1', '"amount":2')
    assert shown != pause.calls
    Pause.objects.filter(pk=pause.pk).update(calls=shown)
    run = answer(pause, APPROVE)
    assert effects.count("pay_began") == 0
    assert run.status == "failed"
    assert "other arguments" in run.error


@FORMS
@pytest.mark.parametrize("agent", ["per-call", "batched"])
def test_a_stored_result_is_given_again_without_a_run(form: str, agent: str) -> None:
    run = start(f"{form}-{agent}", script([PAY]))
    give(pending(run), edit("pay", to="b", amount=2))
    assert advance_in_child(run, *STORING, "before") == KILLED
    run = advance(run)
    assert run.status == "finished", run.error
    assert "replaced" in last_words(run)
    assert "paid 2 to b" in last_words(run)
    assert effects.count("pay_began") == len(attempts(run)) == 1


@FORMS
@pytest.mark.parametrize("agent", ["per-call", "batched"])
def test_an_asserted_result_is_given_without_a_run(form: str, agent: str) -> None:
    effects.flag("exit_pay").touch()
    run = start(f"{form}-{agent}", script([PAY]))
    run = answer(pending(run), APPROVE)
    assert run.status == "in_doubt"
    effects.flag("exit_pay").unlink()
    runs.settle(run.pk, outcome="happened", result={"receipt": 7})
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == 'done: {"receipt": 7}'
    assert effects.count("pay_began") == 1


@FORMS
def test_a_call_that_nobody_need_be_asked_about_can_be_run_again_after_a_doubt(form: str) -> None:
    effects.flag("exit_pay").touch()
    run = start(f"{form}-conditional", script([PAY]))
    assert run.status == "in_doubt"
    effects.flag("exit_pay").unlink()
    runs.settle(run.pk, outcome="run_again")
    run = advance(run)
    assert run.status == "finished", run.error
    assert [(one.status, one.grant) for one in attempts(run)] == [
        ("abandoned", "condition"),
        ("succeeded", "run_again"),
    ]


def test_without_review_a_task_of_several_calls_says_that_it_cannot_give_a_result_again() -> None:
    run = start("t-one-task", script([DROP, PAY]))
    assert effects.count("drop") == 1
    run = answer(pending(run, "pay"), APPROVE)
    assert effects.count("drop") == 1
    assert run.status == "failed"
    assert "cannot be given again here" in run.error


def test_without_review_a_tool_node_with_one_call_gets_its_stored_result_too() -> None:
    run = start("t-one-call", script([PAY]))
    give(pending(run), APPROVE)
    assert advance_in_child(run, *STORING, "before") == KILLED
    run = advance(run)
    assert run.status == "finished", run.error
    assert last_words(run) == "done: paid 1 to a"
    assert effects.count("pay_began") == len(attempts(run)) == 1


def test_reviewed_tools_of_one_task_run_once_each_and_none_is_lost() -> None:
    run = start("r-one-task", script([DROP, PAY]))
    assert effects.count("drop") == 1
    run = answer(pending(run, "pay"), APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("drop") == effects.count("pay") == 1
    assert last_words(run) == "done: dropped /a | paid 1 to a"
    assert len(attempts(run)) == 2


def test_a_reviewed_command_to_a_parent_graph_is_given_again() -> None:
    run = start("r-leaver", script([call("leave", to="a")]))
    give(pending(run), APPROVE)
    assert advance_in_child(run, "agents_runtime.ledger:ToolExecution:save", "", "after") in {0, KILLED}
    run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("leave") == 1
    assert decode(run.output)["messages"][-1]["content"] == "left to a"


def test_a_card_of_a_reviewed_subagent_shows_what_it_said() -> None:
    inner = script([PAY], say="The customer asked for it.")["messages"][0]["content"]
    plain = start("t-boss", script([call("delegate", task=inner)]))
    reviewed = start("r-boss", script([call("delegate", task=inner)]))
    assert "countersign" not in decode(pending(plain).value)
    assert decode(pending(reviewed).value)["countersign"]["said"] == "The customer asked for it."


def test_calls_of_a_reviewed_batch_are_known_by_their_ids() -> None:
    run = start("r-batched", script([PAY, PAY]))
    (batch,) = pauses(run)
    assert [one["tool_call_id"] for one in batch.call_list] == ["call_0_0", "call_0_1"]
    run = answer(batch, APPROVE, REJECT)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 1
    assert attempts(run)[0].tool_call_id == "call_0_0"


def delegated(agent: str, calls: list[Json]) -> Json:
    """Return the input by which an agent lets its subagent make these calls."""
    inner = script(calls)["messages"][0]["content"]
    if agent.startswith("deep"):
        return script([call("task", description=inner, subagent_type="general-purpose")])
    return script([call("delegate", task=inner)])
