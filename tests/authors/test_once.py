"""Effects of plain nodes happen once, or a person says what became of them."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from agents_runtime import runs
from agents_runtime.models import Run, ToolExecution
from agents_runtime.once import once
from tests.agents import effects
from tests.runtime.crashing import KILLED, advance_in_child
from tests.runtime.driving import advance, answer, attempts, give, pending, start

pytestmark = pytest.mark.usefixtures("runtime", "workers_that_die")
AGENTS = pytest.mark.parametrize("agent", ["t-payer", "t-async-payer"])


def asked(agent: str = "t-payer") -> Run:
    return start(agent, {"ask": "?"})


def doubtful() -> Run:
    """Return a run whose worker died after the effect and before its row was closed."""
    effects.flag("die_once").touch()
    run = asked()
    give(pending(run), 5)
    assert advance_in_child(run) == KILLED
    run = advance(run)
    assert run.status == "in_doubt"
    return run


@AGENTS
def test_a_node_that_runs_again_does_its_effect_once(agent: str) -> None:
    run = answer(pending(asked(agent)), 5)
    run = answer(pending(run), "done")
    assert run.status == "finished", run.error
    assert '"answers":[{"receipt":5},"done"]' in run.output
    assert effects.count("once") == 1
    (attempt,) = attempts(run)
    assert (attempt.status, attempt.grant, attempt.tool) == ("succeeded", "once", "invoice-7781")


def test_the_same_key_with_other_arguments_is_refused() -> None:
    run = answer(pending(asked()), 5)
    effects.flag("other_args").touch()
    run = answer(pending(run), "done")
    assert run.status == "failed"
    assert "used before, with other arguments" in run.error
    assert effects.count("once") == 1


def test_a_crash_in_the_middle_is_in_doubt_and_never_repeated_by_itself() -> None:
    run = doubtful()
    run = advance(run)
    assert run.status == "in_doubt"
    assert effects.count("once") == 1


def test_a_person_says_that_it_happened_and_the_node_goes_on_with_that() -> None:
    run = doubtful()
    runs.settle(run.pk, outcome="happened", result={"receipt": "told"}, execution_id=attempts(run)[0].pk)
    run = answer(pending(advance(run)), "done")
    assert run.status == "finished", run.error
    assert '"answers":[{"receipt":"told"},"done"]' in run.output
    assert effects.count("once") == 1


def test_a_person_lets_it_run_again_under_the_same_key() -> None:
    run = doubtful()
    runs.settle(run.pk, outcome="run_again")
    run = answer(pending(advance(run)), "done")
    assert run.status == "finished", run.error
    assert effects.count("once") == 2
    assert [(one.status, one.grant) for one in attempts(run)] == [
        ("abandoned", "once"),
        ("succeeded", "run_again"),
    ]
    assert len({effect["key"] for effect in effects.all_effects() if effect["name"] == "once_began"}) == 1


def test_a_person_stops_the_run() -> None:
    run = doubtful()
    runs.settle(run.pk, outcome="stop")
    assert advance(run).status == "cancelled"
    assert effects.count("once") == 1


def test_a_block_that_raises_waits_for_a_persons_retry() -> None:
    run = asked()
    effects.flag("fail_once").touch()
    run = answer(pending(run), 5)
    assert run.status == "failed"
    assert "the bank does not answer" in run.error
    assert effects.count("once_began") == 1
    effects.flag("fail_once").unlink()
    runs.retry(run.pk)
    run = answer(pending(advance(run)), "done")
    assert run.status == "finished", run.error
    assert effects.count("once_began") == 2
    assert [one.status for one in attempts(run)] == ["raised", "succeeded"]


def test_a_block_that_is_torn_down_is_in_doubt() -> None:
    run = asked()
    effects.flag("exit_once").touch()
    run = answer(pending(run), 5)
    assert run.status == "in_doubt"


def test_a_question_inside_the_block_is_refused() -> None:
    run = asked()
    effects.flag("ask_inside").touch()
    run = answer(pending(run), 5)
    assert run.status == "failed"
    assert "Ask before once()" in run.error


def test_two_tasks_with_one_key_do_it_once() -> None:
    run = start("t-once-twins", {"ask": "?"})
    for _ in range(3):
        if run.status == "finished":
            break
        runs.retry(run.pk)
        run = advance(run)
    assert run.status == "finished", run.error
    assert effects.count("once") == 1


def test_the_database_holds_one_first_attempt_for_each_key() -> None:
    run = answer(pending(asked()), 5)
    (row,) = attempts(run)
    row.pk, row.attempt, row.status = None, 2, "abandoned"
    with pytest.raises(IntegrityError, match="execution_once_key_is_one"), transaction.atomic():
        row.save(force_insert=True)
    assert ToolExecution.objects.filter(run=run).count() == 1


def test_a_key_is_needed_and_so_is_a_run() -> None:
    with pytest.raises(ValueError, match="needs a key"), once(" ", None):
        pass
    with pytest.raises(LookupError, match="in a run of Countersign only"), once("k", None):
        pass
