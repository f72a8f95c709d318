"""What a run costs in counts: statements, commits, connections, graphs built. Times differ, counts do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Any

import psycopg
import pytest
from langgraph.graph import StateGraph
from psycopg._connection_base import BaseConnection

from agents_runtime import ledger, runs, steps, thread_lock
from agents_runtime.gate import interrupt_ids
from agents_runtime.models import Run
from agents_runtime.statement import Flight
from reviewer.decisions import decide
from reviewer.models import ReviewTask
from tests.cast import Cast
from tests.runtime.driving import APPROVE, call, fresh, script

pytestmark = pytest.mark.usefixtures("runtime")
INPUT = script([call("pay", to="Ada", amount=5)])


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what this process sends to PostgreSQL, over whatever connection, and how often it waits."""
    counts: Counter[str] = Counter()
    execute, execute_many, flight, command = (
        psycopg.Cursor.execute,
        psycopg.Cursor.executemany,
        Flight.execute,
        BaseConnection._exec_command,
    )

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        counts["statements"] += 1
        counts["waits"] += 1
        return execute(self, *arguments, **options)

    def counted_flight(self: Any, *arguments: Any) -> None:
        counts["statements"] += len(self._asked)
        counts["COMMIT"] += self._commits
        counts["waits"] += 1
        flight(self, *arguments)

    def counted_many(self: Any, *arguments: Any, **options: Any) -> Any:
        counts["statements"] += 1
        counts["waits"] += 1
        return execute_many(self, *arguments, **options)

    def counted_command(self: Any, text: Any, *arguments: Any, **options: Any) -> Generator[Any, Any, Any]:
        counts[bytes(text).decode().split()[0]] += 1
        counts["waits"] += 1
        return command(self, text, *arguments, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    monkeypatch.setattr(psycopg.Cursor, "executemany", counted_many)
    monkeypatch.setattr(Flight, "execute", counted_flight)
    monkeypatch.setattr(BaseConnection, "_exec_command", counted_command)
    return counts


def start(cast: Cast) -> Run:
    run = runs.start("t-per-call", input=INPUT, requested_by=cast.developer.reference)
    steps.advance(run.pk)
    return run


def approve(run: Run, cast: Cast) -> ReviewTask:
    task = ReviewTask.objects.get(run=run)
    decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    return task


def whole_run(cast: Cast) -> Run:
    run = start(cast)
    approve(run, cast)
    steps.advance(run.pk)
    assert fresh(run).status == "finished"
    return run


def test_a_run_takes_so_many_statements_and_no_more(cast: Cast, sent: Counter[str]) -> None:
    whole_run(cast)
    sent.clear()
    run = start(cast)
    starting = Counter(sent)
    sent.clear()
    approve(run, cast)
    deciding = Counter(sent)
    sent.clear()
    steps.advance(run.pk)
    finishing = Counter(sent)
    told = ("statements", "COMMIT", "waits")
    assert [[part[name] for name in told] for part in (starting, deciding, finishing)] == [
        [18, 3, 18],
        [6, 1, 5],
        [20, 4, 17],
    ]


def test_a_call_that_needs_no_decision_is_let_through_by_two_statements(
    cast: Cast, sent: Counter[str]
) -> None:
    run = start(cast)
    Run.objects.filter(pk=run.pk).update(status="running")
    free = ledger.Call(
        run_id=run.pk,
        epoch=fresh(run).epoch,
        tool="look",
        tool_call_id="call_1",
        namespace="tools:1",
        arguments={"what": "x"},
        interrupt_ids=interrupt_ids("tools:1"),
    )
    assert ledger.open_call(free) is None
    sent.clear()
    assert ledger.open_call(free) is None
    assert sent["statements"] == 2


def test_a_thread_that_works_keeps_one_connection_for_its_locks_and_checkpoints(cast: Cast) -> None:
    whole_run(cast)
    before = thread_lock.connection().info.backend_pid
    for _ in range(3):
        whole_run(cast)
    assert thread_lock.connection().info.backend_pid == before


def test_a_graph_is_built_once_and_not_for_each_step(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_run(cast)
    built: list[object] = []
    build = StateGraph.compile

    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        built.append(self)
        return build(self, *arguments, **options)

    monkeypatch.setattr(StateGraph, "compile", noted)
    whole_run(cast)
    assert built == []
