"""``python -m tests.chaos deaths crowds product``: play schedules on servers of its own, and report."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from tests.chaos import stages, together
from tests.chaos.report import Report
from tests.chaos.world import own_world
from tests.servers import servers

ALWAYS = 10_000


def main() -> int:
    """Return 1 if anything was violated, or a failpoint was reached too seldom."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=["deaths", "crowds", "product"])
    parser.add_argument("--seed", type=int, help="play this one schedule")
    parser.add_argument("--seeds", type=int, help="play so many schedules")
    parser.add_argument("--points", default="", help="the failpoints that it was played on, as reported")
    parser.add_argument(
        "--each", type=int, default=20, help="else: play until each failpoint was reached so often"
    )
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first seed that is not well")
    parser.add_argument("--at-once", action="store_true", help="play the parts side by side")
    parser.add_argument("--resume", action="store_true", help="go on where --at-once was ended")
    parser.add_argument("--every", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.at_once:
        return together.play(options.parts, each=options.each, resume=options.resume)
    with own_world() as world:
        database: Any = importlib.import_module(
            "tests.database"
        )  # needs the settings, which need the servers
        database.manage("migrate", "--verbosity=0", DATABASE_URL=servers().owner_url)
        database.manage("setup_checkpoints", DATABASE_URL=servers().owner_url)
        database.manage("register_agents")
        database.keep_registry()
        return max([_play(name, world, options) for name in options.parts])


def _play(name: str, world: Any, options: argparse.Namespace) -> int:
    seeds, each = range(options.first, options.seeds or ALWAYS, options.every), options.each
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    if options.seed is not None or options.seeds is not None:
        each = 0
    report = Report.kept(options.keep) if options.keep and options.keep.exists() else Report()
    points = [word for word in options.points.split(",") if word]
    stages.play(
        name,
        world,
        seeds,
        each=each,
        points=points,
        report=report,
        kept=options.keep,
        bad_seeds=1 if options.fail_fast else stages.BAD_SEEDS,
    )
    return stages.tell(name, report, each)


if __name__ == "__main__":
    sys.exit(main())
