"""A policy turns tiers of risk into the right middleware, and refuses what would gate nothing by mistake."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain_core.tools import StructuredTool

from agents_runtime.anatomy import examine
from agents_runtime.listings import Hints
from agents_runtime.policy import TIERS, PolicyError, ReviewRule, review_policy
from agents_runtime.reviewed import ReviewedTools
from agents_runtime.wiring import flaws
from tests.agents.playbook import Playbook
from tests.agents.tools import drop, haggle, look, pay

TOOLS = [pay, drop, look]
ALL_PLACED: Any = {"high": ["pay"], "medium": ["drop"], "low": ["look"]}


def test_tiers_become_gates_and_hints_that_registration_finds() -> None:
    middleware = review_policy(
        [*TOOLS, haggle],
        high=[pay],
        medium=["drop"],
        low=[look],
        ask=[haggle],
        rules={
            "pay": ReviewRule(queue="payments", expires_after=timedelta(hours=4), on_expiry="reject"),
            "drop": ReviewRule(when=lambda _: True, risk="critical"),
        },
    )
    anatomy = examine(create_agent(Playbook(), [*TOOLS, haggle], middleware=middleware))
    assert anatomy.mode == "per_call"
    assert {name: gate.to_json() for name, gate in anatomy.gates.items()} == {
        "pay": {
            "decisions": ["approve", "edit", "reject"],
            "conditional": False,
            "risk": "high",
            "queue": "payments",
            "expires_after": 14400,
            "on_expiry": "reject",
        },
        "drop": {"decisions": ["approve", "reject"], "conditional": True, "risk": "critical"},
        "haggle": {"decisions": ["respond"], "conditional": False, "risk": "low"},
    }


def test_the_review_stands_first_and_the_agents_own_middleware_after_it() -> None:
    retry = ToolRetryMiddleware()
    review, other = review_policy(TOOLS, **ALL_PLACED, middleware=[retry])
    assert isinstance(review, ReviewedTools)
    assert other is retry
    assert flaws(create_agent(Playbook(), TOOLS, middleware=[review, other])) == ()
    assert flaws(create_agent(Playbook(), TOOLS, middleware=[other, review])) != ()


def test_an_agent_that_gates_nothing_says_so() -> None:
    assert review_policy([look], low=[look], gates_nothing=True) == []


def test_a_rule_may_change_what_its_tier_allows() -> None:
    rule = ReviewRule(decisions=["approve"], description="Careful.")
    (review,) = review_policy(TOOLS, **ALL_PLACED, rules={"pay": rule})
    assert isinstance(review, ReviewedTools)
    assert review.interrupt_on["pay"] == {"allowed_decisions": ["approve"], "description": "Careful."}


def _needs_tool(request: Any) -> bool:
    return bool(request.tool.name)


async def _later(request: Any) -> bool:
    return True


def _annotated(**hints: bool) -> Any:
    return StructuredTool.from_function(lambda x: x, name="wipe", description="Wipe.", metadata=hints)


WRITES, DESTROYS = _annotated(readOnlyHint=False), _annotated(destructiveHint=True)
MISTAKES: dict[str, dict[str, Any]] = {
    "is no tool of this agent": {**ALL_PLACED, "high": ["pay", "payy"]},
    "payy is no tool": {**ALL_PLACED, "rules": {"payy": ReviewRule()}},
    "stands in no tier": {"high": ["pay"], "low": ["look"]},
    "is listed twice": {**ALL_PLACED, "medium": ["drop", "pay"]},
    "twice: under high and under high": {**ALL_PLACED, "high": ["pay", pay]},
    "nobody is ever asked": {"low": TOOLS},
    "but pay, drop is gated": {**ALL_PLACED, "gates_nothing": True},
    "knows no tools": {"tools": []},
    "not one text": {**ALL_PLACED, "high": "pay"},
    "is no tool:": {**ALL_PLACED, "high": [7]},
    "per_call or batched": {**ALL_PLACED, "interrupt_mode": "per-call"},
    "gates tools, too": {**ALL_PLACED, "middleware": [HumanInTheLoopMiddleware({"drop": True})]},
    "its rule means nothing": {**ALL_PLACED, "rules": {"look": ReviewRule(queue="payments")}},
    "its decisions are a list": {**ALL_PLACED, "rules": {"pay": ReviewRule(decisions="approve")}},
    "not 'aprove'": {**ALL_PLACED, "rules": {"pay": ReviewRule(decisions=["aprove"])}},
    "an approval would run its code": {
        "ask": ["pay"], "low": ["look", "drop"], "rules": {"pay": ReviewRule(decisions=["approve"])},
    },
    "would run unasked": {
        "ask": ["pay"], "low": ["look", "drop"], "rules": {"pay": ReviewRule(when=lambda _: True)},
    },
    "a plain function": {**ALL_PLACED, "rules": {"pay": ReviewRule(when=_later)}},  # type: ignore[arg-type]
    "takes one argument": {**ALL_PLACED, "rules": {"pay": ReviewRule(when=lambda: True)}},  # type: ignore[arg-type,misc]
    "which batches do not have": {
        **ALL_PLACED, "interrupt_mode": "batched", "rules": {"pay": ReviewRule(when=_needs_tool)},
    },
    "not 'deadly'": {**ALL_PLACED, "rules": {"pay": ReviewRule(risk="deadly")}},
    "not 'Pay ments'": {**ALL_PLACED, "rules": {"pay": ReviewRule(queue="Pay ments")}},
    "never approves": {
        **ALL_PLACED, "rules": {"pay": ReviewRule(expires_after=timedelta(hours=1), on_expiry="approve")},
    },
    "not when it expires": {**ALL_PLACED, "rules": {"pay": ReviewRule(on_expiry="reject")}},
    "at least a second": {**ALL_PLACED, "rules": {"pay": ReviewRule(expires_after=timedelta(0))}},
    "reject is none of its decisions": {
        "ask": ["pay"], "low": ["look", "drop"],
        "rules": {"pay": ReviewRule(expires_after=timedelta(hours=1), on_expiry="reject")},
    },
    "one class of errors": {**ALL_PLACED, "rules": {"pay": ReviewRule(harmless=(Exception,))}},
    "changes something": {"tools": [WRITES], "ask": [WRITES]},
    "calls itself destructive": {"tools": [DESTROYS], "low": [DESTROYS], "gates_nothing": True},
}  # fmt: skip


@pytest.mark.parametrize("words", MISTAKES)
def test_a_policy_that_would_not_do_what_it_says_is_refused(words: str) -> None:
    given = {"tools": TOOLS, **MISTAKES[words]}
    with pytest.raises(PolicyError) as refused:
        review_policy(**given)
    assert words in str(refused.value)


def test_a_condition_that_reads_the_tool_is_fine_where_each_call_asks() -> None:
    rules = {"pay": ReviewRule(when=_needs_tool)}
    assert review_policy(TOOLS, **ALL_PLACED, rules=rules)
    only_arguments = {"pay": ReviewRule(when=lambda request: request.tool_call["args"]["amount"] > 9)}
    assert review_policy(TOOLS, **ALL_PLACED, rules=only_arguments, interrupt_mode="batched")


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(sorted(TIERS)), min_size=1))
def test_what_is_in_a_tier_above_low_is_gated_and_nothing_else(placed: dict[str, str]) -> None:
    listed: Any = {tier: [name for name in placed if placed[name] == tier] for tier in TIERS}
    gated = {name: TIERS[tier] for name, tier in placed.items() if tier != "low"}
    middleware = review_policy(placed, **listed, gates_nothing=not gated)
    found = {
        name: tuple(config["allowed_decisions"])
        for review in middleware
        if isinstance(review, ReviewedTools)
        for name, config in review.interrupt_on.items()
    }
    assert found == gated


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"interrupt_on": {}}, "no tool"),
        ({"interrupt_on": {"pay": False}}, "no tool"),
        ({"interrupt_on": {"pay": True}, "hints": {"drop": Hints(risk="high")}}, "belong to a gated tool"),
        ({"interrupt_on": {"pay": True}, "hints": {"pay": Hints(risk="deadly")}}, "deadly"),
        ({"interrupt_on": {"pay": True}, "interrupt_mode": "percall"}, "interrupt_mode"),
    ],
)
def test_the_middleware_alone_refuses_to_gate_nothing_too(options: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        ReviewedTools(**options)
