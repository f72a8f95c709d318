"""A long run goes on after what breaks down, and where it was ended; no server is needed to see that."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import database
from tests.agents import effects
from tests.chaos import books, stages
from tests.chaos.failpoints import FAILPOINTS
from tests.chaos.report import Report

Played = list[tuple[int, Sequence[str]]]
NOWHERE: Any = None


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """What a part is given to play: seed 1 breaks down, seed 2 violates something, the others kill."""
    told: Played = []

    @contextlib.contextmanager
    def stage(_: object) -> Iterator[stages.Play]:
        told.append((-1, ()))

        def play(seed: int, wanted: Sequence[str], report: Report) -> list[str]:
            told.append((seed, wanted))
            if seed == 1:
                raise AssertionError("it hangs")
            report.deaths[wanted[0] if wanted else FAILPOINTS[0].name] += 1
            return ["I-1 twice"] if seed == 2 else []

        yield play

    part = SimpleNamespace(POINTS=FAILPOINTS[:2], stage=stage)
    monkeypatch.setitem(sys.modules, "tests.chaos.pretended", part)
    for owner, name in ((database, "wipe"), (books, "open_anew"), (effects, "clear")):
        monkeypatch.setattr(owner, name, lambda: None)
    return told


def play(report: Report, *, each: int = 2, kept: Path | None = None, bad_seeds: int = 10) -> Report:
    """Play the pretended part."""
    return stages.play(
        "pretended",
        NOWHERE,
        range(20),
        each=each,
        points=[],
        report=report,
        kept=kept,
        bad_seeds=bad_seeds,
    )


def test_what_breaks_down_is_told_with_its_seed_and_the_others_are_played(played: Played) -> None:
    report = play(Report())
    assert [seed for seed, _ in played] == [-1, 0, 1, -1, 2, 3, 4]  # on a new stage after the breakdown
    first, second = report.violations
    assert first.startswith("seed 1 on ")
    assert "it hangs" in first
    assert second.endswith("I-1 twice")


def test_the_points_that_were_reached_least_are_wanted_first(played: Played) -> None:
    play(Report())
    one, other = (point.name for point in FAILPOINTS[:2])
    wanted = [tuple(points) for seed, points in played if seed >= 0]
    assert wanted == [(one, other), (other, one), (other, one), (one, other), (other,)]


def test_it_can_stop_at_the_first_seed_that_is_not_well(played: Played) -> None:
    assert play(Report(), bad_seeds=1).seeds == [0, 1]


def test_a_run_that_was_ended_goes_on_where_it_was(played: Played, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    play(Report(), each=1, kept=kept)
    so_far = Report.kept(kept)
    assert so_far.seeds == [0, 1, 2]
    again = play(so_far, kept=kept)
    assert again.seeds == [0, 1, 2, 3, 4]
    assert again.violations[0].startswith("seed 1 ")


def test_shares_of_a_part_are_added_up() -> None:
    one, other = Report(seeds=[0], runs=2), Report(seeds=[1], runs=3, violations=["v"])
    one.recovered("child", 1.0)
    other.recovered("child", 3.0)
    other.recovered("whole worker", 5.0)
    whole = Report()
    whole.add(one)
    whole.add(other)
    text = whole.text([])
    assert "2 seeds (0 to 1): 5 runs" in text
    assert "p50 3.0 s, p95 5.0 s, max 5.0 s of 3" in text
    assert "child: p50 1.0 s, p95 3.0 s, max 3.0 s of 2" in text
    assert "violations: 1" in text
