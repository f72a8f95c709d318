"""Who asks: the person whose API token a request carries."""

from __future__ import annotations

import datetime as dt

from django.db.models import F, Q
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.timezone import now
from ninja.security import HttpBearer

from agents_runtime.compiled import Compiled
from reviewer.accounts.models import ApiToken, User, hash_secret

USE_IS_NOTED_EVERY = dt.timedelta(minutes=1)
_bearer = Compiled(
    # A row of one model, with what programs need of it: every request reads one.
    lambda secret_hash: (
        User.objects.filter(
            is_active=True, api_tokens__revoked_at__isnull=True, api_tokens__secret_hash=secret_hash
        )
        .annotate(token=F("api_tokens__pk"), token_used_at=F("api_tokens__last_used_at"))
        .only("username", "first_name", "last_name", "role")
        .order_by()
    ),
    "some hash",
)


class ApiRequest(HttpRequest):
    """A request that has passed ``Bearer``: ``auth`` is the person."""

    auth: User


class Bearer(HttpBearer):
    """``Authorization: Bearer <token>``."""

    def __call__(self, request: HttpRequest) -> User | None:
        """Return the person whose token the request carries, if any: without a look at all its headers."""
        scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        return self.authenticate(request, token) if scheme.lower() == self.openapi_scheme else None

    def authenticate(self, request: HttpRequest, token: str) -> User | None:  # noqa: ARG002
        """Return the token's person, or None for one that opens nothing."""
        person = _bearer.first(hash_secret(token.strip()))
        if person is not None:
            told = vars(person)
            _note_use(told.pop("token"), told.pop("token_used_at"))
        return person


def _note_use(token: int, used_at: dt.datetime | None) -> None:
    """Note that the token was used; once a minute is enough, so that reading rarely writes."""
    if used_at is not None and now() - used_at < USE_IS_NOTED_EVERY:
        return
    is_due = Q(last_used_at__isnull=True) | Q(last_used_at__lt=Now() - USE_IS_NOTED_EVERY)
    ApiToken.objects.filter(is_due, pk=token).update(last_used_at=Now())
