"""What the launch tests share: launchers as real processes, and looking at what is left of them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

PROJECT = Path(__file__).resolve().parents[2]
# Variables that would point a start at the servers of the test session.
OURS = re.compile(r"COUNTERSIGN_|DATABASE_|REDIS_URL|HOST$|PORT$|DJANGO_SETTINGS_MODULE")
# An ordinary user who may still read the checkout, which can lie below a folder of root's.
AS_NOBODY = (
    "setpriv",
    "--reuid=nobody",
    "--regid=nogroup",
    "--clear-groups",
    "--inh-caps=+dac_read_search",
    "--ambient-caps=+dac_read_search",
)


def clean_environment(**changes: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not OURS.match(name)} | changes


def wait_for(what: str, holds: Callable[[], bool], *, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds} s for: {what}"
        time.sleep(0.02)


def family(pid: int) -> list[psutil.Process]:
    """The process and everything below it."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def survivors(processes: list[psutil.Process], *, seconds: float = 10.0) -> list[psutil.Process]:
    """Those that still live after a while; a zombie does not."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return [process for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@dataclass
class Launcher:
    """`python -m reviewer.launch ...`, running."""

    process: subprocess.Popen[str]
    output: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        return self.output.read_text()

    def wait_until_it_says(self, text: str, *, seconds: float = 60.0) -> None:
        def holds() -> bool:
            assert self.process.poll() is None, f"ended early:\n{self.said()}"
            return text in self.said()

        wait_for(f"the launcher to say {text!r}", holds, seconds=seconds)

    def variables(self) -> dict[str, str]:
        """What `services` printed."""
        self.wait_until_it_says("DATABASE_SUPERUSER_URL=")
        return dict(line.split("=", 1) for line in self.said().splitlines())

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal, unless it has ended already, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)


def launch(folder: Path, *arguments: str, env: Mapping[str, str], prefix: tuple[str, ...] = ()) -> Launcher:
    output = folder / f"said-{time.monotonic_ns()}.txt"
    with output.open("w") as file:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "reviewer.launch", *arguments],
            cwd=PROJECT,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            text=True,
        )
    return Launcher(process, output)


def refused(home: Path, *, prefix: tuple[str, ...] = (), **changes: str) -> str:
    """Start the product where it must refuse: return its one line, and see that nothing was begun."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "reviewer.launch", "run"],
        cwd=PROJECT,
        env=clean_environment(COUNTERSIGN_HOME=str(home), **changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("countersign: ")
    assert not (home / "servers.json").exists()
    assert not (home / "servers").exists()
    return lines[0].removeprefix("countersign: ")


def remove_home(home: Path) -> None:
    """Root's installations keep their data elsewhere; take that away, too."""
    pointer = home / "servers.json"
    if pointer.exists():
        data = re.search(r'"data": "([^"]+)"', pointer.read_text())
        assert data
        shutil.rmtree(data[1])
    shutil.rmtree(home)
