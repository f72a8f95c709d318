"""The technical truth: agents as registered, runs, pauses, tool executions, and the steps of a run.

Nothing here knows people: ``requested_by`` and the like are opaque actor references that the humans'
side writes and reads. Values of agents are stored as canonical text (see ``canonical``), never as jsonb.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import ClassVar, Self

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from agents_runtime import states
from agents_runtime.canonical import Json, decode
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus, Trouble


def _only_known_changes(name: str, table: states.Transitions) -> pgtrigger.FSM:
    """Return a trigger that refuses every change of status that the table of states does not allow."""
    return pgtrigger.FSM(name=name, field="status", transitions=states.pairs(table))


LONG_TEXTS_OF_RUN = (
    *("input", "pending_input", "output", "state"),
    *("agent__input_schema", "agent__example_input", "agent__tools", "agent__gates"),
)
"""Of a run and its agent: a card holds all that it shows, and these may be a thousand times as long."""


class AgentSpec(models.Model):
    """One agent as a worker last saw it; the web reads this row and never imports the agent's code."""

    class Mode(models.TextChoices):
        """How the agent's own middleware pauses."""

        PER_CALL = "per_call", _("Asks for each call")
        BATCHED = "batched", _("Asks for a batch of calls")
        MIXED = "mixed", _("Asks in both ways")
        NONE = "none", _("No tool of it is gated")

    name = models.CharField(max_length=100, unique=True)
    title = models.CharField(max_length=200, blank=True)
    description = models.TextField(blank=True)
    source = models.CharField(max_length=500, help_text="The langgraph.json file that names the agent.")
    entry = models.CharField(max_length=500, help_text="The entry in that file, such as ./refunds.py:graph.")
    input_schema = models.TextField(default="{}", help_text="Canonical JSON Schema of the agent's input.")
    example_input = models.TextField(blank=True, help_text="Canonical JSON to prefill the start form with.")
    tools = models.TextField(
        default="{}", help_text="Canonical: tool -> {description, args_schema, title, gated}."
    )
    gates = models.TextField(default="{}", help_text="Canonical: gated tool -> {decisions, conditional}.")
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.NONE)
    is_async = models.BooleanField(default=False)
    step_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="Until a step that hangs is ended; empty: the installation's limit."
    )
    fingerprint = models.CharField(max_length=64, blank=True)
    import_error = models.TextField(blank=True)
    is_listed = models.BooleanField(default=True)
    registered_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_available(self) -> bool:
        """Say whether a run of it can start."""
        return self.is_listed and not self.import_error


class RegistrationProblem(models.Model):
    """A line about something that could not be registered: a file, an entry, a name used twice."""

    source = models.CharField(max_length=500)
    entry = models.CharField(max_length=500, blank=True)
    message = models.TextField()
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["source", "entry", "pk"]

    def __str__(self) -> str:
        return f"{self.source}: {self.message}"


class RunQuerySet(models.QuerySet["Run"]):
    """Reads and locks of runs."""

    def live(self) -> Self:
        """Return the runs that may still do something."""
        return self.filter(status__in=states.LIVE_RUN)


class Run(models.Model):
    """One LangGraph thread of one agent, from its first input to its end.

    ``moment`` is on locked runs only: the time of the transaction that holds the lock. Whether it has any
    pauses is on those that are read for a step; that, and whether it has attempts that were started, on those
    that are locked for a turn.
    """

    moment: dt.datetime
    has_pauses: bool
    has_started: bool

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent = models.ForeignKey(AgentSpec, on_delete=models.PROTECT, related_name="runs")
    status = models.CharField(max_length=10, choices=RunStatus, default=RunStatus.QUEUED)
    input = models.TextField(help_text="Canonical.")
    pending_input = models.TextField(blank=True, help_text="Canonical input that no checkpoint holds yet.")
    output = models.TextField(blank=True, help_text="Canonical, once finished.")
    closes_reviews = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its open reviews were closed for new input; the thread has yet to follow.",
    )
    error = models.TextField(blank=True, help_text="What went wrong, in words, while failed.")
    trouble = models.CharField(
        max_length=10,
        choices=Trouble,
        blank=True,
        default="",
        db_default="",
        help_text="The kind of the error, if known.",
    )
    requested_by = models.CharField(max_length=64, help_text="Opaque reference to who started it.")
    fed_by = models.TextField(
        default="[]",
        db_default="[]",
        help_text="Canonical list of opaque references to those who gave it input since.",
    )
    gates = models.TextField(default="{}", help_text="The agent's gates as recorded when the run started.")
    fingerprint = models.CharField(max_length=64, blank=True)
    epoch = models.BigIntegerField(default=0, help_text="Raised each time a worker takes the thread's lock.")
    retry_granted = models.BooleanField(default=False, help_text="A person asked for one more try.")
    state = models.TextField(
        blank=True, help_text="Canonical: {values, next, interrupts, checkpoint_id} as last settled."
    )
    settled_epoch = models.BigIntegerField(
        default=0, help_text="The last epoch whose worker came to a settlement."
    )
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(db_default=Now())
    nudged_at = models.DateTimeField(
        null=True, blank=True, help_text="When the sweep last sent a message for it."
    )
    pruned_at = models.DateTimeField(
        null=True, blank=True, help_text="When all checkpoints but the latest were deleted, or kept for good."
    )
    thread_deleted_at = models.DateTimeField(null=True, blank=True)
    thread_deleted_by = models.CharField(
        max_length=150,
        blank=True,
        default="",
        db_default="",
        help_text="Who or what deleted the checkpoints, as people read it.",
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [
            models.Index(fields=["status", "updated_at"], name="run_by_status"),
            models.Index(fields=["requested_by", "-created_at"], name="run_by_requester"),
            models.Index(
                fields=["finished_at"],
                condition=Q(
                    finished_at__isnull=False, thread_deleted_at__isnull=True, pruned_at__isnull=True
                ),
                name="run_to_prune",
            ),
            models.Index(
                fields=["finished_at"],
                condition=Q(finished_at__isnull=False, thread_deleted_at__isnull=True),
                name="run_with_thread_by_end",
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(status__in=RunStatus.values), name="run_status_is_known"),
            models.CheckConstraint(
                condition=~Q(status=RunStatus.FAILED) | ~Q(error=""), name="run_failed_says_why"
            ),
            models.CheckConstraint(
                condition=Q(finished_at__isnull=False)
                | ~Q(status__in=[RunStatus.FINISHED, RunStatus.CANCELLED]),
                name="run_ended_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(thread_deleted_at__isnull=True)
                | (Q(status__in=[RunStatus.FINISHED, RunStatus.CANCELLED]) & ~Q(thread_deleted_by="")),
                name="run_without_thread_is_over",
            ),
            models.CheckConstraint(
                condition=Q(closes_reviews=False) | ~Q(pending_input="") | Q(status=RunStatus.CANCELLED),
                name="run_closes_reviews_for_input",
            ),
        ]
        triggers: ClassVar = [_only_known_changes("run_status_changes", states.RUN_TRANSITIONS)]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.short_id}"

    def is_directed_by(self, reference: str) -> bool:
        """Say whether this actor started the run or gave it input since: who told it what to do."""
        return reference == self.requested_by or reference in decode(self.fed_by)

    @property
    def thread_id(self) -> str:
        """The LangGraph thread of this run."""
        return str(self.pk)

    @property
    def short_id(self) -> str:
        """The form people read: ``r-`` and eight hex digits."""
        return f"r-{str(self.pk)[:8]}"

    @property
    def is_live(self) -> bool:
        """Say whether the run may still do something."""
        return self.status in states.LIVE_RUN

    def become(self, status: RunStatus) -> None:
        """Change the status in memory, or raise ``WrongState``."""
        if status == self.status:
            return
        states.check_transition(states.RUN_TRANSITIONS, self.short_id, old=self.status, new=status)
        self.status = status


class RunStep(models.Model):
    """One thing a run did, as its page tells it: a model spoke, a tool ran, a node finished."""

    class Kind(models.TextChoices):
        """What happened."""

        INPUT = "input", _("Input")
        MODEL = "model", _("Model said")
        TOOL = "tool", _("Tool ran")
        NODE = "node", _("Step finished")
        ERROR = "error", _("Error")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps")
    key = models.CharField(max_length=200, help_text="Message id or task id: a replay writes no second row.")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=200, blank=True, help_text="Tool or node.")
    text = models.TextField(blank=True, help_text="What was said or returned; untrusted.")
    data = models.TextField(blank=True, help_text="Canonical details: tool calls, arguments.")
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "key"], name="run_step_is_told_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Pause(models.Model):
    """One interrupt that a run waits at, or waited at.

    ``tried`` are the attempts at its calls, with their positions and statuses, where a turn has read them.
    """

    tried: Sequence[ToolExecution] | None = None

    class Kind(models.TextChoices):
        """The shape of the interrupt."""

        PER_CALL = "per_call", _("One tool call")
        BATCHED = "batched", _("A batch of tool calls")
        LEGACY = "legacy", _("Legacy request")
        QUESTION = "question", _("Question")
        STATIC = "static", _("Breakpoint")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="pauses")
    namespace = models.CharField(max_length=500, blank=True)
    interrupt_id = models.CharField(max_length=120)
    round = models.PositiveIntegerField(default=1, help_text="Raised when the agent refused an answer.")
    kind = models.CharField(max_length=10, choices=Kind)
    tool = models.CharField(max_length=200, blank=True)
    tool_call_id = models.CharField(max_length=200, blank=True)
    place = models.PositiveIntegerField(default=0, help_text="Position of the call within its turn.")
    value = models.TextField(help_text="Canonical interrupt value, as raised.")
    calls = models.TextField(
        default="[]",
        help_text="Canonical list of {tool, tool_call_id, arguments} by position: what may be allowed.",
    )
    response_schema = models.TextField(default="null", help_text="Canonical; null where the agent gave none.")
    status = models.CharField(max_length=10, choices=PauseStatus, default=PauseStatus.PENDING)
    answers = models.TextField(blank=True, help_text="Canonical list: one answer for each position.")
    error = models.TextField(blank=True, help_text="Why it failed, was refused or was closed.")
    problems = models.TextField(
        default="[]", help_text="Canonical list of {pointer, message} of a refused answer."
    )
    delivery_epoch = models.BigIntegerField(null=True, blank=True)
    previous = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="next"
    )
    created_at = models.DateTimeField(db_default=Now())
    answered_at = models.DateTimeField(null=True, blank=True)
    delivery_started_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["created_at", "place", "pk"]
        indexes: ClassVar = [models.Index(fields=["status"], name="pause_by_status")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "namespace", "interrupt_id", "round"], name="pause_is_one_interrupt"
            ),
            models.UniqueConstraint(
                fields=["run", "namespace", "interrupt_id"],
                condition=Q(status__in=sorted(states.OPEN_PAUSE)),
                name="pause_open_once",
            ),
            models.CheckConstraint(condition=Q(status__in=PauseStatus.values), name="pause_status_is_known"),
            models.CheckConstraint(
                condition=~Q(
                    status__in=["answered", "delivering", "delivered", "failed", "in_doubt", "refused"]
                )
                | (~Q(answers="") & Q(answered_at__isnull=False)),
                name="pause_goes_on_only_answered",
            ),
            models.CheckConstraint(
                condition=~Q(status=PauseStatus.DELIVERING) | Q(delivery_epoch__isnull=False),
                name="pause_delivery_has_its_epoch",
            ),
        ]
        triggers: ClassVar = [_only_known_changes("pause_status_changes", states.PAUSE_TRANSITIONS)]

    def __str__(self) -> str:
        return f"{self.tool or self.kind} {self.interrupt_id[:8]}"

    @property
    def is_open(self) -> bool:
        """Say whether something can still come of it."""
        return self.status in states.OPEN_PAUSE

    @property
    def call_list(self) -> list[dict[str, Json]]:
        """The tool calls it is about, by position; empty for a question."""
        return list(decode(self.calls))

    @property
    def answer_list(self) -> list[Json]:
        """The answers by position; empty while unanswered."""
        return decode(self.answers) if self.answers else []

    def become(self, status: PauseStatus) -> None:
        """Change the status in memory, or raise ``WrongState``."""
        if status == self.status:
            return
        states.check_transition(states.PAUSE_TRANSITIONS, str(self), old=self.status, new=status)
        self.status = status


class ToolExecution(models.Model):
    """The ledger: one attempt to run one gated call, opened and committed before the tool's code runs."""

    class Grant(models.TextChoices):
        """Why this attempt was allowed to start."""

        DECISION = "decision", _("A recorded decision")
        CONDITION = "condition", _("The agent's own condition said that nobody need be asked")
        RETRY = "retry", _("A person asked for a retry")
        RUN_AGAIN = "run_again", _("A person chose to run it again")
        ONCE = "once", _("The agent's own code guards it by a key")
        HARMLESS = "harmless", _("Its author says that such an error harms nothing")

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="executions")
    pause = models.ForeignKey(
        Pause, on_delete=models.PROTECT, null=True, blank=True, related_name="executions"
    )
    position = models.PositiveIntegerField(default=0)
    call_key = models.CharField(max_length=300, help_text="Names the call: the same for every attempt at it.")
    attempt = models.PositiveIntegerField(default=1)
    tool = models.CharField(max_length=200)
    tool_call_id = models.CharField(max_length=200, blank=True)
    namespace = models.CharField(max_length=500, blank=True)
    arguments = models.TextField(help_text="Canonical, as the tool got them.")
    arguments_digest = models.CharField(max_length=64)
    grant = models.CharField(max_length=10, choices=Grant)
    status = models.CharField(max_length=10, choices=ExecutionStatus, default=ExecutionStatus.STARTED)
    epoch = models.BigIntegerField()
    in_doubt_since = models.DateTimeField(null=True, blank=True)
    next_grant = models.CharField(
        max_length=10, choices=Grant, blank=True, help_text="One-shot permit for one more attempt."
    )
    result = models.TextField(blank=True, help_text="Canonical result or the result a person asserted.")
    replay_type = models.CharField(max_length=20, blank=True, help_text="How ``replay`` is serialised.")
    replay = models.BinaryField(
        null=True, blank=True, help_text="The result itself, to give it again without a run."
    )
    error = models.TextField(blank=True)
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["started_at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "call_key", "attempt"], name="execution_attempt_is_one"),
            models.UniqueConstraint(
                fields=["run", "call_key"],
                condition=Q(status__in=["started", "suspended"]),
                name="execution_one_attempt_at_a_time",
            ),
            models.UniqueConstraint(
                fields=["run", "call_key"],
                condition=Q(status__in=["succeeded", "asserted"]),
                name="execution_happens_once",
            ),
            models.UniqueConstraint(
                fields=["run", "call_key"], condition=Q(grant="once"), name="execution_once_key_is_one"
            ),
            models.CheckConstraint(
                condition=Q(pause__isnull=False)
                | Q(grant__in=["condition", "once"])
                | Q(attempt__gt=1, grant__in=["retry", "run_again", "harmless"]),
                name="execution_has_its_decision",
            ),
            models.CheckConstraint(
                condition=Q(status__in=ExecutionStatus.values), name="execution_status_is_known"
            ),
        ]
        triggers: ClassVar = [_only_known_changes("execution_status_changes", states.EXECUTION_TRANSITIONS)]

    def __str__(self) -> str:
        return f"{self.tool} attempt {self.attempt}"

    def become(self, status: ExecutionStatus) -> None:
        """Change the status in memory, or raise ``WrongState``."""
        if status == self.status:
            return
        states.check_transition(states.EXECUTION_TRANSITIONS, str(self), old=self.status, new=status)
        self.status = status
