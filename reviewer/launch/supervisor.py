"""Keeping the processes alive, or ending all: the product's rule of supervision.

A restarted kind may die twice in a minute; its third death ends all: a restart does not mend what is wrong.
The death of any other kind ends all at once.
"""

import contextlib
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reviewer.launch import processes
from reviewer.launch.errors import LaunchError
from reviewer.launch.home import Home
from reviewer.launch.options import PROJECT
from reviewer.launch.plan import OnDeath, Process

DEATHS_ALLOWED = 3
WINDOW_SECONDS = 60.0
POLL_SECONDS = 0.1
LOG_LINES_SHOWN = 5


@dataclass
class _Running:
    plan: Process
    child: subprocess.Popen[bytes]
    deaths: deque[float] = field(default_factory=lambda: deque(maxlen=DEATHS_ALLOWED))


class Supervisor:
    """Runs the process table. `servers` are children that the caller starts and stops; a death ends all."""

    def __init__(
        self,
        home: Home,
        *,
        env: Mapping[str, str],
        servers: Mapping[str, subprocess.Popen[bytes]],
        report: Callable[[str], None],
    ) -> None:
        self._home = home
        self._env = dict(env)
        self._servers = dict(servers)
        self._report = report
        self._running: dict[str, _Running] = {}

    def start(self, table: Sequence[Process]) -> None:
        for plan in table:
            self._running[plan.name] = _Running(plan, self._spawn(plan))

    def check(self) -> None:
        """Restart what died and may be restarted. Raises LaunchError when all must end."""
        for name, child in self._servers.items():
            if child.poll() is not None:
                raise LaunchError(f"{name} ended ({_how(child)}); see {self._home.logs}.")
        for running in self._running.values():
            if running.child.poll() is not None:
                self._bury(running)

    def stop(self, *, hurry: Callable[[], bool]) -> None:
        """Ask all to end, wait as long as each may take or until `hurry` says so, then end their groups."""
        running = list(reversed(self._running.values()))
        for each in running:
            # A stop can come between a child's death and our next look.
            with contextlib.suppress(ProcessLookupError):
                each.child.send_signal(signal.SIGTERM)
        began = time.monotonic()
        for each in running:
            deadline = began + each.plan.stop_seconds
            while each.child.poll() is None and time.monotonic() < deadline and not hurry():
                time.sleep(0.05)
        for each in running:
            processes.end_group(each.child)
        self._running.clear()

    def _spawn(self, plan: Process) -> subprocess.Popen[bytes]:
        with self._home.open_log(plan.name) as log:
            return processes.start(
                plan.command, env=self._env, log=log, cwd=PROJECT, death_signal=plan.death_signal
            )

    def _bury(self, running: _Running) -> None:
        plan, now = running.plan, time.monotonic()
        # Its children must not go on beside the ones of its successor.
        processes.end_group(running.child)
        how = _how(running.child)
        if plan.on_death is OnDeath.END_ALL:
            raise LaunchError(f"The {plan.name} process ended ({how}).{self._last_words(plan.name)}")
        running.deaths.append(now)
        in_window = [death for death in running.deaths if now - death < WINDOW_SECONDS]
        if len(in_window) >= DEATHS_ALLOWED:
            raise LaunchError(
                f"The {plan.name} process ended {len(in_window)} times within a minute ({how})."
                f"{self._last_words(plan.name)}"
            )
        self._report(f"The {plan.name} process ended ({how}) and is started again.")
        running.child = self._spawn(plan)

    def _last_words(self, name: str) -> str:
        log = self._home.logs / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return "".join([f" The end of {log}:", *(f"\n    {line}" for line in lines)])


def _how(child: subprocess.Popen[bytes]) -> str:
    code = child.returncode
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
