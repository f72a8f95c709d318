"""`make bench`: how long people and agents wait for the product, measured on a product of its own.

Starts everything as `make run` does, in a new home, with one worker process; starts refunds one after the
other and approves each through the API. Prints the median and the 95th percentile of
  - start to card: from the answer to "start a run" until the card can be read;
  - decide: the answer to "approve";
  - click to tool: from the decision to the moment the gate lets the tool run, by the database's clock.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, TypeVar

import psycopg

from reviewer.launch.home import Home
from tests.launch.machines import PROJECT, clean_environment, launch, remove_home, wait_for

T = TypeVar("T")
RUNS = 30
AGENT = "refunds"
INPUT = {"order_id": "A-1043", "complaint": "The lamp arrived broken."}
CLICK_TO_TOOL = """
    SELECT extract(epoch FROM tool.started_at - decision.decided_at)
    FROM agents_runtime_toolexecution AS tool
    JOIN reviewer_reviewtask AS task ON task.pause_id = tool.pause_id AND task.position = tool.position
    JOIN reviewer_decision AS decision ON decision.task_id = task.id
"""


@dataclass
class Product:
    """A running product: its address, and people's tokens."""

    port: int
    home: Home
    database_url: str

    def token(self, person: str) -> str:
        env = clean_environment(
            COUNTERSIGN_DEMO="1",
            COUNTERSIGN_HOME=str(self.home.path),
            COUNTERSIGN_SECRET_KEY=self.home.read("secret_key") or "",
            DATABASE_URL=self.database_url,
            LANGGRAPH_STRICT_MSGPACK="true",
            REDIS_URL="redis://127.0.0.1:1/0",
        )
        command = [sys.executable, "manage.py", "create_token", person]
        return subprocess.run(
            command, cwd=PROJECT, env=env, capture_output=True, text=True, check=True
        ).stdout.strip()

    def ask(self, token: str, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            content = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1/{path}", content, headers)
            response = connection.getresponse()
            text = response.read()
            assert response.status < 300, text
            return json.loads(text)
        finally:
            connection.close()


@dataclass
class Times:
    """Seconds, by what was waited for."""

    start_to_card: list[float] = field(default_factory=list)
    decide: list[float] = field(default_factory=list)
    click_to_tool: list[float] = field(default_factory=list)


def timed(times: list[float], action: Callable[[], T]) -> T:
    began = time.perf_counter()
    result = action()
    times.append(time.perf_counter() - began)
    return result


def measure(product: Product) -> Times:
    times = Times()
    starter, decider = product.token("developer"), product.token("reviewer")
    for _ in range(RUNS):
        run = product.ask(starter, "POST", "runs", {"agent": AGENT, "input": INPUT})["id"]
        task = timed(times.start_to_card, partial(first_task, product, decider, run))
        card = product.ask(decider, "GET", f"tasks/{task}")
        body = {"answer": {"type": "approve"}, "digest": card["digest"]}
        timed(times.decide, partial(product.ask, decider, "POST", f"tasks/{task}/decision", body))
        wait_for("the run to finish", partial(has_finished, product, starter, run), seconds=30)
    with psycopg.connect(product.database_url) as connection:
        times.click_to_tool = [float(row[0]) for row in connection.execute(CLICK_TO_TOOL)]
    return times


def first_task(product: Product, token: str, run: str) -> str:
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        found[:] = product.ask(token, "GET", f"tasks?status=open&run={run}")["items"]
        return bool(found)

    wait_for("the card", is_there, seconds=30)
    return str(found[0]["id"])


def has_finished(product: Product, token: str, run: str) -> bool:
    return bool(product.ask(token, "GET", f"runs/{run}")["status"] == "finished")


def show(times: Times) -> None:
    print(f"{len(times.decide)} runs of {AGENT}, {os.cpu_count()} processors, milliseconds\n")
    print(f"{'':16}{'median':>8}{'95 %':>8}")
    for name, values in vars(times).items():
        high = quantiles(values, n=20)[-1]
        print(f"{name.replace('_', ' '):16}{median(values) * 1000:8.0f}{high * 1000:8.0f}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as folder:
        home = Home(Path(folder) / "home")
        env = clean_environment(COUNTERSIGN_HOME=str(home.path), PORT="0", COUNTERSIGN_WORKERS="1")
        launcher = launch(Path(folder), "run", env=env)
        try:
            launcher.wait_until_it_says("Ctrl-C stops everything.", seconds=120)
            port = re.search(r"is ready: http://127\.0\.0\.1:(\d+)/", launcher.said())
            assert port
            show(measure(Product(int(port[1]), home, (home.read("owner.dsn") or "").strip())))
        finally:
            launcher.end()
            remove_home(home.path)


if __name__ == "__main__":
    main()
