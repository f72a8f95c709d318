"""Short form of ``make chaos``: single deaths."""

from __future__ import annotations

from tests.chaos.running import play


def test_whoever_dies_wherever_every_decision_takes_effect_once() -> None:
    assert "violations: 0" in play("deaths", seeds=10)
