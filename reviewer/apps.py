"""The Django app of the humans' side."""

from __future__ import annotations

from django.apps import AppConfig


class ReviewerConfig(AppConfig):
    """Queues, review tasks, decisions and the audit trail."""

    name = "reviewer"
    default_auto_field = "django.db.models.BigAutoField"
