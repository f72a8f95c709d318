"""Playing schedules of one part, one seed after the other, until enough was reached.

A schedule that hangs or breaks down is reported with its seed, and the others are played all the same. The
report is kept in a file after every schedule, so that a run that was ended goes on where it was.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.agents import effects
from tests.chaos.failpoints import OF_PART
from tests.chaos.report import Report, say
from tests.chaos.world import World

BAD_SEEDS = 10
"""So many that are not well are enough."""
Play = Callable[[int, Sequence[str], Report], list[str]]
"""Plays a seed, on the points that are wanted, and returns what does not balance."""


def play(
    name: str,
    world: World,
    seeds: Iterable[int],
    *,
    each: int,
    points: Sequence[str],
    report: Report,
    kept: Path | None,
    bad_seeds: int = BAD_SEEDS,
) -> Report:
    """Play seeds that the report does not know until every point was reached ``each`` times."""
    part: Any = importlib.import_module(f"tests.chaos.{name}")
    names = [point.name for point in part.POINTS]
    waiting = [seed for seed in seeds if seed not in report.seeds]
    bad = 0
    while waiting and bad < bad_seeds and not is_enough(report, names, each):
        with contextlib.ExitStack() as stack:
            play_one = stack.enter_context(part.stage(world))
            while waiting and bad < bad_seeds and not is_enough(report, names, each):
                seed = waiting.pop(0)
                wanted = points or wanted_of(report, names, each)
                found, is_broken = _play_one(play_one, seed, wanted, report)
                bad += bool(found)
                report.note(seed, found, wanted=wanted)
                if kept is not None:
                    report.keep(kept)
                if is_broken:
                    break
    return report


def tell(name: str, report: Report, each: int) -> int:
    """Print a part's report; return 1 if it is not well."""
    names = [point.name for point in OF_PART[name]]
    say(f"\n{name}: {report.seconds:.0f} s, load {os.getloadavg()[0]:.1f}\n{report.text(names)}")
    return 1 if report.violations or any(report.deaths[name] < each for name in names) else 0


def is_enough(report: Report, names: Sequence[str], each: int) -> bool:
    """Say whether every point was reached often enough; without a number, all seeds are played."""
    return each > 0 and bool(names) and all(report.deaths[name] >= each for name in names)


def wanted_of(report: Report, names: Sequence[str], each: int) -> list[str]:
    """Return the points that were reached too seldom, least first; none where no number is asked for."""
    missing = [name for name in names if report.deaths[name] < each]
    return sorted(missing, key=lambda name: report.deaths[name])


def _play_one(play_one: Play, seed: int, wanted: Sequence[str], report: Report) -> tuple[list[str], bool]:
    """Return what does not balance, and whether the schedule broke down."""
    database, books = (importlib.import_module(f"tests.{name}") for name in ("database", "chaos.books"))
    began, deaths = time.monotonic(), report.deaths.total()
    try:
        database.wipe()
        effects.clear()
        books.open_anew()
        found, is_broken = play_one(seed, wanted, report), False
    except Exception as error:  # noqa: BLE001  the other seeds are played all the same
        traceback.print_exc()
        found, is_broken = [f"it broke down: {type(error).__name__}: {error}"[:2000]], True
    seconds, died = time.monotonic() - began, report.deaths.total() - deaths
    report.seconds += seconds
    load, verdict = os.getloadavg()[0], "; NOT WELL" if found else ""
    say(f"seed {seed}: {seconds:.0f} s, {died} deaths, load {load:.1f}{verdict}")
    return found, is_broken
