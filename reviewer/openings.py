"""That a person had a card before them: evidence for every decision that follows."""

from __future__ import annotations

from django.db import transaction

from reviewer.accounts.models import User
from reviewer.audit.record import record
from reviewer.audit.subjects import of_task
from reviewer.models import CardOpening, ReviewTask


@transaction.atomic
def opened(task: ReviewTask, *, by: User, via: str) -> None:
    """Record that this person was shown the open card: once for each digest and door."""
    if not task.is_open:
        return
    _, is_first = CardOpening.objects.get_or_create(task=task, person=by, digest=task.digest, via=via)
    if is_first:
        record("card.opened", actor=by, subject=of_task(task, digest=task.digest, via=via))
