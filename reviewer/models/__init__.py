"""Everything the humans' side stores."""

from reviewer.models.audit import AuditEvent
from reviewer.models.idempotency import IdempotentReply
from reviewer.models.queues import Policy, Queue, QueueMembership
from reviewer.models.tasks import CardOpening, Decision, Outcome, ReviewTask, TaskStatus, Verdict

__all__ = [
    "AuditEvent",
    "CardOpening",
    "Decision",
    "IdempotentReply",
    "Outcome",
    "Policy",
    "Queue",
    "QueueMembership",
    "ReviewTask",
    "TaskStatus",
    "Verdict",
]
