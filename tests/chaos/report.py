"""What a run of chaos did and found, to be read by people."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TARGET_SECONDS = 10.0


@dataclass
class Report:
    """Faults by name, seconds from a SIGKILL to work again by who died, and counter-examples.

    ``restarts``: the seconds that a worker took to start again.
    """

    deaths: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    restarts: list[float] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    runs: int = 0
    decisions: int = 0
    seeds: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def note(self, seed: int, found: Iterable[str], *, wanted: Sequence[str]) -> None:
        """Note that a seed was played, and what was found; ``wanted`` is needed to play it again."""
        self.seeds.append(seed)
        on = f" on {','.join(wanted)}" if wanted else ""
        self.violations += [f"seed {seed}{on}: {one}" for one in found]

    def recovered(self, who: str, seconds: float) -> None:
        """Note how long it took after a death until there was work again."""
        self.recoveries.setdefault(who, []).append(seconds)

    def add(self, other: Report) -> None:
        """Add what another process did."""
        self.deaths += other.deaths
        self.faults += other.faults
        for who, seconds in other.recoveries.items():
            self.recoveries.setdefault(who, []).extend(seconds)
        self.restarts += other.restarts
        self.violations += other.violations
        self.runs += other.runs
        self.decisions += other.decisions
        self.seeds += other.seeds
        self.seconds = max(self.seconds, other.seconds)

    def keep(self, file: Path) -> None:
        """Write it to a file, whole or not at all."""
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(self.__dict__))
        draft.rename(file)

    @classmethod
    def kept(cls, file: Path) -> Report:
        """Read what was kept."""
        told = json.loads(file.read_text())
        told |= {name: Counter(told[name]) for name in ("deaths", "faults")}
        return cls(**told)

    def text(self, points: Iterable[str]) -> str:
        """Return the whole report; ``points`` are those that should have been reached."""
        numbers = f"{min(self.seeds)} to {max(self.seeds)}" if self.seeds else "none"
        lines = [f"{len(self.seeds)} seeds ({numbers}): {self.runs} runs, {self.decisions} decisions"]
        if named := list(points):
            lines += ["", "deaths by failpoint:", *(f"  {name:28} {self.deaths[name]:5}" for name in named)]
        lines += ["", f"faults injected: {self.deaths.total() + self.faults.total()}; besides those deaths:"]
        lines += [f"  {name:28} {count:5}" for name, count in sorted(self.faults.items())]
        if self.recoveries:
            lines += ["", *self._recovery()]
        lines += ["", f"violations: {len(self.violations)}", *(f"  {one}" for one in self.violations)]
        return "\n".join(lines)

    def _recovery(self) -> list[str]:
        everybody = [one for seconds in self.recoveries.values() for one in seconds]
        lines = [f"{_spread(everybody)} (target: p95 under {TARGET_SECONDS:.0f} s)"]
        lines += [f"  {who}: {_spread(seconds)}" for who, seconds in sorted(self.recoveries.items())]
        if self.restarts:
            lines.append(f"  of a whole worker, until the next one is ready: {_spread(self.restarts)}")
        return [f"recovery after SIGKILL: {lines[0]}", *lines[1:]]


def _spread(seconds: Iterable[float]) -> str:
    ordered = sorted(seconds)
    middle, late, last = (ordered[round(share * (len(ordered) - 1))] for share in (0.5, 0.95, 1.0))
    return f"p50 {middle:.1f} s, p95 {late:.1f} s, max {last:.1f} s of {len(ordered)}"


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
