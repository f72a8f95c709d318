"""The audit trail's pages: who reads it, what its filters find, paging, and one event's story."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from django.db import transaction
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from reviewer import decisions
from reviewer.accounts.models import User
from reviewer.audit.record import Subject, record
from reviewer.audit.words import EVENT_WORDS, word_of
from reviewer.models import AuditEvent
from reviewer.web.audit import filter_of
from tests.cast import Cast
from tests.deciding.making import APPROVE, REJECT, open_refund

ClientOf = Callable[[User], Client]


def ids_of(client: Client, query: str) -> list[int]:
    """Return the ids of the events that a filter shows, in their order."""
    response = client.get(f"/audit/?{query}")
    assert response.status_code == 200
    return [event.pk for event in response.context["page"].rows]


def test_only_administrators_and_auditors_read_the_trail(cast: Cast, client_of: ClientOf) -> None:
    with transaction.atomic():
        record("queue.created", actor=cast.lead, subject=Subject())
        event = AuditEvent.objects.latest("pk")
    for person in (cast.reviewer, cast.lead, cast.developer, cast.outsider):
        assert client_of(person).get("/audit/").status_code == 403
        assert client_of(person).get(f"/audit/{event.pk}/").status_code == 403
    for person in (cast.admin, cast.auditor):
        assert client_of(person).get("/audit/").status_code == 200
        assert client_of(person).get(f"/audit/{event.pk}/").status_code == 200


def test_the_trail_opens_with_the_decisions_and_shows_all_events_when_asked(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_refund(by=cast.developer)
    decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    client = client_of(cast.auditor)
    assert ids_of(client, "") == [AuditEvent.objects.get(type="decision.made").pk]
    assert ids_of(client, "type=all") == list(AuditEvent.objects.order_by("-pk").values_list("pk", flat=True))


def test_each_filter_finds_what_it_names(cast: Cast, client_of: ClientOf) -> None:
    first, second = open_refund(by=cast.developer), open_refund(by=cast.developer, amount="20.00")
    decisions.decide(first.pk, by=cast.reviewer, answer=APPROVE, digest=first.digest)
    decisions.decide(second.pk, by=cast.reviewer2, answer=REJECT, digest=second.digest)
    approved, rejected = AuditEvent.objects.filter(type="decision.made").order_by("pk")
    client = client_of(cast.admin)
    assert ids_of(client, f"person={cast.reviewer2.pk}") == [rejected.pk]
    assert ids_of(client, "outcome=approve") == [approved.pk]
    assert ids_of(client, "tool=issue_refund&agent=refunds") == [rejected.pk, approved.pk]
    assert ids_of(client, "tool=send_email") == []
    assert ids_of(client, f"queue={cast.payments.pk}") == [rejected.pk, approved.pk]
    assert ids_of(client, f"run={first.run_id}") == [approved.pk]
    today, tomorrow = timezone.localdate(), timezone.localdate() + dt.timedelta(days=1)
    assert ids_of(client, f"since={today}&until={today}") == [rejected.pk, approved.pk]
    assert ids_of(client, f"since={tomorrow}") == []


@given(st.dictionaries(st.sampled_from(["person", "queue", "run", "since", "until", "type"]), st.text()))
def test_a_filter_that_makes_no_sense_filters_nothing_and_breaks_nothing(typed: dict[str, str]) -> None:
    filter_of(typed)


def test_an_outcome_that_no_decision_has_is_looked_for_in_every_event(cast: Cast) -> None:
    assert filter_of({"outcome": "failed"}).type == ""
    assert filter_of({"outcome": "reject"}).type == "decision.made"


def test_paging_by_key_shows_every_event_once_even_while_new_ones_arrive(
    cast: Cast, client_of: ClientOf
) -> None:
    _write(cast, 120)
    client = client_of(cast.auditor)
    first = ids_of(client, "type=queue.renamed")
    _write(cast, 3)
    second = ids_of(client, f"type=queue.renamed&before={first[-1]}")
    third = ids_of(client, f"type=queue.renamed&before={second[-1]}")
    seen = first + second + third
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == 120
    assert ids_of(client, f"type=queue.renamed&after={second[0]}") == first


def test_an_events_page_tells_the_cards_story_in_order_with_what_was_asked_and_decided(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_refund(by=cast.developer, amount="18.40")
    edit = {
        "type": "edit",
        "edited_action": {"name": "issue_refund", "args": {"order_id": "A-1001", "amount": "9.20"}},
    }
    decisions.decide(task.pk, by=cast.reviewer, answer=edit, digest=task.digest, comment="Half is right")
    event = AuditEvent.objects.get(type="decision.made")
    response = client_of(cast.auditor).get(f"/audit/{event.pk}/")
    page = response.content.decode()
    assert "Refund 18.40 for order A-1001" in page
    assert "9.20" in page
    assert "Half is right" in page
    assert task.digest in page
    related = [other.type for other in response.context["related"]]
    assert related.index("task.opened") < related.index("decision.made")


def test_an_events_page_says_the_reason_of_a_rejection_in_words(cast: Cast, client_of: ClientOf) -> None:
    task = open_refund(by=cast.developer, amount="18.40")
    reject = {"type": "reject", "message": "No receipt."}
    decisions.decide(task.pk, by=cast.reviewer, answer=reject, digest=task.digest, reason_code="not_proven")
    event = AuditEvent.objects.get(type="decision.made")
    page = client_of(cast.auditor).get(f"/audit/{event.pk}/").content.decode()
    assert "Reason: Not proven" in page


def test_an_unknown_event_is_404_for_an_auditor(cast: Cast, client_of: ClientOf) -> None:
    assert client_of(cast.auditor).get("/audit/999999999/").status_code == 404


def test_every_event_that_the_product_writes_has_words(cast: Cast) -> None:
    with transaction.atomic():
        record("task.opened", subject=Subject())
        named = AuditEvent.objects.latest("pk")
        record("moon.landed", subject=Subject())
        unnamed = AuditEvent.objects.latest("pk")
    assert str(word_of(named).label) == "Asked for a decision"
    assert str(word_of(unnamed).label) == "moon landed"
    assert all(str(word.label) for word in EVENT_WORDS.values())


@transaction.atomic
def _write(cast: Cast, count: int) -> None:
    for _ in range(count):
        record("queue.renamed", actor=cast.lead, subject=Subject(queue_id=cast.payments.pk))
