"""The scheduler: sweeps every two seconds, for ever. It needs the database; a broker only speeds it up."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, connection
from psycopg_pool import PoolTimeout

from agents_runtime import recovery

log = logging.getLogger(__name__)


class Command(BaseCommand):
    """Ends on SIGTERM or Ctrl-C; any number of them may run."""

    help = "Find runs whose work nobody is doing, and wake a worker for each."

    def add_arguments(self, parser: CommandParser) -> None:
        """One option: the pause between sweeps."""
        parser.add_argument("--seconds", type=float, default=2.0, help="between two sweeps (default 2)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep until told to end."""
        over = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: over.set())
        self.stdout.write("Scheduler is ready.")
        while not over.wait(options["seconds"]):
            _sweep()


def _sweep() -> None:
    try:
        if woken := recovery.sweep():
            log.info("woke workers for runs that were stuck", extra={"runs": woken})
    except (DatabaseError, PoolTimeout):
        log.warning("the sweep could not reach the database; it will try again", exc_info=True)
    finally:
        connection.close()
