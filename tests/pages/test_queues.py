"""Queues as a lead arranges them on their pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils.timezone import now

from reviewer.accounts.models import User
from reviewer.expiry import expire_due
from reviewer.models import AuditEvent, Policy, Queue, QueueMembership, ReviewTask
from tests.cast import Cast
from tests.deciding.making import open_refund

ClientOf = Callable[[User], Client]


def test_a_lead_creates_a_queue_and_leads_it(cast: Cast, client_of: ClientOf) -> None:
    response = client_of(cast.lead).post("/queues/", {"name": "Vendor payments", "description": "Invoices"})
    assert response.headers["Location"] == "/queues/vendor-payments/"
    queue = Queue.objects.get(slug="vendor-payments")
    assert QueueMembership.objects.get(queue=queue).user == cast.lead


def test_a_name_that_is_taken_is_told_at_the_form_with_422(cast: Cast, client_of: ClientOf) -> None:
    response = client_of(cast.lead).post("/queues/", {"name": "payments", "description": "Again"})
    assert response.status_code == 422
    page = response.content.decode()
    assert "There is already a queue" in page
    assert "Again" in page


def test_a_reviewer_sees_their_queue_and_changes_nothing(cast: Cast, client_of: ClientOf) -> None:
    client = client_of(cast.reviewer)
    page = client.get("/queues/payments/").content.decode()
    assert "Only its leads and administrators can change this queue" in page
    assert "<form method" not in page.split('id="main"')[1].split("</main>")[0]
    assert client.post("/queues/payments/rename/", {"name": "Mine"}).status_code == 403
    assert client.post("/queues/", {"name": "Mine"}).status_code == 403


def test_a_queue_one_is_not_in_does_not_exist(cast: Cast, client_of: ClientOf) -> None:
    client = client_of(cast.outsider)
    assert client.get("/queues/payments/").status_code == 404
    assert "Payments" not in client.get("/queues/").content.decode()


def test_a_lead_adds_a_member_who_then_sees_the_queue_and_removes_them_again(
    cast: Cast, client_of: ClientOf
) -> None:
    lead, outsider = client_of(cast.lead), client_of(cast.outsider)
    lead.post("/queues/payments/members/", {"user": cast.outsider.pk})
    assert outsider.get("/queues/payments/").status_code == 200
    lead.post("/queues/payments/members/remove/", {"user": cast.outsider.pk})
    assert outsider.get("/queues/payments/").status_code == 404


def test_an_auditor_is_offered_to_no_queue_and_refused(cast: Cast, client_of: ClientOf) -> None:
    lead = client_of(cast.lead)
    assert "Noor A." not in lead.get("/queues/payments/").content.decode()
    assert lead.post("/queues/payments/members/", {"user": cast.auditor.pk}).status_code == 422


def test_a_policy_is_added_changed_and_deleted_and_each_change_raises_its_version(
    cast: Cast, client_of: ClientOf
) -> None:
    client = client_of(cast.lead)
    fields = {"name": "Big refunds", "tool": "wire_money", "agent": "", "risk": "high", "minutes": "60"}
    client.post("/queues/payments/policies/", fields)
    policy = Policy.objects.get(name="big-refunds")
    assert (policy.version, policy.risk, policy.minutes_to_decide) == (1, "high", 60)
    client.post("/queues/payments/policies/", fields | {"risk": "critical", "minutes": ""})
    policy.refresh_from_db()
    assert (policy.version, policy.risk, policy.minutes_to_decide) == (2, "critical", None)
    client.post(f"/queues/payments/policies/{policy.pk}/delete/")
    assert not Policy.objects.filter(pk=policy.pk).exists()


def test_a_policy_that_does_not_fit_comes_back_with_what_was_typed(cast: Cast, client_of: ClientOf) -> None:
    fields = {"name": "Odd", "tool": "wire_money", "risk": "high", "minutes": "soon"}
    response = client_of(cast.lead).post("/queues/payments/policies/", fields)
    assert response.status_code == 422
    page = response.content.decode()
    assert "Enter a whole number" in page
    assert 'value="soon"' in page
    assert not Policy.objects.filter(tool="wire_money").exists()


def test_a_second_policy_for_the_same_tool_is_refused(cast: Cast, client_of: ClientOf) -> None:
    fields = {"name": "Twice", "tool": "issue_refund", "agent": "", "risk": "low", "minutes": ""}
    response = client_of(cast.lead).post("/queues/payments/policies/", fields)
    assert response.status_code == 422
    assert "already matches" in response.content.decode()


def test_a_lead_assigns_a_task_and_moves_it_to_another_queue(cast: Cast, client_of: ClientOf) -> None:
    task = open_refund(by=cast.developer)
    client = client_of(cast.lead)
    client.post(f"/tasks/{task.pk}/assign/", {"user": cast.reviewer2.pk})
    task.refresh_from_db()
    assert task.assigned_to == cast.reviewer2
    response = client.post(f"/tasks/{task.pk}/move/", {"queue": "mail", "next": "/queues/payments/?page=1"})
    assert response.headers["Location"] == "/queues/payments/?page=1"
    task.refresh_from_db()
    assert task.queue == cast.mail


def test_a_reviewer_assigns_and_moves_nothing(cast: Cast, client_of: ClientOf) -> None:
    task = open_refund(by=cast.developer)
    client = client_of(cast.reviewer)
    assert client.post(f"/tasks/{task.pk}/assign/", {"user": cast.reviewer.pk}).status_code == 403
    assert client.post(f"/tasks/{task.pk}/move/", {"queue": "mail"}).status_code == 403


def test_a_form_never_leads_away_from_the_site(cast: Cast, client_of: ClientOf) -> None:
    task = open_refund(by=cast.developer)
    response = client_of(cast.lead).post(
        f"/tasks/{task.pk}/move/", {"queue": "mail", "next": "https://evil.example/"}
    )
    assert response.headers["Location"] == "/queues/payments/"


def test_a_lead_sets_how_long_cards_may_wait_and_it_holds_for_new_cards(
    cast: Cast, client_of: ClientOf
) -> None:
    old = open_refund(by=cast.developer)
    client = client_of(cast.lead)
    response = client.post("/queues/payments/deadline/", {"minutes": "90", "on_expiry": "reject"})
    assert response.headers["Location"] == "/queues/payments/#deadline"
    new = open_refund(by=cast.developer)
    old.refresh_from_db()
    assert (old.due_at, old.on_expiry) == (None, "hold")
    assert (new.due_at is not None, new.on_expiry) == (True, "reject")
    page = client_of(cast.reviewer).get("/queues/payments/").content.decode()
    assert "90 minutes to decide, then rejected" in page
    card = client_of(cast.reviewer).get(f"/tasks/{new.pk}/").content.decode()
    assert "it is rejected and nothing runs. Set by queue Payments." in card
    (told,) = AuditEvent.objects.filter(type="queue.deadline_set")
    assert (told.actor, told.queue_id) == (cast.lead, cast.payments.pk)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"minutes": "soon", "on_expiry": "hold"}, "Enter a whole number"),
        ({"minutes": "5", "on_expiry": "approve"}, "Nothing is ever approved"),
        ({"minutes": "5"}, "Nothing is ever approved"),
    ],
)
def test_a_deadline_that_does_not_fit_or_would_approve_is_refused(
    cast: Cast, client_of: ClientOf, fields: dict[str, str], message: str
) -> None:
    response = client_of(cast.lead).post("/queues/payments/deadline/", fields)
    assert response.status_code == 422
    assert message in response.content.decode()
    cast.payments.refresh_from_db()
    assert cast.payments.minutes_to_decide is None


def test_only_leads_and_admins_set_deadlines(cast: Cast, client_of: ClientOf) -> None:
    fields = {"minutes": "5", "on_expiry": "hold"}
    assert client_of(cast.reviewer).post("/queues/payments/deadline/", fields).status_code == 403
    assert client_of(cast.outsider).post("/queues/payments/deadline/", fields).status_code == 404
    assert client_of(cast.admin).post("/queues/payments/deadline/", fields).status_code == 302


def test_a_policy_says_what_happens_when_its_time_is_up(cast: Cast, client_of: ClientOf) -> None:
    client = client_of(cast.lead)
    fields = {"name": "Wires", "tool": "wire_money", "risk": "high", "minutes": "30", "on_expiry": "reject"}
    client.post("/queues/payments/policies/", fields)
    assert Policy.objects.get(name="wires").on_expiry == "reject"
    assert "30 minutes to decide, then rejected" in client.get("/queues/payments/").content.decode()
    response = client.post("/queues/payments/policies/", fields | {"on_expiry": "approve"})
    assert response.status_code == 422
    assert Policy.objects.get(name="wires").on_expiry == "reject"


def test_an_overdue_card_says_so_and_stays_open(cast: Cast, client_of: ClientOf) -> None:
    client_of(cast.lead).post("/queues/payments/deadline/", {"minutes": "90", "on_expiry": "hold"})
    task = open_refund(by=cast.developer)
    client = client_of(cast.reviewer)
    assert "it stays open and is marked overdue" in client.get(f"/tasks/{task.pk}/").content.decode()
    ReviewTask.objects.filter(pk=task.pk).update(due_at=now() - timedelta(hours=2))
    assert expire_due() == 1
    assert "Overdue since" in client.get(f"/tasks/{task.pk}/").content.decode()
    inbox = client.get("/").content.decode()
    assert 'data-group="overdue"' in inbox.split("<section")[2]  # before all others
    assert "Overdue <span data-count>1</span>" in inbox
