"""The Django app of the humans' side."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings

from reviewer.cards import drafts, renderers


class ReviewerConfig(AppConfig):
    """Queues, review tasks, decisions and the audit trail."""

    name = "reviewer"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Learn the drawings of cards, and listen to Django's signals; who does needs models, not earlier."""
        import_module("reviewer.sessions")
        drafts.register()
        renderers.load(settings.COUNTERSIGN_CARDS)
