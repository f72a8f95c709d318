"""Running the commands that end: several at once, each with a log of its own."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reviewer.launch import processes
from reviewer.launch.errors import LaunchError
from reviewer.launch.home import Home
from reviewer.launch.options import PROJECT
from reviewer.launch.plan import Chore
from reviewer.launch.stopping import StopRequests

STOP_SECONDS = 5.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Begun:
    """A chore that runs."""

    chore: Chore
    child: subprocess.Popen[bytes]
    log: Path


class Chores:
    """Whatever was begun is stopped, at the latest, when `stack` unwinds."""

    def __init__(
        self,
        stack: contextlib.ExitStack,
        home: Home,
        *,
        env: Mapping[str, str],
        owner_env: Mapping[str, str],
        requests: StopRequests,
    ) -> None:
        self._stack = stack
        self._home = home
        self._env = dict(env)
        self._owner_env = dict(owner_env)
        self._requests = requests

    def do(self, chores: Sequence[Chore]) -> None:
        """Run them at once, to the end of all. Raises LaunchError for the first that fails."""
        for begun in [self.begin(chore) for chore in chores]:
            self.finish(begun)

    def begin(self, chore: Chore) -> Begun:
        path = self._home.logs / f"{chore.name}.log"
        path.unlink(missing_ok=True)
        env = self._env | (self._owner_env if chore.as_owner else {})
        with self._home.open_log(chore.name) as log:
            child = processes.start(chore.command, env=env, log=log, cwd=PROJECT)
        self._stack.callback(processes.stop, child, signal.SIGTERM, grace=STOP_SECONDS)
        return Begun(chore, child, path)

    def finish(self, begun: Begun) -> list[str]:
        """Wait for it; return what it said to people, without the structured log lines."""
        while begun.child.poll() is None:
            self._requests.raise_if_asked()
            time.sleep(POLL_SECONDS)
        lines = [line.rstrip() for line in begun.log.read_text(errors="replace").splitlines()]
        said = [line for line in lines if line and not line.startswith("{")]
        if begun.child.returncode != 0:
            reason = said[-1] if said else f"exit code {begun.child.returncode}"
            raise LaunchError(f"{begun.chore.label}: {reason} (see {begun.log})")
        return said
