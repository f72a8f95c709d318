"""Fixtures that run the product's own processes on the test servers: worker, scheduler, web."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence

import psycopg
import pytest

from reviewer.launch import processes
from reviewer.launch.options import read_options
from reviewer.launch.plan import process_table
from tests.database import empty_broker, manage
from tests.servers import PROJECT, servers

START_SECONDS = 60.0
IDLE_SECONDS = 10.0
STOP_SECONDS = 5.0
WORKER_CHILDREN = "3"


class Process:
    """One process of the product: started when first needed, killed and started again at will."""

    def __init__(self, name: str, command: Sequence[str], *, ready: str, **environment: str) -> None:
        self.name = name
        self.log = servers().home / f"{name}.log"
        self._command = list(command)
        self._ready = ready
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Say whether it lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the parent."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it says in its log that it is ready."""
        offset = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = processes.start(
                self._command,
                env=servers().child_environment(**self._environment),
                log=log,
                cwd=PROJECT,
            )
        self._wait_until_ready(offset)

    def ensure(self) -> None:
        """Start it unless it runs."""
        if not self.is_running:
            self.start()

    def kill(self) -> None:
        """SIGKILL it with all its children, as a power cut would."""
        if self._process is None:
            return
        processes.end_group(self._process)
        self._process = None

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """Ask it to end, then make it."""
        if self._process is None:
            return
        processes.stop(self._process, signal.SIGTERM, grace=STOP_SECONDS)
        self._process = None

    def said(self) -> str:
        """Return everything it has logged."""
        return self.log.read_text(errors="replace")

    def _wait_until_ready(self, offset: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.is_running:
            if self._ready in self.said()[offset:]:
                return
            time.sleep(0.05)
        raise AssertionError(f"The {self.name} did not start:\n{self.said()[offset:]}")


class Worker(Process):
    """The Celery worker that runs the agents."""

    def come_to_rest(self) -> None:
        """Empty the broker and wait until no thread is locked; kill the worker if that takes too long."""
        empty_broker()
        deadline = time.monotonic() + IDLE_SECONDS
        while _locked_threads():
            if time.monotonic() > deadline:
                self.kill()
                return
            time.sleep(0.05)


def _locked_threads() -> int:
    with psycopg.connect(servers().superuser_url, autocommit=True) as link:
        row = link.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchone()
    assert row is not None
    return int(row[0])


def _command(name: str, port: int = 0) -> Sequence[str]:
    """Return the command that `make run` would start."""
    options = read_options(servers().environment())
    return next(row.command for row in process_table(options, port) if row.name == name)


def threads_worker_command() -> Sequence[str]:
    """Return the command of a worker whose pool is threads of one process."""
    return [*_command("worker"), "--loglevel=INFO", "--pool=threads"]


@pytest.fixture(scope="session")
def _worker_process() -> Iterator[Worker]:
    environment = {"COUNTERSIGN_WORKERS": WORKER_CHILDREN, "COUNTERSIGN_LOG_LEVEL": "INFO"}
    worker = Worker("worker", [*_command("worker"), "--loglevel=INFO"], ready=" ready.", **environment)
    yield worker
    worker.stop()


@pytest.fixture(scope="session")
def _scheduler_process() -> Iterator[Process]:
    scheduler = Process(
        "scheduler", _command("scheduler"), ready="Scheduler is ready.", COUNTERSIGN_LOG_LEVEL="INFO"
    )
    yield scheduler
    scheduler.stop()


@pytest.fixture
def worker(committed_db: None, registered_agents: None, _worker_process: Worker) -> Iterator[Worker]:
    """A running worker (``kill``, ``restart``, ``said``) with all agents registered, on committed data."""
    _worker_process.ensure()
    yield _worker_process
    _worker_process.come_to_rest()


@pytest.fixture
def scheduler(committed_db: None, _scheduler_process: Process) -> Iterator[Process]:
    """A running scheduler, which calls the sweep; it stops after the test."""
    _scheduler_process.ensure()
    yield _scheduler_process
    _scheduler_process.stop()


class Site(Process):
    """Daphne on a port of its own."""

    def __init__(self) -> None:
        self.port = _free_port()
        super().__init__("web", _command("web", self.port), ready="", PORT=str(self.port))

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def session_cookie(self) -> str:
        """The name of its session cookie, which tells sites on one host apart."""
        return f"countersign_{self.port}"

    def _wait_until_ready(self, offset: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.is_running:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"{self.url}/healthz", timeout=5).close()
                return
            time.sleep(0.05)
        raise AssertionError(f"The web process did not start:\n{self.said()[offset:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def _site_process(django_db_setup: None) -> Iterator[Site]:
    manage("collectstatic", "--no-input", "--verbosity=0")
    site = Site()
    yield site
    site.stop()


@pytest.fixture
def live_server_process(committed_db: None, _site_process: Site) -> Site:
    """The site as it runs in production, on committed data: ``live_server_process.url``."""
    _site_process.ensure()
    return _site_process
