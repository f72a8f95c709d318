"""The workload's figures come from the database and only from the queues that a person leads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from reviewer import claims, decisions
from reviewer.accounts.models import User
from reviewer.errors import NotAllowed
from reviewer.models import QueueMembership, ReviewTask
from reviewer.web.workload import chart_of
from reviewer.workload import Day, workload
from tests.cast import Cast
from tests.deciding.making import APPROVE, REJECT, open_refund

ClientOf = Callable[[User], Client]


def test_only_leads_and_administrators_see_the_workload(cast: Cast, client_of: ClientOf) -> None:
    for person in (cast.reviewer, cast.developer, cast.auditor):
        assert client_of(person).get("/workload/").status_code == 403
    for person in (cast.lead, cast.admin):
        assert client_of(person).get("/workload/").status_code == 200
    with pytest.raises(NotAllowed):
        workload(cast.reviewer)


def test_figures_count_what_waits_is_claimed_and_was_decided(cast: Cast) -> None:
    waiting, claimed, approved, rejected = (open_refund(by=cast.developer) for _ in range(4))
    claims.claim(claimed.pk, by=cast.reviewer2)
    claims.assign(waiting.pk, to=cast.reviewer, by=cast.lead)
    decisions.decide(approved.pk, by=cast.reviewer, answer=APPROVE, digest=approved.digest)
    decisions.decide(rejected.pk, by=cast.reviewer, answer=REJECT, digest=rejected.digest)
    load = workload(cast.lead)
    payments = next(row for row in load.queues if row.queue == cast.payments)
    assert (payments.waiting, payments.claimed, payments.decided.today, payments.decided.week) == (2, 1, 2, 2)
    assert (load.waiting, load.decided_today, load.in_time_today) == (2, 2, 2)
    people = {row.person.username: row for row in load.people}
    assert (people["reviewer"].assigned, people["reviewer"].decided.today) == (1, 2)
    assert (people["reviewer2"].claimed, people["reviewer2"].decided.today) == (1, 0)
    assert load.days[-1].counts == {"approve": 1, "reject": 1}


def test_the_median_is_the_time_from_card_to_decision(cast: Cast) -> None:
    for minutes in (2, 4, 30):
        task = open_refund(by=cast.developer)
        opened = timezone.now() - dt.timedelta(minutes=minutes)
        ReviewTask.objects.filter(pk=task.pk).update(created_at=opened)
        decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    median = workload(cast.lead).median
    assert median is not None
    assert abs(median - dt.timedelta(minutes=4)) < dt.timedelta(seconds=30)


def test_a_lead_sees_only_the_queues_they_lead(cast: Cast) -> None:
    QueueMembership.objects.filter(user=cast.lead).exclude(queue=cast.payments).update(leads=False)
    assert [row.queue for row in workload(cast.lead).queues] == [cast.payments]
    assert len(workload(cast.admin).queues) == 3


def test_deadlines_are_counted_as_overdue_or_due_soon(cast: Cast) -> None:
    now = timezone.now()
    for left in (-5, 5, 500):
        task = open_refund(by=cast.developer)
        ReviewTask.objects.filter(pk=task.pk).update(due_at=now + dt.timedelta(minutes=left))
    row = next(row for row in workload(cast.lead).queues if row.queue == cast.payments)
    assert (row.overdue, row.due_soon, row.waiting) == (1, 1, 3)


def test_bars_stand_on_the_floor_and_never_reach_past_the_top() -> None:
    days = [Day(dt.date(2026, 11, 29), {"approve": 7, "reject": 2}), Day(dt.date(2026, 11, 30), {})]
    chart = chart_of(days)
    blocks = chart.bars[0].blocks
    assert [block.verdict for block in blocks] == ["approve", "reject"]
    assert all(block.y >= 12 and block.y + block.height <= 132 for block in blocks)
    assert chart.bars[1].blocks == []
    assert chart.total == 9
