"""The scheduler: sweeps every two seconds, for ever. It needs the database; a broker only speeds it up.

One round wakes workers for stuck runs and does what is due by the clock; once a minute it also asks for
threads to be tidied, and looks through the runs that wait. Any number of schedulers may run: each thing still
happens once.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, connection
from psycopg_pool import PoolTimeout

from agents_runtime import recovery, retention
from agents_runtime.desk import get_desk

log = logging.getLogger(__name__)
TIDY_SECONDS = 60.0


class Command(BaseCommand):
    """Ends on SIGTERM or Ctrl-C; any number of them may run."""

    help = "Wake workers for stuck runs; hold or reject what nobody decided in time; have old threads tidied."

    def add_arguments(self, parser: CommandParser) -> None:
        """One option: the pause between sweeps."""
        parser.add_argument("--seconds", type=float, default=2.0, help="between two sweeps (default 2)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep until told to end."""
        over = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: over.set())
        self.stdout.write("Scheduler is ready.")
        tidied = -TIDY_SECONDS
        while not over.wait(options["seconds"]):
            _do("woke workers for runs that were stuck", recovery.sweep)
            _do("held or rejected what nobody decided in time", get_desk().time_passed)
            if time.monotonic() - tidied >= TIDY_SECONDS:
                tidied = time.monotonic()
                _do("asked for threads to be tidied", retention.ask_workers)
                _do("woke workers for runs that wait and ask nobody", recovery.sweep_waiting)


def _do(what: str, work: Callable[[], int]) -> None:
    try:
        if count := work():
            log.info(what, extra={"count": count})
    except (DatabaseError, PoolTimeout):
        log.warning("the scheduler could not reach the database; it will try again", exc_info=True)
    except Exception:  # the shell: one thing that cannot be done must not keep the others from being done
        log.exception("the scheduler could not do its work", extra={"work": what})
    finally:
        connection.close()
