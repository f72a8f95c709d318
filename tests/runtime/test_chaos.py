"""Seeded schedules of runs, answers and deaths: every decision takes effect once, or somebody is asked."""

from __future__ import annotations

import json
import os
import random

import pytest

from agents_runtime import runs
from agents_runtime.canonical import Json, decode
from agents_runtime.models import Pause, Run, ToolExecution
from tests.agents import effects
from tests.runtime.crashing import advance_in_child
from tests.runtime.driving import APPROVE, REJECT, advance, attempts, call, edit, fresh, give, pauses, script

pytestmark = pytest.mark.usefixtures("runtime", "workers_that_die")
AGENTS = ("t-per-call", "t-batched", "t-boss", "t-async")
MAX_ROUNDS = 60
SEEDS = int(os.environ.get("COUNTERSIGN_CHAOS_SEEDS", "12"))  # `make chaos` runs many more


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_schedule_of_deaths_doubles_and_loses_nothing(seed: int) -> None:
    chance = random.Random(seed)
    agent = AGENTS[seed % len(AGENTS)]
    run = runs.start(agent, input=_input(agent, chance), requested_by="tests")
    for _ in range(MAX_ROUNDS):
        run = _go_on(run, chance)
        if run.status == "finished":
            break
        _decide(run, chance)
    assert run.status == "finished", (run.status, run.error)
    _check_books(run)


def _input(agent: str, chance: random.Random) -> Json:
    """Two turns of up to three calls; every amount and path is another one."""
    numbers = iter(range(100))
    turns = [[_call(agent, chance, next(numbers)) for _ in range(chance.randint(1, 3))] for _ in range(2)]
    if agent != "t-boss":
        return script(*turns)
    return script([call("delegate", task=json.loads(json.dumps(script(*turns)))["messages"][0]["content"])])


def _call(agent: str, chance: random.Random, number: int) -> dict[str, Json]:
    if chance.random() < 0.2:
        return call("look", what=str(number))
    if agent == "t-async":
        return call("apay", to="a", amount=number)
    return chance.choice([call("pay", to="a", amount=number), call("drop", path=str(number))])


def _go_on(run: Run, chance: random.Random) -> Run:
    """Let a worker go on, which may die at any moment."""
    if chance.random() < 0.6:
        advance_in_child(run, str(chance.uniform(0.0, 0.35)))
        return fresh(run)
    return advance(run)


def _decide(run: Run, chance: random.Random) -> None:
    """Answer some of what waits; where nobody knows what happened, look at the traces and tell."""
    if run.status == "failed":
        runs.retry(run.pk)
    for attempt in attempts(fresh(run)):
        if run.status == "in_doubt" and attempt.in_doubt_since and attempt.status == "started":
            happened = _count(attempt) > 0
            outcome = "happened" if happened else "run_again"
            runs.settle(run.pk, outcome=outcome, result="it did happen", execution_id=attempt.pk)
    for pause in pauses(run, status="pending"):
        if chance.random() < 0.7:
            give(pause, *[_answer(pause, told, chance) for told in pause.call_list])


def _answer(pause: Pause, told: dict[str, Json], chance: random.Random) -> Json:
    choice = chance.random()
    if choice < 0.2:
        return REJECT
    if choice < 0.4 and "amount" in told["arguments"]:
        return edit(told["tool"], to="edited", amount=told["arguments"]["amount"])
    return APPROVE


def _count(attempt: ToolExecution) -> int:
    return effects.count(attempt.tool, **decode(attempt.arguments))


def _check_books(run: Run) -> None:
    """Compare what happened, by the tools' own traces, with what was decided."""
    wanted: list[tuple[str, str]] = []
    for pause in pauses(run):
        assert pause.status == "delivered"
        for told, given in zip(pause.call_list, pause.answer_list, strict=True):
            arguments = told["arguments"]
            if given["type"] == "edit":
                arguments = given["edited_action"]["args"]
            if given["type"] != "reject":
                wanted.append((told["tool"], json.dumps(arguments, sort_keys=True)))
    gated = [one for one in effects.all_effects() if one["name"] in {"pay", "drop", "apay"}]
    happened = [
        (one["name"], json.dumps({key: value for key, value in one.items() if key != "name"}, sort_keys=True))
        for one in gated
    ]
    assert sorted(happened) == sorted(wanted)
    ends = [one for one in attempts(run) if one.status in {"succeeded", "asserted"}]
    assert len(ends) == len(wanted)
