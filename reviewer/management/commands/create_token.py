"""``manage.py create_token USER``: print a new API token, once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reviewer import tokens
from reviewer.accounts.models import User


class Command(BaseCommand):
    """Give a person's programs a key."""

    help = "Print a new API token of USER. It is shown this once; only its hash is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the user's name, and a name for the token."""
        parser.add_argument("user", metavar="USER")
        parser.add_argument("--name", default="", help="what the token is for")

    def handle(self, *args: Any, **options: Any) -> None:
        """Issue the token and print its secret alone, so that a script can take it."""
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user named {options['user']}.")
        _token, secret = tokens.issue(user, name=options["name"][:100])
        self.stdout.write(secret)
