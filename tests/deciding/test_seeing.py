"""Who sees what: the one place that decides, for every role."""

from __future__ import annotations

import pytest

from reviewer import organising, queries
from reviewer.decisions import decide
from reviewer.errors import Invalid, NotAllowed, NotFound
from reviewer.models import AuditEvent
from reviewer.queries import AuditFilter, InboxFilter
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund

SEES_TASK = {
    "reviewer": True,
    "reviewer2": True,
    "lead": True,
    "admin": True,
    "auditor": True,
    "developer": True,  # started the run
    "outsider": False,
}


@pytest.mark.parametrize(("name", "sees"), sorted(SEES_TASK.items()))
def test_membership_role_and_origin_decide_who_sees_a_task_and_its_run(
    cast: Cast, name: str, sees: bool
) -> None:
    task = open_refund(by=cast.developer)
    person = cast.people[name]
    assert queries.visible_tasks(person).filter(pk=task.pk).exists() is sees
    assert queries.visible_runs(person).filter(pk=task.run_id).exists() is sees
    if not sees:
        with pytest.raises(NotFound):
            queries.get_task(person, task.pk)
        with pytest.raises(NotFound):
            queries.get_run(person, task.run_id)


def test_a_task_is_listed_once_however_many_reasons_there_are_to_see_it(cast: Cast) -> None:
    task = open_refund(by=cast.lead)
    organising.set_member("payments", user=cast.admin, leads=True, by=cast.lead)
    assert [found.pk for found in queries.visible_tasks(cast.admin)] == [task.pk]
    assert [found.pk for found in queries.inbox(cast.lead, InboxFilter())] == [task.pk]


def test_whoever_leaves_a_queue_stops_seeing_its_tasks_at_once_and_loses_their_claims(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    task.claimed_by = cast.reviewer
    task.claimed_until = task.created_at
    task.save()
    organising.remove_member("payments", user=cast.reviewer, by=cast.lead)
    assert not queries.visible_tasks(cast.reviewer).exists()
    task.refresh_from_db()
    assert task.claimed_by is None


def test_one_keeps_seeing_what_one_decided(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    organising.remove_member("payments", user=cast.reviewer, by=cast.lead)
    assert queries.get_task(cast.reviewer, task.pk).status == "decided"


def test_the_numbers_of_the_rail_are_those_of_the_database(cast: Cast) -> None:
    tasks = [open_refund(by=cast.developer) for _ in range(3)]
    decide(tasks[0].pk, by=cast.reviewer, answer=APPROVE, digest=tasks[0].digest)
    counts = queries.work_counts(cast.reviewer)
    assert (counts.waiting, counts.claimed, counts.decided_today) == (2, 0, 1)
    assert {count.queue.slug: count.waiting for count in queries.queue_counts(cast.reviewer)} == {
        "payments": 2, "mail": 0, "general": 0,
    }  # fmt: skip
    assert list(queries.queue_counts(cast.outsider)) == []


def test_only_admins_and_auditors_read_the_trail(cast: Cast) -> None:
    open_refund(by=cast.developer)
    for person in (cast.admin, cast.auditor):
        assert queries.audit_events(person, AuditFilter(type="task.opened", tool="issue_refund")).count() == 1
    for person in (cast.reviewer, cast.lead, cast.developer):
        with pytest.raises(NotAllowed):
            queries.audit_events(person, AuditFilter())


def test_a_queue_is_created_renamed_and_staffed_by_its_lead_with_a_trail(cast: Cast) -> None:
    queue = organising.create_queue(name="Card disputes", description="", by=cast.lead)
    organising.set_member(queue.slug, user=cast.outsider, leads=False, by=cast.lead)
    organising.rename_queue(queue.slug, name="Disputes", description="Chargebacks", by=cast.lead)
    assert queries.get_queue(cast.outsider, "card-disputes").name == "Disputes"
    types = AuditEvent.objects.filter(queue_id=queue.pk).order_by("pk").values_list("type", flat=True)
    assert list(types) == ["queue.created", "queue.member_set", "queue.renamed"]


def test_a_queue_name_is_asked_for_again_where_it_does_not_do(cast: Cast) -> None:
    for name in ("", "   ", "payments", "x" * 81):
        with pytest.raises(Invalid) as refused:
            organising.create_queue(name=name, description="", by=cast.lead)
        assert refused.value.problems[0].pointer == "/name"
    with pytest.raises(NotAllowed):
        organising.create_queue(name="Mine", description="", by=cast.reviewer)
    with pytest.raises(Invalid, match="auditor"):
        organising.set_member("payments", user=cast.auditor, leads=False, by=cast.lead)


def test_two_policies_cannot_match_the_same_calls(cast: Cast) -> None:
    with pytest.raises(Invalid, match="Another policy"):
        organising.save_policy(
            name="twin", agent="", tool="issue_refund", queue_slug="mail", risk="low", minutes_to_decide=None,
            by=cast.lead,
        )  # fmt: skip
