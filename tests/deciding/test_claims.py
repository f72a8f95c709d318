"""Claims: a lease with a fence, by the database's clock."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from django.db import connection

from reviewer import claims
from reviewer.clock import database_now
from reviewer.errors import Conflict, NotAllowed, NotFound
from reviewer.models import AuditEvent, ReviewTask
from tests.cast import Cast
from tests.deciding.making import open_refund


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
