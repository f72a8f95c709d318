"""``manage.py seed_demo``: the demo's people, queues and policies, at the first start only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from reviewer.accounts.models import Role, User
from reviewer.audit.record import Subject, record
from reviewer.audit.subjects import of_queue
from reviewer.models import Policy, Queue, QueueMembership
from reviewer.models.queues import Risk

ONE_SEED_AT_A_TIME = 0x5EED


@dataclass(frozen=True)
class Person:
    """A demo account."""

    username: str
    first_name: str
    last_name: str
    role: Role


@dataclass(frozen=True)
class Place:
    """A demo queue."""

    slug: str
    name: str
    description: str
    icon: str
    is_default: bool = False


@dataclass(frozen=True)
class Rule:
    """A demo policy."""

    name: str
    tool: str
    queue: str
    risk: Risk
    minutes: int | None = None


PEOPLE = (
    Person("reviewer", "Ines", "Hale", Role.REVIEWER),
    Person("reviewer2", "Tom", "Okafor", Role.REVIEWER),
    Person("lead", "Mara", "Lindt", Role.LEAD),
    Person("admin", "Ada", "Quist", Role.ADMIN),
    Person("auditor", "Noor", "Aziz", Role.AUDITOR),
    Person("developer", "Dev", "Ito", Role.DEVELOPER),
)
MEMBERS = ("reviewer", "reviewer2")
LEADER = "lead"
QUEUES = (
    Place("payments", "Payments", "Money that leaves the house", "credit-card"),
    Place("mail", "Customer mail", "What customers will read", "mail"),
    Place("records", "Records", "Changes to customers' records", "database"),
    Place("questions", "Questions", "What agents ask people", "message-square"),
    Place("general", "General", "What no policy sends elsewhere", "inbox", is_default=True),
)
RULES = (
    Rule("refunds", "issue_refund", "payments", Risk.HIGH, minutes=60),
    Rule("store-credit", "offer_store_credit", "payments", Risk.MEDIUM, minutes=120),
    Rule("vendor-payments", "pay_vendor", "payments", Risk.CRITICAL, minutes=60),
    Rule("customer-mail", "send_email", "mail", Risk.MEDIUM, minutes=240),
    Rule("record-deletion", "delete_record", "records", Risk.CRITICAL, minutes=120),
    Rule("record-merging", "merge_records", "records", Risk.HIGH, minutes=120),
    Rule("record-archiving", "archive_record", "records", Risk.LOW, minutes=480),
    Rule("questions", "ask_user", "questions", Risk.LOW, minutes=60),
)


class Command(BaseCommand):
    """Make the demo."""

    help = "Create the demo accounts, queues and policies if there is no account yet."

    def handle(self, *args: Any, **options: Any) -> None:
        """Create everything or nothing."""
        if not settings.COUNTERSIGN_DEMO:
            raise CommandError("Demo accounts have a known password and exist only in demo mode.")
        if _seed():
            self.stdout.write("Created: " + ", ".join(person.username for person in PEOPLE))
        else:
            self.stdout.write("There are accounts already; nothing was created.")


@transaction.atomic
def _seed() -> bool:
    """Create the demo and return True, or return False where any account exists."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ONE_SEED_AT_A_TIME])
    if User.objects.exists():
        return False
    people = _create_people()
    queues = {place.slug: _create_queue(place, people) for place in QUEUES}
    for rule in RULES:
        _create_policy(rule, queues[rule.queue])
    return True


def _create_people() -> dict[str, User]:
    password = make_password(settings.ENV.demo_password)
    people = {}
    for person in PEOPLE:
        user = User.objects.create(
            username=person.username,
            first_name=person.first_name,
            last_name=person.last_name,
            role=person.role,
            password=password,
        )
        record("account.created", subject=Subject(facts={"username": user.username, "role": user.role}))
        people[user.username] = user
    return people


def _create_queue(place: Place, people: dict[str, User]) -> Queue:
    # A worker that was quicker may have made the default queue already.
    queue, _is_new = Queue.objects.update_or_create(
        slug=place.slug,
        defaults={
            "name": place.name,
            "description": place.description,
            "icon": place.icon,
            "is_default": place.is_default,
        },
    )
    members = [QueueMembership(queue=queue, user=people[name]) for name in MEMBERS]
    leader = QueueMembership(queue=queue, user=people[LEADER], leads=True)
    QueueMembership.objects.bulk_create([*members, leader])
    record("queue.created", subject=of_queue(queue))
    return queue


def _create_policy(rule: Rule, queue: Queue) -> None:
    policy = Policy.objects.create(
        name=rule.name, tool=rule.tool, queue=queue, risk=rule.risk, minutes_to_decide=rule.minutes
    )
    facts = {
        "policy": policy.label,
        "risk": policy.risk,
        "minutes": policy.minutes_to_decide,
        "queue": queue.name,
    }
    record("policy.saved", subject=Subject(queue_id=queue.pk, tool=policy.tool, facts=facts))
