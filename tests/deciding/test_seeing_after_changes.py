"""Rights change: what the kept statements say is what Django says of the same moment, for everybody."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_runtime.compiled import ANOTHER_NUMBER, SOME_ID, SOME_NUMBER
from agents_runtime.models import Run
from reviewer import queries
from reviewer.accounts import permissions
from reviewer.accounts.models import Role, User
from reviewer.decisions import decide
from reviewer.errors import NotFound, ReviewProblem
from reviewer.models import Queue, QueueMembership, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund
from tests.doors import ApiClient

EXAMPLES = (SOME_NUMBER, ANOTHER_NUMBER)
"""The numbers that statements are made with: people and queues that really have them must not be mixed up."""


def _gets(read: Callable[[User, UUID], object], person: User, key: UUID) -> bool:
    try:
        read(person, key)
    except NotFound:
        return False
    return True


def _same_as_django(people: list[User], tasks: list[ReviewTask], queue_ids: list[int]) -> None:
    for person in people:
        seen = set(queries.visible_tasks(person).values_list("pk", flat=True))
        runs = set(queries.visible_runs(person).values_list("pk", flat=True))
        assert {task.pk for task in tasks if _gets(queries.get_task, person, task.pk)} == seen
        assert {task.run_id for task in tasks if _gets(queries.get_run, person, task.run_id)} == runs
        listed, total = queries.list_tasks(person, limit=50)
        assert ({task.pk for task in listed}, total) == (seen, len(seen))
        for task in tasks:
            assert queries.visible_in_run(person, task.run) == seen & {task.pk}
            part, _count = queries.list_tasks(person, limit=50, run=task.run_id, status="open")
            assert {found.pk for found in part} <= seen & {task.pk}
        for queue_id in queue_ids:
            is_member = person.role != Role.AUDITOR and person.memberships.filter(queue=queue_id).exists()
            assert permissions.is_member(person, queue_id) == is_member


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["join", "leave", "lead", "role", "assign", "move"]),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from(Role.values),
    ),
    max_size=8,
)


@given(changes=CHANGES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_changes_of_rights_everybody_sees_what_they_then_may(
    cast: Cast, changes: list[tuple[str, int, int, str]]
) -> None:
    with transaction.atomic():
        _change_and_compare(cast, changes)
        transaction.set_rollback(True)


def _change_and_compare(cast: Cast, changes: list[tuple[str, int, int, str]]) -> None:
    people = [cast.reviewer, cast.outsider, cast.developer, _person(SOME_NUMBER)]
    queues = [cast.payments, cast.general, *map(_queue, EXAMPLES)]
    tasks = [open_refund(by=by) for by in (cast.developer, people[3])]
    for what, who, where, role in changes:
        person, queue, task = people[who], queues[where], tasks[where % len(tasks)]
        if what == "join" or what == "lead":
            QueueMembership.objects.update_or_create(
                queue=queue, user=person, defaults={"leads": what == "lead"}
            )
        elif what == "leave":
            QueueMembership.objects.filter(queue=queue, user=person).delete()
        elif what == "role":
            User.objects.filter(pk=person.pk).update(role=role)
            people[who] = User.objects.get(pk=person.pk)
        else:
            change = {"assigned_to": person} if what == "assign" else {"queue": queue}
            ReviewTask.objects.filter(pk=task.pk).update(**change)
        _same_as_django(people, tasks, [queue.pk for queue in queues])


def _person(key: int) -> User:
    return User.objects.get_or_create(pk=key, defaults={"username": f"p{key}", "role": Role.REVIEWER})[0]


def _queue(key: int) -> Queue:
    return Queue.objects.get_or_create(pk=key, defaults={"slug": f"q{key}", "name": f"Q {key}"})[0]


def test_what_bears_the_keys_of_the_examples_is_told_apart(cast: Cast) -> None:
    twin, task = _person(ANOTHER_NUMBER), open_refund(by=cast.developer)
    QueueMembership.objects.create(queue=_queue(SOME_NUMBER), user=twin)
    assert permissions.is_member(twin, SOME_NUMBER)
    assert not permissions.is_member(twin, ANOTHER_NUMBER)
    assert not permissions.is_member(_person(SOME_NUMBER), ANOTHER_NUMBER)
    assert not _gets(queries.get_task, twin, task.pk)
    assert not _gets(queries.get_task, cast.reviewer, SOME_ID)
    assert not _gets(queries.get_run, cast.admin, UUID(int=0))
    assert Run.objects.count() == 1


@pytest.mark.parametrize("change", ["leave", "auditor", "inactive"])
def test_a_token_reads_and_decides_by_the_rights_of_the_moment(
    cast: Cast, api_client: Callable[[User | None], ApiClient], change: str
) -> None:
    task = open_refund(by=cast.developer)
    program = api_client(cast.reviewer)
    assert program.get(f"tasks/{task.pk}").status_code == 200
    if change == "leave":
        cast.reviewer.memberships.all().delete()
    else:
        fields = {"role": Role.AUDITOR} if change == "auditor" else {"is_active": False}
        User.objects.filter(pk=cast.reviewer.pk).update(**fields)
    body = {"answer": APPROVE, "digest": task.digest}
    answers = [program.get(f"tasks/{task.pk}"), program.post(f"tasks/{task.pk}/decision", body)]
    expected = {"leave": [404, 404], "auditor": [200, 403], "inactive": [401, 401]}
    assert [answer.status_code for answer in answers] == expected[change]
    task.refresh_from_db()
    assert task.is_open


def test_who_became_an_auditor_leads_nothing_any_more(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    User.objects.filter(pk=cast.lead.pk).update(role=Role.AUDITOR)
    former = User.objects.get(pk=cast.lead.pk)
    assert former.memberships.filter(leads=True).exists()
    assert not permissions.leads_queue(former, task.queue_id)
    with pytest.raises(ReviewProblem):
        decide(task.pk, by=former, answer=APPROVE, digest=task.digest)
