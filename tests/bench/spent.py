"""Where a cycle's processor time goes, by process: what other programs do at the same time does not count

Whole cycles through the API, one after the other; and what the same agent takes on bare LangGraph.
"""

import contextlib
import os
import time
from collections import Counter

import psutil
import psycopg

from tests.bench.bare import Bare, make_tables
from tests.bench.figures import MILLISECONDS, MOST_SECONDS, Times
from tests.bench.product import Desk, Product

ROUNDS = 30
NAMES = {"daphne": "web", "celery": "worker", "scheduler": "scheduler", "valkey-server": "Valkey"}


def measure(product: Product) -> None:
    owner_url = (product.home.read("owner.dsn") or "").strip()
    make_tables(owner_url)
    desk, bare = Desk.at(product), Bare(owner_url)
    desk.cycle()
    bare.cycle(Times())
    before = _spent(owner_url)
    until, rounds = time.monotonic() + MOST_SECONDS, 0
    while rounds < ROUNDS and time.monotonic() < until:
        desk.cycle()
        rounds += 1
    product_spent = _spent(owner_url) - before
    before, own_before = _spent(owner_url), sum(os.times()[:2])
    for _ in range(rounds):
        bare.cycle(Times())
    own, servers = sum(os.times()[:2]) - own_before, _spent(owner_url) - before
    bare_spent = Counter({"the agent's process": own, "PostgreSQL": servers["PostgreSQL"]})
    print(f"{'processor milliseconds for each cycle':38}{'':>9}")
    for title, spent in (("the product", product_spent), ("bare", bare_spent)):
        print(f"{title:38}{spent.total() * MILLISECONDS / rounds:9.1f}")
        for name, seconds in spent.most_common():
            print(f"    {name:34}{seconds * MILLISECONDS / rounds:9.1f}")


def _spent(owner_url: str) -> Counter[str]:
    """Return the processor seconds that the product's processes have used so far, by what they are."""
    spent: Counter[str] = Counter()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # one that ended meanwhile did none of the work
            words = " ".join(process.cmdline())
            name = next((told for word, told in NAMES.items() if word in words), None)
            if name:
                times = process.cpu_times()
                spent[name] += times.user + times.system
    with psycopg.connect(owner_url) as link:
        server = psutil.Process(link.info.backend_pid).parent()
        assert server
        for process in server.children():
            times = process.cpu_times()
            spent["PostgreSQL"] += times.user + times.system
        own = server.cpu_times()
        spent["PostgreSQL"] += own.children_user + own.children_system
    return spent
