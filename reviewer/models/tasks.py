"""Review tasks, who holds them, what was decided, and what came of it."""

from __future__ import annotations

import uuid
from typing import ClassVar, Self

import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from agents_runtime.canonical import Json, decode
from agents_runtime.models import Pause, Run
from reviewer.accounts.models import User
from reviewer.models.queues import OnExpiry, Policy, Queue, Risk


class TaskStatus(models.TextChoices):
    """What has become of a task; a claim is a lease on an open task, not a status."""

    OPEN = "open", _("Waiting")
    DECIDED = "decided", _("Decided")
    EXPIRED = "expired", _("Expired")
    SUPERSEDED = "superseded", _("Superseded")
    WITHDRAWN = "withdrawn", _("Withdrawn")


TASK_TRANSITIONS: dict[str, frozenset[str]] = {
    "open": frozenset({"decided", "expired", "superseded", "withdrawn"}),
    "decided": frozenset({"withdrawn", "superseded"}),  # decided, but its batch never went out
    "expired": frozenset(),
    "superseded": frozenset(),
    "withdrawn": frozenset(),
}


class Verdict(models.TextChoices):
    """What a person chose."""

    APPROVE = "approve", _("Approved")
    EDIT = "edit", _("Edited")
    REJECT = "reject", _("Rejected")
    RESPOND = "respond", _("Answered")
    ANSWER = "answer", _("Answered")


class ReviewTaskQuerySet(models.QuerySet["ReviewTask"]):
    """The verbs of reading tasks."""

    def open(self) -> Self:
        """Return the tasks that wait for a decision."""
        return self.filter(status=TaskStatus.OPEN)

    def held_by(self, user: User) -> Self:
        """Return the open tasks that this person holds now, by the database's clock."""
        return self.open().filter(claimed_by=user, claimed_until__gt=Now())

    def free(self) -> Self:
        """Return the open tasks that nobody holds now, by the database's clock."""
        return self.open().filter(Q(claimed_by__isnull=True) | Q(claimed_until__lte=Now()))


class ReviewTask(models.Model):
    """One action to decide. What the card shows is fixed here when the task opens, as canonical text.

    ``member`` is set only on tasks that were read with whether their reader belongs to the queue: to the
    reader's key, or 0.
    """

    member: int | None = None

    class Kind(models.TextChoices):
        """What is asked."""

        TOOL_CALL = "tool_call", _("Tool call")
        QUESTION = "question", _("Question")
        CONTINUE = "continue", _("Continue")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pause = models.ForeignKey(Pause, on_delete=models.PROTECT, related_name="tasks")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="tasks")
    position = models.PositiveIntegerField(default=0)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="tasks")
    kind = models.CharField(max_length=10, choices=Kind)
    status = models.CharField(max_length=10, choices=TaskStatus, default=TaskStatus.OPEN)
    version = models.PositiveIntegerField(default=1, help_text="Raised by every change; orders live updates.")

    title = models.CharField(max_length=300)
    agent = models.CharField(max_length=100)
    tool = models.CharField(max_length=200, blank=True)
    tool_call_id = models.CharField(max_length=200, blank=True)
    action = models.TextField(help_text="Arguments or question, keys in the order they came.")
    response_schema = models.TextField(help_text="Keys in the order they came.")
    args_schema = models.TextField(default="null", help_text="Keys in the order they came.")
    description = models.TextField(blank=True)
    said = models.TextField(blank=True, help_text="The agent's own words; untrusted.")
    risk = models.CharField(max_length=10, choices=Risk, default=Risk.MEDIUM)
    policy = models.ForeignKey(Policy, on_delete=models.SET_NULL, null=True, blank=True, related_name="tasks")
    policy_label = models.CharField(max_length=90)
    digest = models.CharField(max_length=64)
    previous = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="next"
    )
    refusal = models.TextField(
        default="[]", help_text="Canonical {pointer, message} list of the refused answer."
    )
    refused_answer = models.TextField(default="null", help_text="Canonical.")

    assigned_to = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="assigned_tasks"
    )
    claimed_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="claimed_tasks"
    )
    claimed_until = models.DateTimeField(null=True, blank=True)
    claim_version = models.PositiveIntegerField(default=0, help_text="The fence: raised by every new claim.")
    due_at = models.DateTimeField(null=True, blank=True, help_text="Until when it should be decided.")
    on_expiry = models.CharField(
        max_length=6, choices=OnExpiry, default=OnExpiry.HOLD, db_default=OnExpiry.HOLD
    )
    expiry_label = models.CharField(
        max_length=120,
        blank=True,
        default="",
        db_default="",
        help_text="Whose deadline it is: a policy, queue or agent.",
    )
    overdue_at = models.DateTimeField(
        null=True, blank=True, help_text="When the sweep found that nobody had decided in time."
    )
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = ReviewTaskQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["due_at", "created_at", "pk"]
        indexes: ClassVar = [
            models.Index(fields=["queue", "status", "created_at"], name="task_by_queue"),
            models.Index(fields=["claimed_by", "status"], name="task_by_holder"),
            models.Index(
                fields=["due_at"],
                condition=Q(status=TaskStatus.OPEN, due_at__isnull=False, overdue_at__isnull=True),
                name="task_by_deadline",
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["pause", "position"], name="task_is_one_action"),
            models.CheckConstraint(condition=Q(status__in=TaskStatus.values), name="task_status_is_known"),
            models.CheckConstraint(
                condition=Q(claimed_by__isnull=True) | Q(claimed_until__isnull=False),
                name="task_claim_is_a_lease",
            ),
            models.CheckConstraint(
                condition=Q(status=TaskStatus.OPEN) | Q(closed_at__isnull=False),
                name="task_closed_has_its_time",
            ),
            models.CheckConstraint(condition=~Q(previous=F("id")), name="task_does_not_follow_itself"),
            models.CheckConstraint(
                condition=Q(on_expiry__in=OnExpiry.values), name="task_expiry_never_approves"
            ),
        ]
        triggers: ClassVar = [
            pgtrigger.FSM(
                name="task_status_changes",
                field="status",
                transitions=sorted(
                    (old, new) for old, targets in TASK_TRANSITIONS.items() for new in targets
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_open(self) -> bool:
        """Say whether it waits for a decision."""
        return self.status == TaskStatus.OPEN

    @property
    def arguments(self) -> Json:
        """What will happen, decoded."""
        return decode(self.action)

    @property
    def schema(self) -> Json:
        """The response schema, decoded."""
        return decode(self.response_schema)

    @property
    def short_digest(self) -> str:
        """The digest as people compare it: first and last characters."""
        return f"{self.digest[:4]}…{self.digest[-2:]}"


class Decision(models.Model):
    """What one person decided in one round, on exactly one digest; never changed or deleted."""

    task = models.ForeignKey(ReviewTask, on_delete=models.PROTECT, related_name="decisions")
    round = models.PositiveIntegerField(default=1)
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="decisions")
    person_name = models.CharField(max_length=150, help_text="As it was then.")
    verdict = models.CharField(max_length=10, choices=Verdict)
    answer = models.TextField(help_text="Canonical, as the response schema asks.")
    changes = models.TextField(
        blank=True, help_text="What the answer changes in the proposal, as a JSON list; empty: not kept then."
    )
    digest = models.CharField(max_length=64)
    showing = models.ForeignKey(
        "Showing",
        on_delete=models.PROTECT,
        null=True,
        related_name="decisions",
        help_text="The card as this person had it before them; none for a decision through the API.",
    )
    reason_code = models.CharField(max_length=40, blank=True)
    comment = models.TextField(blank=True)
    via = models.CharField(max_length=5, choices=[("web", "web"), ("api", "api")])
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["decided_at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["task", "round", "person"], name="decision_once_each_round"),
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="decision_verdict_is_known"),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(name="decision_is_final", operation=pgtrigger.Update | pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.person_name}"


class Outcome(models.Model):
    """The effective decision of a task: what goes to the agent. One today; n-of-m review fills it later.

    ``decided_by`` is empty where nobody decided in time; such an outcome is a rejection and nothing else.
    """

    task = models.OneToOneField(ReviewTask, on_delete=models.PROTECT, related_name="outcome")
    round = models.PositiveIntegerField(default=1)
    verdict = models.CharField(max_length=10, choices=Verdict)
    answer = models.TextField(help_text="Canonical.")
    decided_by = models.ForeignKey(
        Decision, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(decided_by__isnull=False) | Q(verdict=Verdict.REJECT),
                name="outcome_of_nobody_only_rejects",
            ),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(name="outcome_is_final", operation=pgtrigger.Update | pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} for {self.task_id}"


class CardOpening(models.Model):
    """That a person had this card, with this digest, before them: as ``showing`` says, or as JSON."""

    task = models.ForeignKey(ReviewTask, on_delete=models.CASCADE, related_name="openings")
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    via = models.CharField(max_length=5, choices=[("web", "web"), ("api", "api")])
    showing = models.ForeignKey("Showing", on_delete=models.PROTECT, null=True, related_name="openings")
    opened_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["task", "person", "digest", "via"],
                condition=Q(showing__isnull=True),
                name="card_opening_once",
            ),
            models.UniqueConstraint(
                fields=["task", "person", "digest", "via", "showing"], name="card_opening_once_as_shown"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.person_id} opened {self.task_id}"
