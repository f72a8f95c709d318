"""``manage.py register_agents``: runs on the workers' side before they start; the web reads its rows."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents_runtime.registry import Report, register


class Command(BaseCommand):
    """Import the agents that langgraph.json files list, and write down what they are."""

    help = "Register the shipped agents and those of the langgraph.json files in COUNTERSIGN_AGENTS."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--strict``."""
        parser.add_argument(
            "--strict", action="store_true", help="Exit with an error if anything could not be registered."
        )

    def handle(self, *args: Any, strict: bool, **options: Any) -> None:
        """Register, then tell what came of it: one line for the agents, one line for each problem."""
        report = register()
        self._tell(report)
        if strict and report.troubles:
            raise CommandError(f"{len(report.troubles)} problem(s); see above.")

    def _tell(self, report: Report) -> None:
        if report.registered:
            self.stdout.write(f"Agents: {', '.join(report.registered)}")
        if report.unlisted:
            self.stdout.write(f"No longer listed: {', '.join(report.unlisted)}")
        for trouble in report.troubles:
            self.stderr.write(self.style.WARNING(f"Problem: {trouble}"))
