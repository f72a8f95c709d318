"""``python -m tests.chaos deaths product``: play schedules on servers of its own, and report."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from typing import Any

from tests.chaos.report import say
from tests.chaos.world import World, own_world
from tests.servers import servers

ALWAYS = 10_000


def main() -> int:
    """Return 1 if anything was violated, or a failpoint was reached too seldom."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=["deaths", "product"])
    parser.add_argument("--seed", type=int, help="play this one schedule")
    parser.add_argument("--seeds", type=int, help="play so many schedules")
    parser.add_argument(
        "--each", type=int, default=20, help="else: play until each failpoint was reached so often"
    )
    options = parser.parse_args()
    with own_world() as world:
        database = importlib.import_module("tests.database")  # needs the settings, which need the servers
        database.manage("migrate", "--verbosity=0", DATABASE_URL=servers().owner_url)
        database.manage("setup_checkpoints", DATABASE_URL=servers().owner_url)
        database.manage("register_agents")
        database.keep_registry()
        parts = [importlib.import_module(f"tests.chaos.{name}") for name in options.parts]
        return max(_play(part, world, options) for part in parts)


def _play(part: Any, world: World, options: argparse.Namespace) -> int:
    began = time.monotonic()
    seeds, each = range(options.seeds or ALWAYS), options.each
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    if options.seed is not None or options.seeds is not None:
        each = 0
    report = part.play(world, seeds, each)
    names = [point.name for point in part.POINTS]
    say(f"\n{part.__name__}: {time.monotonic() - began:.0f} s\n{report.text(names)}")
    return 1 if report.violations or any(report.deaths[name] < each for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
