"""A worker whose clock is behind: LangGraph orders checkpoints by ids that it makes from the clock."""

from __future__ import annotations

import time
from typing import Any

import pytest
from langgraph.checkpoint.base import id as ids

from agents_runtime.engine import Engine
from tests.agents import effects
from tests.runtime.driving import APPROVE, advance, answer, call, give, pending, script, start

pytestmark = pytest.mark.usefixtures("runtime")
HOUR_NS = 3_600_000_000_000


@pytest.fixture
def next_worker_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ids as a process does that just started on a machine whose clock is an hour behind."""
    now = time.time_ns
    monkeypatch.setattr(ids, "_last_v6_timestamp", None)
    monkeypatch.setattr(time, "time_ns", lambda: now() - HOUR_NS)


@pytest.mark.parametrize(("agent", "tool"), [("t-per-call", "pay"), ("t-async", "apay"), ("t-boss", "pay")])
def test_what_it_stores_is_the_latest_all_the_same(
    agent: str, tool: str, request: pytest.FixtureRequest
) -> None:
    given = script([call(tool, to="Ada", amount=1)], [call(tool, to="Bob", amount=2)])
    if agent == "t-boss":
        given = script([call("delegate", task=str(given["messages"][0]["content"]))])
    run = start(agent, given)
    request.getfixturevalue("next_worker_is_slow")
    before = Engine(run, run.epoch).read().checkpoint_id
    give(pending(run), APPROVE)
    run = advance(run)
    assert Engine(run, run.epoch).read().checkpoint_id >= before
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    assert Engine(run, run.epoch).read().checkpoint_id > before
    assert effects.count(tool) == 2


def test_ids_that_the_library_makes_are_those_that_are_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ids.UUID(str(ids.uuid6()))
    held_back: Any = vars(ids)["_last_v6_timestamp"]
    assert first.time == held_back
    monkeypatch.setattr(ids, "_last_v6_timestamp", held_back + HOUR_NS)
    later = ids.UUID(str(ids.uuid6()))
    assert later.time == held_back + HOUR_NS + 1
    assert str(later) > str(first)
