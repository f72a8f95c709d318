"""The budget of database connections, checked against the server before anything serves.

Every process opens its connections when it needs them; this is what they may come to all together. A server
that has fewer would fail later, in the middle of somebody's decision.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection

DIRECT = 1  # the connection that holds the lock on a thread, and goes to its checkpoints
ALLOWED = """
    SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
"""


def needed_connections(workers: int) -> int:
    """Return how many connections web, scheduler and ``workers`` worker children may open."""
    return 2 * settings.DATABASE_POOL + workers * (settings.DATABASE_POOL + DIRECT)


def allowed_connections() -> int:
    """Return how many connections the server lets ordinary roles open."""
    with connection.cursor() as cursor:
        cursor.execute(ALLOWED)
        return int(cursor.fetchone()[0])


def shortfall() -> str:
    """Say what is wrong, in one line, if the server allows fewer than may be opened; else nothing."""
    workers, allowed = settings.CELERY_WORKER_CONCURRENCY, allowed_connections()
    needed = needed_connections(workers)
    if needed <= allowed:
        return ""
    return (
        f"PostgreSQL allows {allowed} connections; {workers} workers, web and scheduler may need {needed}. "
        "Raise max_connections, or lower COUNTERSIGN_WORKERS."
    )
