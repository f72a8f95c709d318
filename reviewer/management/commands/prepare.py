"""``manage.py prepare``: bring the database to the state of this code, in one process, as its owner."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from reviewer.management.budget import shortfall


class Command(BaseCommand):
    """What ``make run`` does before it starts anything that serves; harmless to repeat."""

    help = "Check the connections, migrate, make the checkpoint tables and, in demo mode, the demo accounts."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Check first, then run the three commands one after the other."""
        if problem := shortfall():
            raise CommandError(problem)
        call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
        call_command("setup_checkpoints")
        if settings.COUNTERSIGN_DEMO:
            call_command("seed_demo")
