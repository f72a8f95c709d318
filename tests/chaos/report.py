"""What a run of chaos did and found, to be read by people."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

TARGET_SECONDS = 10.0


@dataclass
class Report:
    """Faults by name, seconds from a SIGKILL to work again, and counter-examples of the invariants."""

    deaths: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    recoveries: list[float] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    runs: int = 0
    decisions: int = 0
    seeds: list[int] = field(default_factory=list)

    def text(self, points: Iterable[str]) -> str:
        """Return the whole report; ``points`` are those that should have been reached."""
        lines = [f"seeds {self.seeds[0]} to {self.seeds[-1]}: {self.runs} runs, {self.decisions} decisions"]
        lines += ["", "deaths by failpoint:"]
        lines += [f"  {name:28} {self.deaths[name]:5}" for name in points]
        lines += ["", "other faults:"]
        lines += [f"  {name:28} {count:5}" for name, count in sorted(self.faults.items())]
        if self.recoveries:
            lines += ["", self._recovery()]
        lines += ["", f"violations: {len(self.violations)}", *(f"  {one}" for one in self.violations)]
        return "\n".join(lines)

    def _recovery(self) -> str:
        ordered = sorted(self.recoveries)
        middle, late, last = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95, 1.0))
        return (
            f"recovery after SIGKILL: p50 {middle:.1f} s, p95 {late:.1f} s, max {last:.1f} s "
            f"of {len(ordered)} (target: p95 under {TARGET_SECONDS:.0f} s)"
        )


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
