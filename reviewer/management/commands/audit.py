"""``manage.py audit verify`` and ``manage.py audit export``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reviewer.audit import export
from reviewer.audit.verify import Report, verify

LIMIT = (
    "This compares the trail with itself and with the decisions. It cannot see events that somebody with the "
    "database owner's rights removed or rewrote as a whole: no seal outside the database exists yet."
)


class Command(BaseCommand):
    """Check or export the audit trail."""

    help = "Check that the audit trail agrees with itself, or write it out as JSON Lines."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to do."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("verify", help="exit with 1 if anything does not agree")
        export_parser = verbs.add_parser("export", help="one event a line, oldest first")
        export_parser.add_argument("--output", type=Path, help="a file that does not exist yet; else print")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it."""
        if options["verb"] == "verify":
            self._verify()
        else:
            self._export(options["output"])

    def _verify(self) -> None:
        report = verify()
        self.stdout.write(f"{report.events} events and {report.decisions} decisions compared.")
        if report.missing_ids:
            self.stdout.write(_about_missing(report))
        self.stdout.write(LIMIT)
        for fault in report.faults:
            self.stderr.write(fault)
        if not report.is_sound:
            raise CommandError(f"The trail does not agree: {len(report.faults)} faults.")
        self.stdout.write("No fault found.")

    def _export(self, output: Path | None) -> None:
        if output is None:
            for line in export.lines():
                self.stdout.write(line)
            return
        try:
            with output.open("x", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in export.lines())
        except OSError as problem:
            raise CommandError(f"{output} cannot be written: {problem.strerror}.") from problem


def _about_missing(report: Report) -> str:
    return (
        f"{report.missing_ids} numbers between the first and the last event are not used. A change that was "
        "rolled back leaves such a gap; so would a removed event, and this check cannot tell the two apart."
    )
