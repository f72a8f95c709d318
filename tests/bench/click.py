"""From a reviewer's click to the tool: one run at a time, with real workers, through the API

- start to card: from the call that starts a run until its card can be read;
- decide: the answer to "approve";
- click to tool: from the sending of the decision to the moment the gate lets the tool run.
"""

import time
from functools import partial

from agents_runtime.models import ToolExecution
from tests.bench.figures import Times, in_turn, table
from tests.bench.product import Desk, Product

ROUNDS = 40


def measure(product: Product) -> None:
    desk = Desk.at(product)
    times = in_turn({"the product": partial(_cycle, desk)}, rounds=ROUNDS)
    table(times["the product"].seconds)


def _cycle(desk: Desk, times: Times) -> None:
    with times.taking("start to card"):
        run = desk.start()
        task = desk.wait_for_task(run)
    digest = desk.digest(task)
    clicked = time.time()
    with times.taking("decide"):
        desk.approve(task, digest)
    desk.wait_for_end(run)
    started = ToolExecution.objects.get(run_id=run).started_at
    times.seconds["click to tool"].append(started.timestamp() - clicked)
    times.seconds["click to end, as its caller sees it"].append(time.time() - clicked)
