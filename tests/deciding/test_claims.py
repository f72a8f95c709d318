"""Claims: a lease with a fence, by the database's clock."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from agents_runtime import direct
from reviewer import claims, decisions
from reviewer.clock import database_now
from reviewer.errors import Conflict, NotAllowed, NotFound, ReviewProblem
from reviewer.models import AuditEvent, Decision, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund


def test_a_claim_is_a_lease_that_its_holder_can_extend_and_release(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    first = claims.claim(task.pk, by=cast.reviewer)
    assert first.claimed_until is not None
    assert first.claimed_until > database_now()
    assert claims.claim(task.pk, by=cast.reviewer).claim_version == first.claim_version == 1
    claims.release(task.pk, by=cast.reviewer)
    assert claims.claim(task.pk, by=cast.reviewer2).claim_version == 2


def test_a_claim_of_somebody_else_is_refused_until_it_runs_out(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    claims.claim(task.pk, by=cast.reviewer)
    with pytest.raises(Conflict) as refused:
        claims.claim(task.pk, by=cast.reviewer2)
    assert refused.value.who == "Ines H."
    ReviewTask.objects.update(claimed_until=database_now() - dt.timedelta(seconds=1))
    assert claims.claim(task.pk, by=cast.reviewer2).claimed_by == cast.reviewer2


def test_only_the_holder_or_a_lead_releases(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    claims.claim(task.pk, by=cast.reviewer)
    with pytest.raises(NotAllowed):
        claims.release(task.pk, by=cast.reviewer2)
    assert claims.release(task.pk, by=cast.lead).claimed_by is None


def test_outsiders_starters_and_auditors_cannot_claim(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    with pytest.raises(NotFound):
        claims.claim(task.pk, by=cast.outsider)
    for person in (cast.developer, cast.auditor, cast.admin):
        with pytest.raises(NotAllowed):
            claims.claim(task.pk, by=person)


def test_claim_next_takes_the_most_urgent_free_task_and_never_ones_own(cast: Cast) -> None:
    own = open_refund(by=cast.reviewer)
    late = open_refund(by=cast.developer)
    soon = open_refund(by=cast.developer)
    ReviewTask.objects.filter(pk=own.pk).update(due_at=database_now())
    ReviewTask.objects.filter(pk=soon.pk).update(due_at=database_now() + dt.timedelta(minutes=5))
    ReviewTask.objects.filter(pk=late.pk).update(due_at=database_now() + dt.timedelta(minutes=50))
    assert claims.claim_next("payments", by=cast.reviewer) == soon
    assert claims.claim_next("payments", by=cast.reviewer) == late
    assert claims.claim_next("payments", by=cast.reviewer) is None


def test_twenty_claimers_of_twenty_tasks_each_get_another_one(committed_db: None, cast: Cast) -> None:
    for _ in range(20):
        open_refund(by=cast.developer)
    barrier = threading.Barrier(20)
    got: list[object] = []

    def one(number: int) -> None:
        barrier.wait()
        task = claims.claim_next("payments", by=(cast.reviewer, cast.reviewer2)[number % 2])
        got.append(task and task.pk)
        connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None not in got
    assert len(set(got)) == 20
    assert AuditEvent.objects.filter(type="task.claimed").count() == 20


def at_once(*works: Callable[[], object]) -> list[object]:
    """Do everything in threads that start together; return what each returned or raised."""
    barrier = threading.Barrier(len(works))
    came: list[object] = [None] * len(works)

    def one(number: int) -> None:
        barrier.wait()
        try:
            came[number] = works[number]()
        except ReviewProblem as problem:
            came[number] = problem
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return came


@contextmanager
def held_by_another(task: ReviewTask) -> Iterator[None]:
    """Hold the task's row until the body has begun to wait for it."""
    with psycopg.connect(direct.conninfo(application="test")) as other:
        other.execute("SELECT 1 FROM reviewer_reviewtask WHERE id = %s FOR UPDATE", [task.pk])
        timer = threading.Timer(0.6, other.rollback)
        timer.start()
        yield
        timer.join()


def test_of_people_who_claim_at_once_one_gets_the_task(committed_db: None, cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    people = (cast.reviewer, cast.reviewer2, cast.lead)
    with held_by_another(task):
        came = at_once(*(partial(claims.claim, task.pk, by=person) for person in people))
    assert sorted(type(item).__name__ for item in came) == ["Conflict", "Conflict", "ReviewTask"]
    assert ReviewTask.objects.get(pk=task.pk).claim_version == 1


def test_of_a_claim_and_a_decision_at_once_one_wins(committed_db: None, cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    with held_by_another(task):
        came = at_once(
            partial(claims.claim, task.pk, by=cast.reviewer2),
            partial(decisions.decide, task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest),
        )
    assert sorted(isinstance(item, Conflict) for item in came) == [False, True]


def test_a_decision_that_waits_for_a_move_is_made_or_the_move_is_refused(
    committed_db: None, cast: Cast
) -> None:
    task = open_refund(by=cast.developer)
    with held_by_another(task):
        moved, decided = at_once(
            partial(claims.move, task.pk, queue=cast.mail, by=cast.lead),
            partial(decisions.decide, task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest),
        )
    assert isinstance(decided, Decision)
    assert isinstance(moved, ReviewTask | Conflict)


def is_free(table: str, key: object) -> bool:
    """Say whether nobody holds the row."""
    with psycopg.connect(direct.conninfo(application="test")) as other:
        found = other.execute(
            sql.SQL("SELECT 1 FROM {} WHERE id = %s FOR UPDATE SKIP LOCKED").format(sql.Identifier(table)),
            [key],
        )
        return found.fetchone() is not None


@pytest.mark.parametrize("held", [0, 1, 2])
def test_a_decision_locks_run_pause_and_task_in_this_order_and_reads_what_they_are_then(
    committed_db: None, cast: Cast, held: int
) -> None:
    task = open_refund(by=cast.developer)
    rows = [
        ("agents_runtime_run", task.run_id, "requested_by = requested_by"),
        ("agents_runtime_pause", task.pause_id, "place = place"),
        ("reviewer_reviewtask", task.pk, "version = 41"),
    ]
    table, key, change = rows[held]
    with psycopg.connect(direct.conninfo(application="test")) as other:
        other.execute(f"UPDATE {table} SET {change} WHERE id = %s", [key])
        fed = f'["{cast.reviewer.reference}"]'
        if held == 0:
            other.execute("UPDATE agents_runtime_run SET fed_by = %s WHERE id = %s", [fed, key])
        with ThreadPoolExecutor(1) as pool:
            deciding = pool.submit(
                at_once,
                partial(decisions.decide, task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest),
            )
            wait_for_waiter(other)
            # All before it are locked, and none behind it.
            assert [is_free(*row[:2]) for row in rows] == [at > held for at in range(3)]
            other.commit()
            (came,) = deciding.result(timeout=60)
    if held == 0:  # gave the run input while the decision waited
        assert isinstance(came, NotAllowed)
        assert not Decision.objects.exists()
    else:
        assert isinstance(came, Decision)
        assert ReviewTask.objects.get(pk=task.pk).version == (42 if held == 2 else 2)


def test_a_decision_that_waits_for_a_claim_sees_who_holds_the_task(committed_db: None, cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    with psycopg.connect(direct.conninfo(application="test")) as other, ThreadPoolExecutor(1) as pool:
        other.execute(
            "UPDATE reviewer_reviewtask SET claimed_by_id = %s, claimed_until = now() + interval '1 hour', "
            "claim_version = 1 WHERE id = %s",
            [cast.reviewer2.pk, task.pk],
        )
        deciding = pool.submit(
            at_once, partial(decisions.decide, task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
        )
        wait_for_waiter(other)
        other.commit()
        (came,) = deciding.result(timeout=60)
    assert isinstance(came, Conflict)
    assert (came.code, came.who) == ("taken", cast.reviewer2.display_name)


def wait_for_waiter(other: psycopg.Connection) -> None:
    """Wait until somebody waits for a row that this connection holds."""
    for _ in range(200):
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
        found = other.execute(waiting, [other.info.backend_pid]).fetchone()
        if found and found[0]:
            return
        time.sleep(0.05)
    raise AssertionError("Nobody waits.")


def test_a_lead_assigns_to_members_only_and_moves_between_queues(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    assert claims.assign(task.pk, to=cast.reviewer2, by=cast.lead).assigned_to == cast.reviewer2
    with pytest.raises(NotAllowed, match="not a member"):
        claims.assign(task.pk, to=cast.outsider, by=cast.lead)
    with pytest.raises(NotAllowed):
        claims.assign(task.pk, to=cast.reviewer, by=cast.reviewer2)
    moved = claims.move(task.pk, queue=cast.mail, by=cast.lead)
    assert (moved.queue, moved.assigned_to) == (cast.mail, cast.reviewer2)
    assert list(AuditEvent.objects.filter(type="task.moved").values_list("actor__username", flat=True)) == [
        "lead"
    ]
