"""The section for agent authors: its code runs as it stands there, and its tables tell the truth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agents_runtime.anatomy import examine
from agents_runtime.policy import TIERS
from agents_runtime.wiring import flaws
from tests.agents.playbook import Playbook

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
SECTION = README.split("## For agent authors")[1].split("\n## ")[0]
POLICY, ONCE = re.findall(r"```python\n(.*?)```", SECTION, re.S)


def test_the_sample_is_an_agent_with_the_gate_that_it_describes() -> None:
    names: dict[str, Any] = {"model": Playbook()}
    exec(POLICY.replace('"openai:gpt-5"', "model"), names)
    anatomy = examine(names["graph"])
    assert flaws(names["graph"]) == ()
    assert {tool: gate.to_json() for tool, gate in anatomy.gates.items()} == {
        "pay_invoice": {
            "decisions": ["approve", "edit", "reject"],
            "conditional": True,
            "risk": "high",
            "queue": "payments",
            "expires_after": 14400,
            "on_expiry": "reject",
        }
    }


def test_the_sample_of_a_plain_node_does_nothing_outside_of_a_run() -> None:
    names: dict[str, Any] = {"bank": None}
    exec(ONCE, names)
    with pytest.raises(LookupError):
        names["settle_invoice"]({"number": "V-1", "amount": 5})


def test_the_table_names_the_tiers_and_their_decisions() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", SECTION, re.M))
    told = {
        tier: "nobody is asked" if not decisions else ", ".join(decisions)
        for tier, decisions in TIERS.items()
    }
    assert rows == told


def test_every_name_that_it_uses_is_there() -> None:
    for name in ("for_deep_agent", "rehearsal", "ReviewedTools", "once", "idempotency_key"):
        assert f"{name}" in SECTION
        assert any(name in path.read_text() for path in Path("agents_runtime").glob("*.py"))
