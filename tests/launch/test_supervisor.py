"""Supervision: what dies is restarted or ends all, and nothing is left when it stops."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from reviewer.launch.errors import LaunchError
from reviewer.launch.home import open_home
from reviewer.launch.plan import OnDeath, Process
from reviewer.launch.supervisor import Supervisor
from tests.launch.machines import family, survivors, wait_for

# Starts a grandchild that ignores requests to stop, tells both pids, and stays.
PARENT = (
    "import os, signal, subprocess, sys, time;"
    "child = subprocess.Popen([sys.executable, '-c', 'import signal, time;"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)']);"
    "time.sleep(600)"
)


class Watch:
    """A supervisor in a home of its own, with what it reported."""

    def __init__(self, folder: Path) -> None:
        self.reports: list[str] = []
        self.home = open_home(folder / "home")
        self.supervisor = Supervisor(self.home, env=os.environ, servers={}, report=self.reports.append)

    def children(self) -> list[psutil.Process]:
        return [one for one in psutil.Process().children() if self._is_ours(one)]

    def children_once(self, count: int) -> list[psutil.Process]:
        """The children when there are so many; while one starts, its command line comes and goes."""
        found: list[psutil.Process] = []

        def are_there() -> bool:
            found[:] = self.children()
            return len(found) == count

        wait_for("the children", are_there)
        return found

    def only_child(self) -> psutil.Process:
        return self.children_once(1)[0]

    def _is_ours(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is one, too
            return str(self.home.path) in process.cmdline()
        return False

    def start(self, *table: Process) -> None:
        self.supervisor.start(table)

    def check_until_replaced(self, *old: psutil.Process) -> list[psutil.Process]:
        """Look after them until each has a successor; which death is seen first is not ours to say."""
        successors: list[psutil.Process] = []  # seen once: while it starts, its command line comes and goes
        gone = {one.pid for one in old}

        def replaced() -> bool:
            self.supervisor.check()
            successors[:] = [one for one in self.children() if one.pid not in gone]
            return len(successors) == len(old)

        wait_for("the successors", replaced)
        return successors

    def check_until_all_ends(self) -> None:
        def still_going() -> bool:
            self.supervisor.check()
            return False

        wait_for("the end of all", still_going)

    def process(self, name: str, on_death: OnDeath, *, code: str = "import time; time.sleep(600)") -> Process:
        # The home's path, as an argument, marks the process as this test's.
        command = (sys.executable, "-c", code, str(self.home.path), name)
        return Process(name, command, on_death, stop_seconds=0.3)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    made = Watch(tmp_path)
    yield made
    made.supervisor.stop(hurry=lambda: True)
    assert made.children() == []


def test_a_killed_worker_is_restarted_and_told_of(watch: Watch) -> None:
    watch.start(watch.process("worker", OnDeath.RESTART))
    worker = watch.only_child()
    worker.kill()
    [successor] = watch.check_until_replaced(worker)
    assert successor.is_running()
    assert watch.reports == ["The worker process ended (SIGKILL) and is started again."]


def test_a_third_death_within_a_minute_ends_all(watch: Watch) -> None:
    watch.start(watch.process("worker", OnDeath.RESTART))
    worker = watch.only_child()
    for _ in range(2):
        worker.kill()
        [worker] = watch.check_until_replaced(worker)
    worker.kill()
    with pytest.raises(LaunchError, match="worker process ended 3 times within a minute"):
        watch.check_until_all_ends()


def test_deaths_of_different_kinds_are_not_added_up(watch: Watch) -> None:
    watch.start(watch.process("worker", OnDeath.RESTART), watch.process("scheduler", OnDeath.RESTART))
    for _ in range(2):
        before = watch.children_once(2)
        for one in before:
            one.kill()
        watch.check_until_replaced(*before)
    watch.supervisor.check()


def test_the_death_of_the_web_ends_all_and_shows_its_last_words(watch: Watch) -> None:
    dying = watch.process("web", OnDeath.END_ALL, code="print('the reason'); raise SystemExit(7)")
    watch.start(dying, watch.process("worker", OnDeath.RESTART))
    with pytest.raises(LaunchError, match=r"web process ended \(exit code 7\)(?s:.*)the reason"):
        watch.check_until_all_ends()


def test_the_death_of_a_server_ends_all(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    server = psutil.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    server.wait()
    supervisor = Supervisor(
        watch.home, env=os.environ, servers={"PostgreSQL": server}, report=watch.reports.append
    )
    with pytest.raises(LaunchError, match=r"PostgreSQL ended \(exit code 3\)"):
        supervisor.check()


def test_stopping_ends_grandchildren_too(watch: Watch) -> None:
    watch.start(watch.process("worker", OnDeath.RESTART, code=PARENT))
    worker = watch.only_child()
    wait_for("the grandchild", lambda: len(family(worker.pid)) == 2)
    everything = family(worker.pid)
    watch.supervisor.stop(hurry=lambda: False)
    assert survivors(everything, seconds=2) == []


def test_what_a_dead_worker_leaves_behind_ends_before_its_successor_starts(watch: Watch) -> None:
    watch.start(watch.process("worker", OnDeath.RESTART, code=PARENT))
    worker = watch.only_child()
    wait_for("the grandchild", lambda: len(family(worker.pid)) == 2)
    _, grandchild = family(worker.pid)
    worker.send_signal(signal.SIGKILL)
    watch.check_until_replaced(worker)
    assert survivors([grandchild], seconds=2) == []
