"""Taking times and printing them: medians, 95th percentiles, and ratios to a baseline of the same run."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median, quantiles

MILLISECONDS = 1000.0
MOST_SECONDS = 25.0
FEWEST_ROUNDS = 10


class Times:
    """Seconds by what was waited for, in the order in which it was first met."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def taking(self, name: str) -> Iterator[None]:
        """Take the time of a block."""
        began = time.perf_counter()
        yield
        self.seconds[name].append(time.perf_counter() - began)


def in_turn(contenders: Mapping[str, Callable[[Times], None]], *, rounds: int) -> dict[str, Times]:
    """Let the contenders run one after the other, round by round, in changing order; return their times.

    One round more comes first and is not counted: it fills caches and opens connections. A slow machine
    takes fewer rounds.
    """
    for contender in contenders.values():
        contender(Times())
    times = {name: Times() for name in contenders}
    order = list(contenders)
    until = time.monotonic() + MOST_SECONDS
    for done in range(rounds):
        for name in order:
            contenders[name](times[name])
        order.reverse()
        if time.monotonic() > until and done >= FEWEST_ROUNDS:
            break
    return times


def heading(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


def table(rows: Mapping[str, Sequence[float]], *, against: Mapping[str, str] | None = None) -> None:
    """Print seconds as milliseconds; ``against`` names the row that a row is divided by."""
    against = against or {}
    print(f"{'milliseconds':38}{'median':>9}{'95 %':>9}{'ratio' if against else '':>8}")
    for name, values in rows.items():
        base = rows.get(against.get(name, ""))
        ratio = f"{median(values) / median(base):8.2f}" if base else ""
        print(
            f"{name:38}{median(values) * MILLISECONDS:9.1f}{high(values) * MILLISECONDS:9.1f}{ratio}",
            flush=True,
        )


def beside(times: Mapping[str, Times], *, baseline: str) -> None:
    """Print each contender's times, with the ratio of medians to the baseline's of the same name."""
    rows = {
        f"{what}: {contender}": values
        for what in times[baseline].seconds
        for contender, taken in times.items()
        for values in [taken.seconds[what]]
    }
    against = {name: f"{name.partition(': ')[0]}: {baseline}" for name in rows if not name.endswith(baseline)}
    table(rows, against=against)


def high(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
