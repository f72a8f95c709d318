"""Signing in and out, as the trail tells it; a sign-out also ends what the person's open pages may get."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest

from reviewer import live
from reviewer.accounts.models import User
from reviewer.audit.record import Subject, record

MAX_NAME = 150


@receiver(user_logged_in)
@transaction.atomic
def tell_of_signing_in(user: User, **_kwargs: Any) -> None:
    """Record that a person signed in."""
    record("session.opened", actor=user, subject=Subject())


@receiver(user_logged_out)
@transaction.atomic
def tell_of_signing_out(user: User | None, **_kwargs: Any) -> None:
    """Record that a person signed out, and let their open pages check their rights at once."""
    if user is None:
        return
    record("session.closed", actor=user, subject=Subject())
    live.person_changed(user.pk)


@receiver(user_login_failed)
@transaction.atomic
def tell_of_a_failure(
    credentials: dict[str, Any], request: HttpRequest | None = None, **_kwargs: Any
) -> None:
    """Record a try with a wrong password under the name that was typed, and the lock after the last one.

    Tries while the lock holds are not recorded, so that nobody can fill the trail from outside.
    """
    failures = getattr(request, "axes_failures_since_start", 0)  # counted by axes, which hears of it first
    if failures > settings.AXES_FAILURE_LIMIT:
        return
    kind = "session.locked" if failures == settings.AXES_FAILURE_LIMIT else "session.refused"
    name = str(credentials.get("username") or "")[:MAX_NAME]
    record(kind, subject=Subject(facts={"username": name}))
