"""The Django app of the agents' side."""

from __future__ import annotations

from django.apps import AppConfig


class AgentsRuntimeConfig(AppConfig):
    """Runs, pauses and the ledger of tool executions."""

    name = "agents_runtime"
    default_auto_field = "django.db.models.BigAutoField"
