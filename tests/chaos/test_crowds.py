"""Short form of ``make chaos``: everything twice at once, and workers that lose their thread."""

from __future__ import annotations

from tests.chaos.running import play


def test_whatever_comes_twice_or_too_late_takes_effect_once() -> None:
    assert "violations: 0" in play("crowds", seeds=4)
