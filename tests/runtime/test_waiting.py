"""Runs that wait for months cost rows and nothing else: no query reads them, no message or key names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import redis
from celery import current_app
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from agents_runtime import enqueue, recovery, retention, runs
from agents_runtime.models import Pause, Run
from reviewer.expiry import expire_due
from reviewer.models import ReviewTask
from tests.cast import Cast
from tests.deciding.making import pause_run, refund
from tests.servers import servers

MANY = 200
MONTHS = timedelta(days=200)
ROUNDS: dict[str, Callable[[], int]] = {
    "the sweep": recovery.sweep,
    "deadlines": expire_due,
    "retention": retention.ask_workers,
}


@pytest.fixture
def waiting(committed_db: None, cast: Cast) -> list[Run]:
    """Many runs that have waited for months, each with an open card, half of them with a distant deadline.

    They are stored for good and counted by the tables' owner: PostgreSQL plans by its statistics, and skips
    an ANALYZE by the application's role with no more than a warning.
    """
    with transaction.atomic():
        found = [pause_run(refund(), by=cast.developer).run for _ in range(MANY)]
    old = now() - MONTHS
    Run.objects.update(created_at=old, updated_at=old, settled_epoch=1)
    Pause.objects.update(created_at=old)
    ReviewTask.objects.update(created_at=old)
    half = [run.pk for run in found[: MANY // 2]]
    ReviewTask.objects.filter(run__in=half).update(due_at=now() + MONTHS, on_expiry="reject")
    with psycopg.connect(servers().owner_url, autocommit=True) as owner:
        owner.execute("ANALYZE agents_runtime_run, agents_runtime_pause, reviewer_reviewtask")
    return found


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is sent to workers from now on."""
    messages: list[Any] = []
    monkeypatch.setattr(current_app, "send_task", lambda *args, **_: messages.append(args))
    monkeypatch.setattr(enqueue, "publish", lambda *args: messages.append(args))
    return messages


def test_no_round_of_the_scheduler_reads_a_run_that_waits(waiting: list[Run]) -> None:
    for name, work in ROUNDS.items():
        with CaptureQueriesContext(connection) as queries:
            assert work() == 0
        assert len(queries) <= 3, name
        assert [line for query in queries for line in rows_read(query["sql"])] == [], name
    with CaptureQueriesContext(connection) as queries:
        assert recovery.sweep_waiting() == 0  # once a minute, by one query over all of them
    assert len(queries) == 1
    assert runs.diagnose(list(runs.find_stuck(Run.objects.all()))) == []


def rows_read(statement: str) -> Iterator[str]:
    """Execute a statement over its indexes and tell of each scan that met a row, wanted or not."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        (plan,) = cursor.fetchone()[0]
    yield from _rows_read(plan["Plan"])


def _rows_read(node: dict[str, Any]) -> Iterator[str]:
    met = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    if "Relation Name" in node and met:
        yield f"{node['Node Type']} of {node['Relation Name']} met {met}"
    for child in node.get("Plans", ()):
        yield from _rows_read(child)


def test_many_rounds_send_no_message_and_leave_no_key(waiting: list[Run], sent: list[Any]) -> None:
    with redis.Redis.from_url(servers().redis_url) as client:
        before = {key for key in client.scan_iter() if not key.startswith(b"_kombu")}
        for _ in range(10):
            for work in ROUNDS.values():
                assert work() == 0
            assert recovery.sweep_waiting() == 0
        enqueue.flush()
        after = {key for key in client.scan_iter() if not key.startswith(b"_kombu")}
    assert sent == []
    assert not any(run.thread_id.encode() in key for run in waiting for key in after - before)
    assert not Run.objects.filter(nudged_at__isnull=False).exists()
