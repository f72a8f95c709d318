"""What a start runs: the chores that come first, and the table of processes that stay.

A new long-running process is one more row in `process_table`.
"""

import signal
import sys
from dataclasses import dataclass
from enum import Enum

from reviewer.launch.options import Options


class OnDeath(Enum):
    """What the death of a process means for the others."""

    RESTART = "restart"
    END_ALL = "end all"


@dataclass(frozen=True)
class Chore:
    """A command that runs once at each start and ends. `as_owner`: it may change the database's structure."""

    name: str
    label: str
    command: tuple[str, ...]
    as_owner: bool = False


@dataclass(frozen=True)
class Process:
    """A command that stays. `death_signal` is what it gets when the launcher itself is killed."""

    name: str
    command: tuple[str, ...]
    on_death: OnDeath
    stop_seconds: float
    death_signal: signal.Signals = signal.SIGTERM


def manage(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "manage.py", *arguments)


def preparations(*, static_is_current: bool) -> list[Chore]:
    """What must be done before anything serves; they may run at once."""
    database = Chore("prepare", "Database", manage("prepare"), as_owner=True)
    if static_is_current:
        return [database]
    collect = manage("collectstatic", "--noinput", "--clear", "--skip-checks")
    return [database, Chore("collectstatic", "Styles and scripts", collect)]


# Imports the agents' code, so it never runs as the database's owner.
REGISTRATION = Chore("register_agents", "Agents", manage("register_agents", "--skip-checks"))


def process_table(options: Options, port: int) -> list[Process]:
    """In the order they are started; they are stopped in the opposite one."""
    python = sys.executable
    worker = (
        "-m",
        "celery",
        "-A",
        "reviewer.config.celery",
        "worker",
        "--without-gossip",
        "--without-mingle",
    )
    web = (
        "-m",
        "reviewer.config.daphne",
        "-b",
        options.host.strip("[]"),
        "-p",
        str(port),
        "reviewer.config.asgi:application",
    )
    return [
        # With the launcher gone, so is the broker, and each Celery shutdown may wait for it. Its children
        # see that their parent is gone: idle ones end at once, busy ones after a step that nothing records.
        Process("worker", (python, *worker), OnDeath.RESTART, stop_seconds=10, death_signal=signal.SIGKILL),
        Process("scheduler", manage("scheduler", "--skip-checks"), OnDeath.RESTART, stop_seconds=5),
        Process("web", (python, *web), OnDeath.END_ALL, stop_seconds=5),
    ]
