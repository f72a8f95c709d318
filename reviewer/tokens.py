"""API tokens: issue and revoke, with the trail."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from reviewer.accounts.models import ApiToken, User
from reviewer.audit.record import Subject, record


@transaction.atomic
def issue(user: User, *, name: str = "", by: User | None = None) -> tuple[ApiToken, str]:
    """Give a person a new token and return it with its secret, which is shown this once."""
    token, secret = ApiToken.issue(user, name=name)
    record("token.issued", actor=by, subject=_subject(token))
    return token, secret


@transaction.atomic
def revoke(token: ApiToken, *, by: User | None = None) -> None:
    """Close a token for good; doing it twice changes nothing."""
    if not ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=Now()):
        return
    record("token.revoked", actor=by, subject=_subject(token))


def _subject(token: ApiToken) -> Subject:
    return Subject(facts={"token": token.prefix, "name": token.name, "person": token.user.username})
