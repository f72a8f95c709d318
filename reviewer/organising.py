"""What a lead changes: queues, who belongs to them, and the policies that send requests to them."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils.text import slugify
from django.utils.timezone import now
from django.utils.translation import gettext as _

from agents_runtime.canonical import storable
from agents_runtime.errors import Problem
from reviewer import live, queries
from reviewer.accounts import permissions
from reviewer.accounts.models import Role, User
from reviewer.audit.record import Subject, record
from reviewer.audit.subjects import of_queue
from reviewer.errors import Invalid, NotAllowed
from reviewer.models import Policy, Queue, QueueMembership
from reviewer.models.queues import OnExpiry


@transaction.atomic
def create_queue(*, name: str, description: str, by: User) -> Queue:
    """Create a queue led by the person who made it."""
    if not permissions.can_create_queues(by):
        raise NotAllowed(_("Only leads and administrators create queues."))
    name = _checked_name(name)
    slug = slugify(name)[:60]
    if not slug or Queue.objects.filter(slug=slug).exists():
        raise _invalid("/name", _("There is already a queue with such a name. Choose another."))
    queue = Queue.objects.create(name=name, slug=slug, description=_checked_description(description))
    QueueMembership.objects.create(queue=queue, user=by, leads=True)
    record("queue.created", actor=by, subject=of_queue(queue))
    live.person_changed(by.pk)
    return queue


@transaction.atomic
def rename_queue(slug: str, *, name: str, description: str, by: User) -> Queue:
    """Give a queue another name; its address stays, so old links work."""
    queue = _led_queue(slug, by=by)
    old, queue.name, queue.description = (
        queue.name,
        _checked_name(name, but=queue),
        _checked_description(description),
    )
    queue.save(update_fields=["name", "description"])
    record("queue.renamed", actor=by, subject=of_queue(queue, old=old, description=queue.description))
    return queue


@transaction.atomic
def set_deadline(slug: str, *, minutes_to_decide: int | None, on_expiry: str, by: User) -> Queue:
    """Set how long cards of a queue may wait whose policy sets no time; it holds for cards from now on."""
    queue = _led_queue(slug, by=by)
    queue.minutes_to_decide, queue.on_expiry = minutes_to_decide, _checked_expiry(on_expiry)
    queue.save(update_fields=["minutes_to_decide", "on_expiry"])
    record(
        "queue.deadline_set",
        actor=by,
        subject=of_queue(queue, minutes=minutes_to_decide, on_expiry=queue.on_expiry),
    )
    return queue


@transaction.atomic
def set_member(slug: str, *, user: User, leads: bool, by: User) -> QueueMembership:
    """Make a person a member of a queue, or change whether they lead it."""
    queue = _led_queue(slug, by=by)
    if user.role == Role.AUDITOR:
        raise _invalid("/user", _("An auditor only reads, and cannot be a member of a queue."))
    membership, _created = QueueMembership.objects.update_or_create(
        queue=queue, user=user, defaults={"leads": leads}
    )
    record("queue.member_set", actor=by, subject=of_queue(queue, member=user.display_name, leads=leads))
    live.person_changed(user.pk)
    return membership


@transaction.atomic
def remove_member(slug: str, *, user: User, by: User) -> None:
    """Take a person out of a queue; what they hold or were assigned there goes back."""
    queue = _led_queue(slug, by=by)
    deleted, _rows = QueueMembership.objects.filter(queue=queue, user=user).delete()
    if not deleted:
        raise Invalid(
            _("%(person)s is not a member of %(queue)s.") % {"person": user.display_name, "queue": queue}
        )
    for task in queue.tasks.open().select_for_update().order_by("pk"):
        if user.pk not in {task.claimed_by_id, task.assigned_to_id}:
            continue
        if task.claimed_by_id == user.pk:
            task.claimed_by = task.claimed_until = None
        if task.assigned_to_id == user.pk:
            task.assigned_to = None
        task.version += 1
        task.save()
        live.task_changed(task)
    record("queue.member_removed", actor=by, subject=of_queue(queue, member=user.display_name))
    live.person_changed(user.pk)


@transaction.atomic
def save_policy(
    *,
    name: str,
    agent: str,
    tool: str,
    queue_slug: str,
    risk: str,
    minutes_to_decide: int | None,
    by: User,
    on_expiry: str = OnExpiry.HOLD,
) -> Policy:
    """Create or change the policy of this name; a change holds for requests from now on."""
    queue = _led_queue(queue_slug, by=by)
    slug = slugify(name)[:60]
    if not slug:
        raise _invalid("/name", _("Give the policy a name."))
    policy = Policy.objects.select_for_update().filter(name=slug).first()
    if policy is not None and not permissions.leads_queue(by, policy.queue_id):
        raise NotAllowed(_("Only a lead of %(queue)s can change this policy.") % {"queue": policy.queue.name})
    policy = policy or Policy(name=slug, version=0)
    policy.version += 1
    policy.agent, policy.tool = _checked_match("/agent", agent, 100), _checked_match("/tool", tool, 200)
    policy.queue, policy.risk = queue, risk
    policy.minutes_to_decide, policy.changed_at = minutes_to_decide, now()
    policy.on_expiry = _checked_expiry(on_expiry)
    _save_unique(policy)
    record(
        "policy.saved",
        actor=by,
        subject=Subject(
            queue_id=queue.pk,
            agent=policy.agent,
            tool=policy.tool,
            facts={
                "policy": policy.label,
                "risk": risk,
                "minutes": minutes_to_decide,
                "on_expiry": policy.on_expiry,
                "queue": queue.name,
            },
        ),
    )
    return policy


@transaction.atomic
def delete_policy(policy_id: int, *, by: User) -> None:
    """Delete a policy; tasks that it routed keep its name and version."""
    policy = queries.policies(by).select_for_update(of=("self",)).filter(pk=policy_id).first()
    if policy is None or not permissions.leads_queue(by, policy.queue_id):
        raise NotAllowed(_("Only a lead of its queue can delete this policy."))
    record(
        "policy.deleted",
        actor=by,
        subject=Subject(
            queue_id=policy.queue_id, agent=policy.agent, tool=policy.tool, facts={"policy": policy.label}
        ),
    )
    policy.delete()


def _led_queue(slug: str, *, by: User) -> Queue:
    queue = queries.get_queue(by, slug)
    if not permissions.leads_queue(by, queue.pk):
        raise NotAllowed(_("Only a lead of %(queue)s can change it.") % {"queue": queue.name})
    return queue


def _checked_name(name: str, *, but: Queue | None = None) -> str:
    name = storable(name).strip()
    if not name:
        raise _invalid("/name", _("Give the queue a name."))
    _guard_length("/name", name, 80)
    same = Queue.objects.filter(name__iexact=name)
    if (same.exclude(pk=but.pk) if but else same).exists():
        raise _invalid("/name", _("There is already a queue with this name. Choose another."))
    return name


def _checked_description(text: str) -> str:
    text = storable(text).strip()
    _guard_length("/description", text, 200)
    return text


def _checked_expiry(on_expiry: str) -> str:
    if on_expiry not in OnExpiry.values:
        raise _invalid(
            "/on_expiry", _("Choose one: hold or reject. Nothing is ever approved for lack of time.")
        )
    return on_expiry


def _checked_match(pointer: str, text: str, limit: int) -> str:
    text = storable(text).strip()
    _guard_length(pointer, text, limit)
    return text


def _guard_length(pointer: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise _invalid(pointer, _("Enter %(limit)s characters or fewer.") % {"limit": limit})


def _save_unique(policy: Policy) -> None:
    try:
        with transaction.atomic():
            policy.save()
    except IntegrityError as problem:
        raise _invalid("/tool", _("Another policy already matches this agent and tool.")) from problem


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(message, (Problem(pointer, message),))
