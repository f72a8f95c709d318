"""Queues as a lead arranges them on their pages."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from reviewer.accounts.models import User
from reviewer.models import Policy, Queue, QueueMembership
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
