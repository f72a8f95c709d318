"""The process that forks workers, web processes and sweepers for a schedule; see ``rigged``."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tests.servers import PROJECT, servers

KILLED = -9
PAUSE_SECONDS = 0.1
MAX_TRIES = 300
Job = dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """How one of the forked processes ended, and what it told if it lived."""

    code: int
    told: Any

    @property
    def was_killed(self) -> bool:
        """Say whether it died on the way."""
        return self.code == KILLED


class Nursery:
    """Does jobs, each in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def work(self, *jobs: Job) -> list[Ended]:
        """Do all jobs at once, and return how each ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        ended = [Ended(**one) for one in json.loads(self._process.stdout.readline())]
        if failed := [one.code for one in ended if one.code not in {0, KILLED}]:
            raise AssertionError(f"a process of the nursery failed or hung ({failed}); see above: {jobs}")
        return ended

    def insist(self, job: Job, first: Ended) -> Any:
        """Ask again, for as long as whoever is asked dies or has no answer; return the answer."""
        ended = first
        for _ in range(MAX_TRIES):
            if not ended.was_killed and ended.told["status"] < HTTPStatus.INTERNAL_SERVER_ERROR:
                return ended.told
            time.sleep(PAUSE_SECONDS)
            (ended,) = self.work(job)
        raise AssertionError(f"nobody answers: {job} {ended}")


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    """Keep a nursery."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.rigged", "nursery"],
        cwd=PROJECT,
        env=servers().child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Nursery(process)
        finally:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
