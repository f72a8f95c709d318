"""Queues, who belongs to them, and the policies that send a request to one."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from reviewer.accounts.models import User


class Risk(models.TextChoices):
    """How much harm a wrong approval could do."""

    LOW = "low", _("Low")
    MEDIUM = "medium", _("Medium")
    HIGH = "high", _("High")
    CRITICAL = "critical", _("Critical")


class OnExpiry(models.TextChoices):
    """What happens to a card that nobody decided in time. There is no choice that approves."""

    HOLD = "hold", _("Hold: it stays open and is marked overdue")
    REJECT = "reject", _("Reject: the agent is told that nobody decided in time")


class Queue(models.Model):
    """A list of tasks with the people who may see and decide them."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=80, unique=True)
    description = models.CharField(max_length=200, blank=True)
    icon = models.CharField(max_length=30, default="inbox")
    is_default = models.BooleanField(default=False, help_text="Takes whatever no policy sends elsewhere.")
    minutes_to_decide = models.PositiveIntegerField(
        null=True, blank=True, help_text="For cards whose policy sets no time."
    )
    on_expiry = models.CharField(
        max_length=6, choices=OnExpiry, default=OnExpiry.HOLD, db_default=OnExpiry.HOLD
    )
    created_at = models.DateTimeField(db_default=Now())

    members: models.ManyToManyField[User, QueueMembership] = models.ManyToManyField(
        User, through="QueueMembership", related_name="queues"
    )

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="queue_one_default"
            ),
            models.CheckConstraint(condition=~Q(name=""), name="queue_has_a_name"),
            models.CheckConstraint(
                condition=Q(on_expiry__in=OnExpiry.values), name="queue_expiry_never_approves"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class QueueMembership(models.Model):
    """A person in a queue; ``leads`` may also assign, move and change the queue."""

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    leads = models.BooleanField(default=False)
    added_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["queue", "user"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["queue", "user"], name="queue_member_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.queue}"


class Policy(models.Model):
    """Which requests go to which queue, how risky they are and how long they may wait.

    An empty ``agent`` or ``tool`` matches every one; the most specific policy wins. Each change raises
    ``version``, and a card's digest covers name and version.
    """

    name = models.SlugField(max_length=60, unique=True)
    version = models.PositiveIntegerField(default=1)
    agent = models.CharField(max_length=100, blank=True)
    tool = models.CharField(max_length=200, blank=True)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="policies")
    risk = models.CharField(max_length=10, choices=Risk, default=Risk.MEDIUM)
    minutes_to_decide = models.PositiveIntegerField(null=True, blank=True)
    on_expiry = models.CharField(
        max_length=6, choices=OnExpiry, default=OnExpiry.HOLD, db_default=OnExpiry.HOLD
    )
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["name"]
        verbose_name_plural = "policies"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["agent", "tool"], name="policy_one_for_each_match"),
            models.CheckConstraint(condition=Q(risk__in=Risk.values), name="policy_risk_is_known"),
            models.CheckConstraint(
                condition=Q(on_expiry__in=OnExpiry.values), name="policy_expiry_never_approves"
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """Name and version, as the card shows and the digest covers them."""
        return f"{self.name} v{self.version}"
