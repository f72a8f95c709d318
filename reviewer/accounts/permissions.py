"""Who may see, claim, decide, lead, start and audit: the one place that says so.

Reads everywhere go through ``reviewer.queries``, which uses the ``Q`` conditions given here; verbs use
the yes-or-no functions. Nothing is cached, so a change of membership holds from the next request on.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from agents_runtime.compiled import ANOTHER_NUMBER, SOME_NUMBER, Compiled
from reviewer.accounts.models import Role, User

SEES_EVERYTHING = frozenset({Role.ADMIN, Role.AUDITOR})
_membership = Compiled(
    # Without an order there is nothing to join: theirs is by the names of queues and people.
    lambda user_id, queue_id: User(pk=user_id).memberships.filter(queue_id=queue_id).only("pk").order_by(),
    SOME_NUMBER,
    ANOTHER_NUMBER,
)


def sees_all_queues(user: User) -> bool:
    """Say whether queue membership does not limit what this person sees."""
    return user.role in SEES_EVERYTHING


def visible_queues(user: User) -> Q:
    """Return the condition on ``Queue`` for the queues this person may see."""
    return Q() if sees_all_queues(user) else Q(memberships__user=user)


def visible_tasks(user: User) -> Q:
    """Return the condition on ``ReviewTask`` for the tasks this person may see.

    Members see their queues' tasks; whoever started a run sees its tasks but can never decide them; a person
    who decided a task keeps seeing it.
    """
    if sees_all_queues(user):
        return Q()
    return (
        Q(queue__in=user.queues.all())
        | Q(assigned_to=user)
        | Q(run__requested_by=user.reference)
        | Q(decisions__person=user)
    )


def directed_tasks(user: User) -> Q:
    """Return the condition on ``ReviewTask`` for those of runs that this person started or gave input."""
    return Q(run__requested_by=user.reference) | Q(run__fed_by__contains=f'"{user.reference}"')


def visible_runs(user: User) -> Q:
    """Return the condition on ``Run`` for the runs this person may see."""
    if sees_all_queues(user):
        return Q()
    return Q(requested_by=user.reference) | Q(tasks__queue__in=user.queues.all())


def is_member(user: User, queue_id: int, *, found: int | None = None) -> bool:
    """Say whether this person belongs to the queue: only members decide.

    ``found`` is the member with this person's key, or 0, where a read has asked for that along.
    """
    if user.role == Role.AUDITOR:
        return False
    return bool(_membership.rows(user.pk, queue_id)) if found is None else found == user.pk


def leads_queue(user: User, queue_id: int) -> bool:
    """Say whether this person may assign, move and change the queue."""
    if user.role in SEES_EVERYTHING:
        return user.role == Role.ADMIN
    return user.memberships.filter(queue_id=queue_id, leads=True).exists()


def can_lead(user: User) -> bool:
    """Say whether this person leads anything, and so sees the lead's pages."""
    return user.role in {Role.ADMIN, Role.LEAD} or user.memberships.filter(leads=True).exists()


def can_create_queues(user: User) -> bool:
    """Say whether this person may create queues and policies."""
    return user.role in {Role.ADMIN, Role.LEAD}


def can_start_runs(user: User) -> bool:
    """Say whether this person may start runs."""
    return user.role in {Role.DEVELOPER, Role.LEAD, Role.ADMIN}


def can_steer_run(user: User, *, run_id: UUID, requested_by: str) -> bool:
    """Say whether this person may retry, settle or cancel the run, given that they see it.

    Beside those who own the run: the members of every queue that it has asked, since somebody has to say what
    became of a call that they approved.
    """
    return can_feed_run(user, requested_by=requested_by) or (
        user.role != Role.AUDITOR and user.memberships.filter(queue__tasks__run_id=run_id).exists()
    )


def can_feed_run(user: User, *, requested_by: str) -> bool:
    """Say whether this person may give the run its next input, given that they see it."""
    return user.role in {Role.ADMIN, Role.LEAD} or (
        requested_by == user.reference and user.role == Role.DEVELOPER
    )


def can_see_stuck(user: User) -> bool:
    """Say whether this person sees the page of runs that are stuck."""
    return can_lead(user) or can_audit(user)


def watched_runs(user: User) -> Q:
    """Return the condition on ``Run`` for the runs whose being stuck is this person's to look after."""
    if sees_all_queues(user):
        return Q()
    led = user.memberships.filter(leads=True).values("queue")
    return Q(requested_by=user.reference) | Q(tasks__queue__in=led)


def can_audit(user: User) -> bool:
    """Say whether this person may read the whole trail."""
    return user.role in {Role.ADMIN, Role.AUDITOR}
