"""Sessions that wait for each other: a checkpoint that stands still while it is stored, and who waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from django.conf import settings
from django.db import connection

from agents_runtime.direct import conninfo
from tests.runtime.crashing import wait_until
from tests.servers import servers

DIRECT, DJANGO = "countersign thread", ""
OUTSIDER = "tests"
DOORWAY = 1_871_402
CHECKPOINT_TABLES = ("checkpoints", "checkpoint_writes")
WAIT_IN_THE_DOORWAY = f"""
    CREATE OR REPLACE FUNCTION wait_in_the_doorway() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_advisory_xact_lock_shared({DOORWAY}); RETURN NEW; END'
"""
BEGIN_NOTHING = "LOCK TABLE agents_runtime_toolexecution IN SHARE MODE"
FREE = "SELECT id FROM agents_runtime_{} WHERE id = %s FOR UPDATE SKIP LOCKED"
HAS_WAITED = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
      AND query LIKE '%%INSERT INTO "agents_runtime_toolexecution"%%'
      AND clock_timestamp() - query_start > make_interval(secs => %s)
"""
WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = %s AND wait_event_type = 'Lock'
"""
WAITS = """
    SELECT count(*) FROM pg_stat_activity AS waiting
    JOIN pg_stat_activity AS holding ON holding.pid = ANY (pg_blocking_pids(waiting.pid))
    WHERE waiting.datname = current_database()
      AND waiting.application_name = %s AND holding.application_name = %s
"""


@contextmanager
def no_checkpoint_is_stored() -> Iterator[None]:
    """Let whoever stores a checkpoint stand still within, with the row of its run; reading goes on."""
    with _doorway(), outsider("SELECT pg_advisory_xact_lock(%s)", DOORWAY):
        yield


@contextmanager
def _doorway() -> Iterator[None]:
    """Let each row pass a lock before it is stored; a lock of the whole tables would come too early."""
    schema = settings.COUNTERSIGN_CHECKPOINT_SCHEMA
    with psycopg.connect(servers().owner_url, autocommit=True, options=f"-c search_path={schema}") as owner:
        owner.execute(WAIT_IN_THE_DOORWAY)
        for table in CHECKPOINT_TABLES:
            owner.execute(
                f"CREATE TRIGGER doorway BEFORE INSERT ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION wait_in_the_doorway()"
            )
        try:
            yield
        finally:
            for table in CHECKPOINT_TABLES:
                owner.execute(f"DROP TRIGGER doorway ON {table}")


@contextmanager
def outsider(statement: LiteralString, *values: object) -> Iterator[psycopg.Connection]:
    """Be another session, in a transaction that has made this statement and is committed at the end."""
    with psycopg.connect(conninfo(application=OUTSIDER)) as link:
        link.execute(statement, values)
        yield link


def is_free(table: str, key: object) -> bool:
    """Say whether nobody holds a row."""
    with psycopg.connect(conninfo(application="watcher")) as link:
        return bool(link.execute(FREE.format(table), [key]).fetchall())


@contextmanager
def no_tool_begins() -> Iterator[None]:
    """Let whoever writes that a tool begins stand still within, with the row of its run."""
    with outsider(BEGIN_NOTHING):
        yield


def wait_for_a_tool_to_begin(*, seconds: int) -> None:
    """Wait until a tool that wants to begin has stood still for so long."""

    def has_waited() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(HAS_WAITED, [seconds])
            return bool(cursor.fetchone()[0])

    wait_until(has_waited)


def wait_for_whoever_stores() -> None:
    """Wait until a saver stands still before the tables, and so holds the row of its run."""
    wait_until(lambda: _waits(DIRECT, f"countersign {OUTSIDER}"))


def wait_for_whoever_asks(count: int = 1) -> None:
    """Wait until so many of Django's sessions wait for a row."""

    def wait() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(WAITING, [DJANGO])
            return bool(cursor.fetchone()[0] >= count)

    wait_until(wait)


def wait_until_waiting_for_a_saver(who: str) -> None:
    """Wait until a session of this application waits for a row that a saver holds."""
    wait_until(lambda: _waits(who, DIRECT))


def _waits(waiting: str, holding: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS, [waiting, holding])
        return bool(cursor.fetchone()[0])
