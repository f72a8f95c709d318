"""``COUNTERSIGN_PREPARE=0``: for web processes behind a pooler that knows no prepared statements."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.servers import PROJECT, servers

pytestmark = pytest.mark.usefixtures("runtime")
A_WEB_PROCESS = """
import django
django.setup()
from django.db import connection, transaction
from agents_runtime import recovery, runs
from agents_runtime.models import Run
given = {"messages": [{"role": "user", "content": "[]"}]}
for _ in range(7):  # psycopg prepares what is asked for a sixth time, unless it is told not to
    run = runs.start("t-per-call", input=given, requested_by="tests")
    recovery.has_work(run.pk)
    runs.cancel(run.pk)
    Run.objects.filter(pk=run.pk).values_list("status").get()
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM pg_prepared_statements")
    print("prepared:", cursor.fetchone()[0])
"""


def prepared_with(setting: str) -> int:
    """Return how many statements are prepared on a session of Django's after the verbs of a web process."""
    done = subprocess.run(
        [sys.executable, "-c", A_WEB_PROCESS],
        cwd=PROJECT,
        env=servers().child_environment(COUNTERSIGN_PREPARE=setting),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.rpartition("prepared:")[2])


def test_nothing_is_prepared_where_the_pooler_cannot_have_it() -> None:
    assert prepared_with("0") == 0


def test_the_compiled_statements_are_prepared_otherwise() -> None:
    assert prepared_with("1") > 0
