"""Replies kept for a day, so that a program that asks twice with one key gets the first answer."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from reviewer.accounts.models import User


class IdempotentReply(models.Model):
    """The first reply to a keyed request of one person on one route."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    route = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "route", "key"], name="idempotency_key_once"),
        ]

    def __str__(self) -> str:
        return f"{self.route} {self.key}"
