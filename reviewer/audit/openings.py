"""That a person had a card before them: recorded once for each person, digest and door."""

from __future__ import annotations

from django.db import transaction

from reviewer.accounts.models import User
from reviewer.audit.record import record
from reviewer.audit.subjects import of_task
from reviewer.models import CardOpening, ReviewTask


@transaction.atomic
def record_opening(task: ReviewTask, *, by: User, via: str) -> None:
    """Record that ``by`` opened the card as it stands now; a second look at the same digest adds nothing."""
    _, is_first = CardOpening.objects.get_or_create(task=task, person=by, digest=task.digest, via=via)
    if is_first:
        record("card.opened", actor=by, subject=of_task(task, via=via, digest=task.digest))
