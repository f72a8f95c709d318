"""Queues as a lead arranges them: names, members, policies, and who gets which task."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from reviewer import claims, organising, queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.errors import Invalid, NotFound
from reviewer.models import Queue
from reviewer.models.queues import OnExpiry, Risk
from reviewer.web.policyforms import PolicyForm, minutes_of, policy_form, read_policy
from reviewer.web.requests import person, safe_next, whole_number

TASKS_A_PAGE = 50


@require_http_methods(["GET", "POST"])
@never_cache
def queues(request: HttpRequest) -> HttpResponse:
    """List the queues this person may see, and create one."""
    reader = person(request)
    if request.method == "GET":
        return _queues_page(request, reader, {})
    name, description = request.POST.get("name", ""), request.POST.get("description", "")
    try:
        created = organising.create_queue(name=name, description=description, by=reader)
    except Invalid as problem:
        typed = {"name": name, "description": description, "problems": problem.problems}
        return _queues_page(request, reader, typed, status=422)
    messages.success(request, _("%(queue)s is ready. Add its members.") % {"queue": created.name})
    return redirect("queue", created.slug)


@require_GET
@never_cache
def queue(request: HttpRequest, slug: str) -> HttpResponse:
    """Draw a queue's page."""
    reader = person(request)
    return _queue_page(request, reader, queries.get_queue(reader, slug), {})


@require_POST
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    """Give a queue another name."""
    reader = person(request)
    name, description = request.POST.get("name", ""), request.POST.get("description", "")
    try:
        organising.rename_queue(slug, name=name, description=description, by=reader)
    except Invalid as problem:
        typed = {"name": name, "description": description, "rename_problems": problem.problems}
        return _queue_page(request, reader, queries.get_queue(reader, slug), typed, status=422)
    messages.success(request, _("Saved."))
    return redirect("queue", slug)


@require_POST
def set_deadline(request: HttpRequest, slug: str) -> HttpResponse:
    """Set how long cards of a queue may wait, and what happens then."""
    reader = person(request)
    minutes, on_expiry = request.POST.get("minutes", "").strip(), request.POST.get("on_expiry", "")
    try:
        organising.set_deadline(slug, minutes_to_decide=minutes_of(minutes), on_expiry=on_expiry, by=reader)
    except Invalid as problem:
        typed = {"minutes": minutes, "on_expiry": on_expiry, "deadline_problems": problem.problems}
        return _queue_page(request, reader, queries.get_queue(reader, slug), typed, status=422)
    messages.success(request, _("The deadline holds for cards from now on."))
    return redirect(reverse("queue", args=[slug]) + "#deadline")


@require_POST
def set_member(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a person to a queue, or change whether they lead it."""
    reader, member = person(request), _person_named(request.POST.get("user", ""))
    organising.set_member(slug, user=member, leads=request.POST.get("leads") == "1", by=reader)
    messages.success(request, _("%(person)s is a member.") % {"person": member.display_name})
    return redirect(reverse("queue", args=[slug]) + "#members")


@require_POST
def remove_member(request: HttpRequest, slug: str) -> HttpResponse:
    """Take a person out of a queue."""
    reader, member = person(request), _person_named(request.POST.get("user", ""))
    organising.remove_member(slug, user=member, by=reader)
    messages.info(request, _("%(person)s is no longer a member.") % {"person": member.display_name})
    if not queries.visible_queues(reader).filter(slug=slug).exists():
        return redirect("queues")
    return redirect(reverse("queue", args=[slug]) + "#members")


@require_POST
def save_policy(request: HttpRequest, slug: str) -> HttpResponse:
    """Create or change a policy that sends requests to this queue."""
    reader = person(request)
    typed = read_policy(request.POST)
    try:
        policy = organising.save_policy(**typed.arguments(), queue_slug=slug, by=reader)
    except Invalid as problem:
        context = {"policy_form": typed.with_problems(problem.problems)}
        return _queue_page(request, reader, queries.get_queue(reader, slug), context, status=422)
    messages.success(request, _("%(policy)s holds for requests from now on.") % {"policy": policy.label})
    return redirect(reverse("queue", args=[slug]) + "#policies")


@require_POST
def delete_policy(request: HttpRequest, slug: str, policy_id: int) -> HttpResponse:
    """Delete a policy."""
    organising.delete_policy(policy_id, by=person(request))
    messages.info(request, _("The policy is deleted. Cards that it routed stay where they are."))
    return redirect(reverse("queue", args=[slug]) + "#policies")


@require_POST
def assign(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Give a task to a person, or to nobody in particular."""
    reader, key = person(request), request.POST.get("user", "")
    task = claims.assign(task_id, to=_person_named(key) if key else None, by=reader)
    messages.success(request, _("Assigned: %(title)s") % {"title": task.title})
    return redirect(safe_next(request, reverse("queue", args=[task.queue.slug])))


@require_POST
def move(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Put a task into another queue."""
    reader = person(request)
    task = queries.get_task(reader, task_id)
    left = task.queue
    claims.move(task_id, queue=queries.get_queue(reader, request.POST.get("queue", "")), by=reader)
    messages.success(request, _("Moved: %(title)s") % {"title": task.title})
    return redirect(safe_next(request, reverse("queue", args=[left.slug])))


def _queues_page(
    request: HttpRequest, reader: User, typed: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    context = {
        "counts": queries.queue_counts(reader),
        "members": queries.members_by_queue(reader),
        "led": set(queries.led_queues(reader).values_list("pk", flat=True)),
        "may_create": permissions.can_create_queues(reader),
        **typed,
    }
    return render(request, "queues/queues.html", context, status=status)


def _queue_page(
    request: HttpRequest, reader: User, found: Queue, typed: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    tasks = Paginator(queries.queue_tasks(reader, found), TASKS_A_PAGE).get_page(request.GET.get("page"))
    policies = list(queries.policies(reader).filter(queue=found))
    edited = next((item for item in policies if str(item.pk) == request.GET.get("policy")), None)
    context = {
        "queue": found,
        "name": found.name,
        "description": found.description,
        "page": tasks,
        "members": queries.members(found),
        "addable": queries.addable_people(found),
        "policies": policies,
        "policy_form": policy_form(edited) if edited else PolicyForm(),
        "agents": queries.agents(reader),
        "other_queues": queries.visible_queues(reader).exclude(pk=found.pk),
        "risks": Risk.choices,
        "expiries": OnExpiry.choices,
        "minutes": str(found.minutes_to_decide or ""),
        "on_expiry": found.on_expiry,
        "leads": permissions.leads_queue(reader, found.pk),
        "reader": reader,
        **typed,
    }
    return render(request, "queues/queue.html", context, status=status)


def _person_named(key: str) -> User:
    number = whole_number(key)
    found = None if number is None else User.objects.filter(pk=number, is_active=True).first()
    if found is None:
        raise NotFound(_("There is no such person."))
    return found
