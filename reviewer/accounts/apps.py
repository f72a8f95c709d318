"""The Django app of people: accounts, roles, tokens."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Who works here."""

    name = "reviewer.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"
