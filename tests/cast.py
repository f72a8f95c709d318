"""The fixed cast: who plays in the tests, and in which queues. One password opens every account."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.hashers import PBKDF2PasswordHasher, make_password

from reviewer.accounts.models import ApiToken, Role, User
from reviewer.models import Policy, Queue, QueueMembership

PASSWORD = "a-password-for-the-tests"


@dataclass(frozen=True)
class Cast:
    """People and queues.

    ``reviewer`` and ``reviewer2`` are members of every queue; ``lead`` leads them all; ``outsider`` is a
    reviewer in no queue; ``developer`` starts runs and is in no queue.
    """

    reviewer: User
    reviewer2: User
    lead: User
    admin: User
    auditor: User
    developer: User
    outsider: User
    payments: Queue
    mail: Queue
    general: Queue
    refunds_policy: Policy
    mail_policy: Policy

    @property
    def people(self) -> dict[str, User]:
        """Everyone, by user name."""
        everyone = (
            self.reviewer,
            self.reviewer2,
            self.lead,
            self.admin,
            self.auditor,
            self.developer,
            self.outsider,
        )
        return {person.username: person for person in everyone}


class QuickHasher(PBKDF2PasswordHasher):
    """Django's own hashing without its deliberate slowness; every process can check what it makes."""

    iterations = 1


def make_cast() -> Cast:
    """Store the cast and return it."""
    reviewer = _person("reviewer", "Ines", "Hale", Role.REVIEWER)
    reviewer2 = _person("reviewer2", "Tom", "Okafor", Role.REVIEWER)
    lead = _person("lead", "Mara", "Lindt", Role.LEAD)
    payments = Queue.objects.create(slug="payments", name="Payments", icon="credit-card")
    mail = Queue.objects.create(slug="mail", name="Customer mail", icon="mail")
    general = Queue.objects.create(slug="general", name="General", is_default=True)
    for queue in (payments, mail, general):
        _join(queue, reviewer, reviewer2, leader=lead)
    return Cast(
        reviewer=reviewer,
        reviewer2=reviewer2,
        lead=lead,
        admin=_person("admin", "Ada", "Quist", Role.ADMIN),
        auditor=_person("auditor", "Noor", "Aziz", Role.AUDITOR),
        developer=_person("developer", "Dev", "Ito", Role.DEVELOPER),
        outsider=_person("outsider", "Olu", "Berg", Role.REVIEWER),
        payments=payments,
        mail=mail,
        general=general,
        refunds_policy=Policy.objects.create(
            name="refunds", tool="issue_refund", queue=payments, risk="high"
        ),
        mail_policy=Policy.objects.create(name="customer-mail", tool="send_email", queue=mail, risk="medium"),
    )


def token_of(person: User) -> str:
    """Return the secret of a new API token of this person."""
    return ApiToken.issue(person, name="tests")[1]


def _person(username: str, first_name: str, last_name: str, role: Role) -> User:
    return User.objects.create(
        username=username,
        first_name=first_name,
        last_name=last_name,
        role=role,
        password=make_password(PASSWORD),
    )


def _join(queue: Queue, *members: User, leader: User) -> None:
    QueueMembership.objects.bulk_create(
        [QueueMembership(queue=queue, user=member) for member in members]
        + [QueueMembership(queue=queue, user=leader, leads=True)]
    )
