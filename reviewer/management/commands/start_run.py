"""``manage.py start_run AGENT --input JSON``: start a run from a shell."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents_runtime.errors import InvalidInput, RuntimeProblem
from agents_runtime.models import Run
from agents_runtime.states import RunStatus
from reviewer import steering
from reviewer.accounts.models import User
from reviewer.api.bodies import Unfit, Unreadable, parse
from reviewer.api.shapes import as_json, run_shape
from reviewer.errors import Invalid, ReviewProblem

DEFAULT_USER = "developer"
POLL_SECONDS = 0.1
WORKING = frozenset({RunStatus.QUEUED, RunStatus.RUNNING})


class Command(BaseCommand):
    """Start a run, and perhaps wait until it needs people or has ended."""

    help = "Start a run of AGENT and print its id; with --wait also print, as JSON, what came of it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take agent, input and whose run it is."""
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("--input", default="{}", metavar="JSON", help="fits the agent's input schema")
        parser.add_argument("--user", default=DEFAULT_USER, metavar="NAME", help="in whose name it runs")
        parser.add_argument("--wait", action="store_true", help="until it pauses, ends or fails")
        parser.add_argument("--timeout", type=float, default=300.0, help="seconds that --wait waits")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start it; exit with 1 if it cannot start, or fails while we wait."""
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user named {options['user']}. Name one with --user.")
        run = _start(options["agent"], options["input"], user)
        self.stdout.write(str(run.pk))
        if not options["wait"]:
            return
        self.stdout.flush()
        run = _wait(run, seconds=options["timeout"])
        self.stdout.write(_as_json(run, user))
        if run.status == RunStatus.FAILED:
            raise CommandError(f"The run failed: {run.error}")


def _start(agent: str, text: str, user: User) -> Run:
    try:
        return steering.start_run(agent, input=parse(text.encode("utf-8", "surrogatepass")), by=user)
    except (Unfit, Unreadable) as problem:
        raise CommandError(f"--input: {problem}") from problem
    except (Invalid, InvalidInput) as problem:
        found = "; ".join(f"{item.pointer or 'input'}: {item.message}" for item in problem.problems)
        raise CommandError(f"{problem} {found}") from problem
    except (ReviewProblem, RuntimeProblem) as problem:
        raise CommandError(str(problem)) from problem


def _wait(run: Run, *, seconds: float) -> Run:
    deadline = time.monotonic() + seconds
    while run.status in WORKING:
        if time.monotonic() > deadline:
            raise CommandError(f"Still {run.status} after {seconds:g} seconds. Is a worker running?")
        time.sleep(POLL_SECONDS)
        run.refresh_from_db()
    return run


def _as_json(run: Run, user: User) -> str:
    return as_json(run_shape(run, reader=user))
