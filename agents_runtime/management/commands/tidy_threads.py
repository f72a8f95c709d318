"""``manage.py tidy_threads``: prune and delete old checkpoints now, or delete one run's on one's word."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents_runtime import retention, threads
from agents_runtime.errors import RuntimeProblem


class Command(BaseCommand):
    """Needs no worker and no broker. Decisions, the ledger and the trail stay, whatever it is asked."""

    help = "Prune the threads of runs that are over, and delete those that were kept long enough."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which threads, and in whose name."""
        parser.add_argument(
            "--days", type=int, help="delete after so many days (COUNTERSIGN_CHECKPOINT_DAYS)"
        )
        parser.add_argument("--run", type=UUID, help="delete the checkpoints of this run, which is over")
        parser.add_argument("--by", default="", help="who wants it, as the trail will name them (with --run)")
        parser.add_argument("--dry-run", action="store_true", help="only say how many threads are due")

    def handle(self, *args: Any, **options: Any) -> None:
        """Tidy."""
        if options["run"]:
            self._delete_one(options["run"], by=options["by"])
            return
        if options["days"] is not None and options["days"] < 1:
            raise CommandError("Keep checkpoints for at least one day.")
        keep = timedelta(days=options["days"]) if options["days"] else retention.kept_for()
        found = list(retention.due(keep=keep).values_list("pk", flat=True))
        if not options["dry_run"]:
            for run_id in found:
                threads.tidy(run_id, keep=keep)
        self.stdout.write(f"{len(found)} thread(s) {'are due' if options['dry_run'] else 'looked after'}.")

    def _delete_one(self, run_id: UUID, *, by: str) -> None:
        if not by.strip():
            raise CommandError("Say in whose name: --by NAME.")
        try:
            threads.delete(run_id, by=by.strip())
        except RuntimeProblem as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write("Its checkpoints are deleted. What was decided and done stays on record.")
