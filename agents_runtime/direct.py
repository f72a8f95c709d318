"""Direct PostgreSQL connections: those that Django's pool must not hold, and the database's clock.

Lives here: the connection string for the thread locks and the checkpoints, made from Django's own settings.
Does not live here: what is done over such a connection (``thread_lock``, ``checkpointer``).
"""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

from django.db import connection
from psycopg.conninfo import make_conninfo

NOT_FOR_LIBPQ = frozenset(
    {"pool", "isolation_level", "assume_role", "server_side_binding", "prepare_threshold"}
)
# What is prepared needs no better plan for one value than for another; else each is planned five times, and
# for ever where a plan for given values looks cheaper.
PLAN_ONCE = "plan_cache_mode=force_generic_plan"
# A server that is gone without a word is noticed in about half a minute.
KEEP_ALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "connect_timeout": 10,
}


def conninfo(*, application: str, search_path: str = "") -> str:
    """Return a connection string to Django's database (the test database in tests)."""
    settings = connection.settings_dict
    options = {key: value for key, value in settings["OPTIONS"].items() if key not in NOT_FOR_LIBPQ}
    wanted = [PLAN_ONCE, f"search_path={search_path}"] if search_path else [PLAN_ONCE]
    given = str(options.pop("options", ""))
    options["options"] = " ".join([given, *(f"-c {setting}" for setting in wanted)]).lstrip()
    return make_conninfo(
        dbname=settings["NAME"],
        user=settings["USER"] or None,
        password=settings["PASSWORD"] or None,
        host=settings["HOST"] or None,
        port=settings["PORT"] or None,
        application_name=f"countersign {application}",
        **KEEP_ALIVE,
        **options,
    )


def database_now() -> dt.datetime:
    """Return the start of the current transaction by the database's clock (aware, UTC)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        return cast(dt.datetime, cursor.fetchone()[0])
