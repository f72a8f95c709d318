"""Whole cycles each second with eight clients through the API, beside bare LangGraph on the same processors

A cycle is: start a run, wait for its task, open it, approve it, wait for the end. The baseline runs the same
agent in as many processes as there are processors, without web, queue, tasks or evidence.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from statistics import median

from tests.bench.bare import Bare, make_tables
from tests.bench.figures import Times
from tests.bench.product import Desk, Product

CLIENTS = 8
WARM_UP, SECONDS = 3.0, 6.0
ROUNDS = 5


def measure(product: Product) -> None:
    owner_url = (product.home.read("owner.dsn") or "").strip()
    make_tables(owner_url)
    desk = Desk.at(product)
    desks = [desk.another() for _ in range(CLIENTS)]
    ours, bare = [], []
    for _ in range(ROUNDS):
        ours.append(_cycles_by_threads([one.cycle for one in desks]))
        bare.append(_cycles_by_processes(owner_url))
    print(f"{'cycles each second':38}{'median':>9}{'least':>9}{'most':>8}")
    for name, values in (("bare", bare), ("the product", ours)):
        print(f"{name:38}{median(values):9.1f}{min(values):9.1f}{max(values):8.1f}")
    shares = [own / others for own, others in zip(ours, bare, strict=True)]
    print(f"{'share, of the same round':38}{median(shares):9.2f}{min(shares):9.2f}{max(shares):8.2f}")


def _cycles_by_threads(cycles: list[Callable[[], None]]) -> float:
    """Let each run again and again; return how many end each second, once all of them are in their stride."""
    done, over = [0] * len(cycles), threading.Event()

    def work(place: int) -> None:
        while not over.is_set():
            cycles[place]()
            done[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(cycles))]
    for thread in threads:
        thread.start()
    time.sleep(WARM_UP)
    began, before = time.monotonic(), sum(done)
    time.sleep(SECONDS)
    rate = (sum(done) - before) / (time.monotonic() - began)
    over.set()
    for thread in threads:
        thread.join()
    return rate


def _cycles_by_processes(owner_url: str) -> float:
    """Share the clients out among one process for each processor."""
    spawn, count = multiprocessing.get_context("spawn"), os.cpu_count() or 1
    with spawn.Pool(count) as pool:
        warm = [pool.apply_async(_bare_cycles, (owner_url, CLIENTS // count)) for _ in range(count)]
        return sum(one.get() for one in warm)


def _bare_cycles(owner_url: str, threads: int) -> float:
    bares = [Bare(owner_url) for _ in range(threads)]
    for bare in bares:
        bare.cycle(Times())
    return _cycles_by_threads([partial(bare.cycle, Times()) for bare in bares])
