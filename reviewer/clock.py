"""The database's clock: the only time that leases, deadlines and evidence go by."""

from __future__ import annotations

import datetime as dt
from typing import cast

from django.db import connection


def database_now() -> dt.datetime:
    """Return the start of the current transaction by the database's clock (aware, UTC)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        return cast(dt.datetime, cursor.fetchone()[0])
