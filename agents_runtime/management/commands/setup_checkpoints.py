"""Make LangGraph's checkpoint tables: once, under a lock, as the owner, with rights for the application."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from psycopg import sql

from agents_runtime.checkpointer import make_tables
from agents_runtime.direct import conninfo

LOCK = 0x636F756E74657273  # "counters", as a number
WAIT_SECONDS = 60.0
RIGHTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
)


class Command(BaseCommand):
    """Run with the owner's ``DATABASE_URL``; harmless to repeat and to run twice at once."""

    help = "Create or upgrade the checkpoint tables."

    def add_arguments(self, parser: CommandParser) -> None:
        """One option: whom to give rights to, where default privileges do not do it."""
        parser.add_argument("--grant-to", default="", metavar="ROLE", help="the application's database role")

    def handle(self, *args: Any, **options: Any) -> None:
        """Set up under the lock."""
        schema = settings.COUNTERSIGN_CHECKPOINT_SCHEMA
        with psycopg.connect(conninfo(application="setup"), autocommit=True) as link:
            _take_lock(link)
            link.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
            make_tables(schema)
            _grant(link, schema, role=options["grant_to"])
        self.stdout.write("Checkpoint tables are ready.")


def _take_lock(link: psycopg.Connection[Any]) -> None:
    """Ask again and again: a session that waits inside a lock would block the making of indexes for ever."""
    end = time.monotonic() + WAIT_SECONDS
    while not _has_lock(link):
        if time.monotonic() > end:
            raise CommandError("Another process has been setting up the checkpoint tables for a minute.")
        time.sleep(0.1)


def _has_lock(link: psycopg.Connection[Any]) -> bool:
    row = link.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
    return bool(row and row[0])


def _grant(link: psycopg.Connection[Any], schema: str, *, role: str) -> None:
    if not role:
        return
    for right in RIGHTS:
        link.execute(sql.SQL(right).format(schema=sql.Identifier(schema), role=sql.Identifier(role)))
