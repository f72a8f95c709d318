"""Everything the humans' side stores."""

from reviewer.models.audit import AuditEvent
from reviewer.models.idempotency import IdempotentReply
from reviewer.models.queues import Policy, Queue, QueueMembership
from reviewer.models.showings import Expansion, Showing, Snapshot
from reviewer.models.tasks import CardOpening, Decision, Outcome, ReviewTask, TaskStatus, Verdict

__all__ = [
    "AuditEvent",
    "CardOpening",
    "Decision",
    "Expansion",
    "IdempotentReply",
    "Outcome",
    "Policy",
    "Queue",
    "QueueMembership",
    "ReviewTask",
    "Showing",
    "Snapshot",
    "TaskStatus",
    "Verdict",
]
