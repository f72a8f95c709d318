"""The whole product, as `make run` starts it."""

import contextlib
import http.client
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from reviewer.launch.options import PROJECT
from tests.launch.machines import (
    Launcher,
    clean_environment,
    family,
    launch,
    remove_home,
    survivors,
    wait_for,
)

pytestmark = pytest.mark.worker


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "a home with spaces" / ("long" * 25)
    yield folder
    if folder.exists():
        remove_home(folder)


@pytest.fixture
def launcher(home: Path, tmp_path: Path) -> Iterator[Launcher]:
    """The whole product, ready."""
    env = clean_environment(COUNTERSIGN_HOME=str(home), PORT="0", COUNTERSIGN_WORKERS="2")
    made = launch(tmp_path, "run", env=env)
    try:
        made.wait_until_it_says("Ctrl-C stops everything.", seconds=150)
        yield made
    finally:
        made.end()


def status_of(launcher: Launcher, path: str) -> int:
    found = re.search(r"is ready: http://127\.0\.0\.1:(\d+)/", launcher.said())
    assert found, launcher.said()
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def worker_of(launcher: Launcher) -> psutil.Process:
    found: list[psutil.Process] = []  # seen once: while it starts, its command line comes and goes

    def is_there() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(launcher.pid).children()
            found[:] = [one for one in children if "celery" in one.cmdline()]
        return found != []

    wait_for("a worker", is_there)
    return found[0]


def command_beside(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as in a second terminal, which knows of nothing but the home."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=clean_environment(COUNTERSIGN_HOME=str(home)),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def processes_naming(home: Path) -> list[psutil.Process]:
    return [
        one for one in psutil.process_iter(["cmdline"]) if str(home) in " ".join(one.info["cmdline"] or [])
    ]


def test_it_comes_up_mends_its_worker_and_leaves_nothing_on_ctrl_c(launcher: Launcher, home: Path) -> None:
    said = launcher.said()
    assert "reviewer, reviewer2" in said
    assert "password: countersign" in said
    assert status_of(launcher, "/healthz") == 200
    assert stat.S_IMODE((home / "secret_key").stat().st_mode) == 0o600

    worker = worker_of(launcher)
    worker.kill()
    launcher.wait_until_it_says("The worker process ended (SIGKILL) and is started again.")
    assert worker_of(launcher).pid != worker.pid
    wait_for("readiness", lambda: status_of(launcher, "/readyz") == 200, seconds=60)

    made = command_beside(home, "create_token", "developer")
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip().startswith("cs_")

    everything = family(launcher.pid)
    assert launcher.end(signal.SIGINT) == 0
    assert survivors(everything) == []
    refused = command_beside(home, "create_token", "developer")
    assert "DATABASE_URL is not set. Start `make run`" in refused.stderr
    assert launcher.said().endswith("Stopped.\n")


def test_a_start_that_fails_half_way_says_why_in_one_line_and_leaves_nothing(
    home: Path, tmp_path: Path
) -> None:
    env = clean_environment(COUNTERSIGN_HOME=str(home), PORT="0", COUNTERSIGN_WORKERS="many")
    launcher = launch(tmp_path, "run", env=env)
    assert launcher.process.wait(60) == 1
    complaints = [line for line in launcher.said().splitlines() if line.startswith("countersign: ")]
    assert len(complaints) == 1
    assert "COUNTERSIGN_WORKERS" in complaints[0]
    assert "Traceback" not in launcher.said()
    assert processes_naming(home) == []


def test_a_launcher_that_is_killed_takes_everything_with_it(launcher: Launcher) -> None:
    everything = family(launcher.pid)
    launcher.end(signal.SIGKILL)
    assert survivors(everything, seconds=15) == []
