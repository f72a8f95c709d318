"""The audit trail: one row for every change of state, written only by ``reviewer.audit.record``."""

from __future__ import annotations

from typing import ClassVar

import pgtrigger
from django.db import models
from django.db.models.functions import Now

from reviewer.accounts.models import User


class AuditEvent(models.Model):
    """One event. ``payload`` is the RFC 8785 text that counts; the columns beside it are for finding it."""

    type = models.CharField(max_length=40)
    at = models.DateTimeField(db_default=Now(), db_index=True)
    payload = models.TextField()
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    actor_name = models.CharField(
        max_length=150, help_text="As it was then; the system's parts have names too."
    )
    run_id = models.UUIDField(null=True, blank=True, db_index=True)
    task_id = models.UUIDField(null=True, blank=True, db_index=True)
    queue_id = models.BigIntegerField(null=True, blank=True)
    agent = models.CharField(max_length=100, blank=True)
    tool = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=20, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(fields=["type", "-id"], name="audit_by_type"),
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(name="audit_is_append_only", operation=pgtrigger.Update | pgtrigger.Delete),
            pgtrigger.Trigger(  # Protect knows no TRUNCATE, which fires once for each statement
                name="audit_is_never_emptied",
                operation=pgtrigger.Truncate,
                level=pgtrigger.Statement,
                when=pgtrigger.Before,
                func="RAISE EXCEPTION 'The trail is append-only: TRUNCATE of % is refused.', TG_TABLE_NAME;",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} #{self.pk}"
