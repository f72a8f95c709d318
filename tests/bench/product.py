"""A product of the benchmark's own, started as `make run` does it, in a new home; and its clients."""

import contextlib
import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from reviewer.launch import beside
from reviewer.launch.home import Home
from tests.launch.machines import PROJECT, clean_environment, launch, remove_home

AGENTS = PROJECT / "tests" / "bench" / "langgraph.json"
AGENT = "b-one-gate"
INPUT = {"messages": [{"role": "user", "content": "Send 120 euros to the garden club."}]}
APPROVE = {"type": "approve"}
NOBODY_LISTENS = "db=7"
FIRST_LOOK_AGAIN, LAST_LOOK_AGAIN = 0.02, 0.1  # seconds
T = TypeVar("T")


@dataclass(frozen=True)
class Product:
    """A running product: its address and its home."""

    port: int
    home: Home

    def environment(self) -> dict[str, str]:
        """Return what a process needs to work on its database; its messages and hints reach nobody."""
        found = clean_environment(COUNTERSIGN_HOME=str(self.home.path))
        beside.adopt(found)
        return found | {
            "DJANGO_SETTINGS_MODULE": "reviewer.config.settings",
            "COUNTERSIGN_LOG_LEVEL": "WARNING",
            "REDIS_URL": found["REDIS_URL"].replace("db=0", NOBODY_LISTENS),
        }

    def client(self, person: str) -> "Client":
        """Return a client with a token of a demo account."""
        command = [sys.executable, "manage.py", "create_token", person]
        environment = clean_environment(COUNTERSIGN_HOME=str(self.home.path))
        done = subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True
        )
        return Client(self.port, done.stdout.strip())


class Client:
    """One caller of the API over one connection that stays open."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def another(self) -> "Client":
        """Return a second connection of the same person."""
        return Client(self._port, self._token)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of an answer; anything but success is an error."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body)
        self._connection.request(method, f"/api/v1/{path}", content, headers)
        response = self._connection.getresponse()
        text = response.read()
        assert response.status < 300, text
        return json.loads(text)


@dataclass(frozen=True)
class Desk:
    """Somebody who starts runs and somebody who decides on them: never the same person."""

    starter: Client
    decider: Client

    @classmethod
    def at(cls, product: Product) -> "Desk":
        """Return the two demo accounts."""
        return cls(product.client("developer"), product.client("reviewer"))

    def another(self) -> "Desk":
        """Return the same two people over connections of their own."""
        return Desk(self.starter.another(), self.decider.another())

    def start(self) -> str:
        """Start a run and return its id."""
        return str(self.starter.ask("POST", "runs", {"agent": AGENT, "input": INPUT})["id"])

    def wait_for_task(self, run: str) -> str:
        """Return the id of the run's open task."""
        found = until(lambda: self.decider.ask("GET", f"tasks?status=open&run={run}&wait=30")["items"])
        return str(found[0]["id"])

    def digest(self, task: str) -> str:
        """Open the card, and return what a decision is bound to."""
        return str(self.decider.ask("GET", f"tasks/{task}")["digest"])

    def approve(self, task: str, digest: str) -> None:
        """Approve the card."""
        self.decider.ask("POST", f"tasks/{task}/decision", {"answer": APPROVE, "digest": digest})

    def wait_for_end(self, run: str) -> None:
        """Wait until the run has finished."""
        until(lambda: self.starter.ask("GET", f"runs/{run}?wait=30")["status"] == "finished")

    def cycle(self) -> None:
        """Start a run and wait for its task, open it, approve it and wait for what comes of it."""
        run = self.starter.ask("POST", "runs?wait=30", {"agent": AGENT, "input": INPUT})
        ((task,),) = (pause["tasks"] for pause in run["pauses"])
        decision = {"answer": APPROVE, "digest": self.digest(task)}
        made = self.decider.ask("POST", f"tasks/{task}/decision?wait=30", decision)
        if made["run_status"] != "finished":
            self.wait_for_end(run["id"])


def until(look: Callable[[], T]) -> T:
    """Look again and again until there is something to see, less and less often: looking costs, too."""
    deadline, pause = time.monotonic() + 60, FIRST_LOOK_AGAIN
    while not (found := look()):
        assert time.monotonic() < deadline, "waited a minute in vain"
        time.sleep(pause)
        pause = min(pause * 1.5, LAST_LOOK_AGAIN)
    return found


@contextlib.contextmanager
def running_product() -> Iterator[Product]:
    """Start a product with the benchmark's agent; end it and remove what it stored."""
    with tempfile.TemporaryDirectory(prefix="countersign-bench-") as folder:
        home = Home(Path(folder) / "home")
        env = clean_environment(COUNTERSIGN_HOME=str(home.path), COUNTERSIGN_AGENTS=str(AGENTS), PORT="0")
        launcher = launch(Path(folder), "run", env=env)
        try:
            launcher.wait_until_it_says("Ctrl-C stops everything.", seconds=120)
            port = re.search(r"is ready: http://127\.0\.0\.1:(\d+)/", launcher.said())
            assert port
            yield Product(int(port[1]), home)
        finally:
            launcher.end()
            remove_home(home.path)
