"""The Django app of the humans' side."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ReviewerConfig(AppConfig):
    """Queues, review tasks, decisions and the audit trail."""

    name = "reviewer"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Begin to listen to Django's own signals; the room that does needs models, so not earlier."""
        import_module("reviewer.sessions")
