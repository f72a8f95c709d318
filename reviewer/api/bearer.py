"""Who asks: the person whose API token a request carries."""

from __future__ import annotations

import datetime as dt

from django.db.models import Q
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.timezone import now
from ninja.security import HttpBearer

from agents_runtime.compiled import Compiled
from reviewer.accounts.models import ApiToken, User, hash_secret

USE_IS_NOTED_EVERY = dt.timedelta(minutes=1)
_token = Compiled(
    lambda secret_hash: ApiToken.objects.active().select_related("user").filter(secret_hash=secret_hash),
    "some hash",
)


class ApiRequest(HttpRequest):
    """A request that has passed ``Bearer``: ``auth`` is the person."""

    auth: User


class Bearer(HttpBearer):
    """``Authorization: Bearer <token>``."""

    def authenticate(self, request: HttpRequest, token: str) -> User | None:  # noqa: ARG002
        """Return the token's person, or None for one that opens nothing."""
        found = _token.first(hash_secret(token.strip()))
        if found is None:
            return None
        _note_use(found)
        return found.user


def _note_use(token: ApiToken) -> None:
    """Note that the token was used; once a minute is enough, so that reading rarely writes."""
    if token.last_used_at is not None and now() - token.last_used_at < USE_IS_NOTED_EVERY:
        return
    is_due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=Now() - USE_IS_NOTED_EVERY)
    ApiToken.objects.filter(is_due, pk=token.pk).update(last_used_at=Now())
