"""The demo: at the first start, in demo mode, and never over anybody's data."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from reviewer.accounts.models import Role, User
from reviewer.models import AuditEvent, Policy, Queue
from reviewer.routing import route

pytestmark = pytest.mark.django_db


def seed() -> None:
    call_command("seed_demo", verbosity=0)


def test_everybody_can_sign_in_and_has_their_role(capsys: pytest.CaptureFixture[str]) -> None:
    seed()
    assert {user.username: user.role for user in User.objects.all()} == {
        "reviewer": Role.REVIEWER,
        "reviewer2": Role.REVIEWER,
        "lead": Role.LEAD,
        "admin": Role.ADMIN,
        "auditor": Role.AUDITOR,
        "developer": Role.DEVELOPER,
    }
    assert all(user.check_password("countersign") for user in User.objects.all())
    assert "reviewer2" in capsys.readouterr().out


def test_reviewers_belong_to_every_queue_and_the_lead_leads_them(capsys: pytest.CaptureFixture[str]) -> None:
    seed()
    assert set(Queue.objects.values_list("slug", flat=True)) == {
        "payments",
        "mail",
        "records",
        "questions",
        "general",
    }
    for queue in Queue.objects.all():
        members = {row.user.username: row.leads for row in queue.memberships.select_related("user")}
        assert members == {"reviewer": False, "reviewer2": False, "lead": True}


@pytest.mark.parametrize(
    ("tool", "queue", "risk"),
    [
        ("issue_refund", "payments", "high"),
        ("send_email", "mail", "medium"),
        ("delete_record", "records", "critical"),
        ("ask_user", "questions", "low"),
        ("something_else", "general", "medium"),
    ],
)
def test_requests_go_where_the_demo_says(
    capsys: pytest.CaptureFixture[str], tool: str, queue: str, risk: str
) -> None:
    seed()
    found = route(agent="any", tool=tool)
    assert (found.queue.slug, found.risk) == (queue, risk)


def test_a_second_start_creates_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    seed()
    Policy.objects.all().delete()
    events = AuditEvent.objects.count()
    seed()
    assert not Policy.objects.exists()
    assert AuditEvent.objects.count() == events
    assert "nothing was created" in capsys.readouterr().out


def test_nothing_is_created_where_anybody_has_an_account(capsys: pytest.CaptureFixture[str]) -> None:
    User.objects.create(username="founder")
    seed()
    assert User.objects.count() == 1
    assert not Queue.objects.exists()


def test_the_default_queue_may_be_there_already(capsys: pytest.CaptureFixture[str]) -> None:
    route(agent="quick", tool="call")
    seed()
    assert Queue.objects.get(is_default=True).slug == "general"


def test_without_demo_mode_it_refuses(settings: Settings) -> None:
    settings.COUNTERSIGN_DEMO = False
    with pytest.raises(CommandError, match="only in demo mode"):
        seed()
    assert not User.objects.exists()


def test_each_account_queue_and_policy_stands_in_the_trail(capsys: pytest.CaptureFixture[str]) -> None:
    seed()
    told = [
        AuditEvent.objects.filter(type=name).count()
        for name in ("account.created", "queue.created", "policy.saved")
    ]
    assert told == [User.objects.count(), Queue.objects.count(), Policy.objects.count()]
