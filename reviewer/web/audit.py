"""The audit trail: every event with its filters, and the whole story of one."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents_runtime.canonical import Json, decode
from reviewer import queries
from reviewer.accounts.models import User
from reviewer.audit.words import DECISIONS, VERDICT_WORDS, fact_words, outcome_choices, type_choices
from reviewer.cards import render as draw
from reviewer.models import AuditEvent, Decision, Queue, ReviewTask
from reviewer.queries import AuditFilter
from reviewer.shown import card_of, changes_of, told_record
from reviewer.web.decided import as_shown
from reviewer.web.keyset import keyset_page
from reviewer.web.reasons import reason_words
from reviewer.web.requests import person

ALL_TYPES = "all"
RELATED_SHOWN = 200


TITLES = ("title", "policy", "member", "queue", "person", "username")
FIRST_YEAR, LAST_YEAR = 1970, 9000  # further out, a change of time zone leaves the calendar
FILTERS = ("person", "agent", "tool", "queue", "outcome", "since", "until", "run")


@require_GET
@never_cache
def trail(request: HttpRequest) -> HttpResponse:
    """List the events that a filter finds, decisions first of all."""
    reader = person(request)
    typed = request.GET
    page = keyset_page(queries.audit_events(reader, filter_of(typed)), typed)
    context = {
        "page": page,
        "titles": {event.pk: title_of(event) for event in page.rows},
        "typed": typed,
        "type": typed.get("type", DECISIONS),
        "all_label": _("See all events"),
        "filtered": any(typed.get(name) for name in FILTERS),
        "types": sorted(type_choices(), key=lambda choice: str(choice[1])),
        "people": User.objects.all(),
        "agents": queries.agents(reader),
        "queues": queries.visible_queues(reader),
        "queue_names": dict(Queue.objects.values_list("pk", "name")),
        "outcomes": list(outcome_choices()),
    }
    return render(request, "audit/trail.html", context)


@require_GET
@never_cache
def event(request: HttpRequest, event_id: int) -> HttpResponse:
    """Tell the whole story of one event."""
    reader = person(request)
    found = queries.get_audit_event(reader, event_id)
    related = list(queries.related_events(reader, found)[:RELATED_SHOWN])
    task = queries.visible_tasks(reader).filter(pk=found.task_id).first() if found.task_id else None
    record = told_record(found.payload)
    context = {
        "event": found,
        "title": title_of(found),
        "queue": Queue.objects.filter(pk=found.queue_id).first() if found.queue_id else None,
        "payload": json.dumps(record, indent=2, ensure_ascii=False, sort_keys=True),
        "facts": list(fact_words(record.get("facts") or {})),
        "related": related,
        "previous": related[related.index(found) - 1] if found in related[1:] else None,
        **_card_context(task, reader),
    }
    return render(request, "audit/event.html", context)


def filter_of(typed: Mapping[str, str]) -> AuditFilter:
    """Read a filter from an address; whatever does not make sense in it filters nothing."""
    type_, outcome = typed.get("type", DECISIONS), typed.get("outcome", "")
    if type_ == DECISIONS and outcome and outcome not in VERDICT_WORDS:
        type_ = ALL_TYPES  # no decision ends like that, so it is asked of everything
    until = _day(typed.get("until", ""))
    return AuditFilter(
        person=_number(typed.get("person", "")),
        agent=typed.get("agent", ""),
        tool=typed.get("tool", "").strip(),
        queue=_number(typed.get("queue", "")),
        outcome=outcome,
        type="" if type_ == ALL_TYPES else type_,
        since=_day(typed.get("since", "")),
        until=until + dt.timedelta(days=1) if until else None,
        run=_uuid(typed.get("run", "")),
    )


def title_of(event: AuditEvent) -> str:
    """Return what an event is about, in the words that were shown then."""
    facts = decode(event.payload).get("facts") or {}
    named = (facts.get(name) for name in TITLES)
    return next((str(value) for value in named if value), event.agent)


def _card_context(task: ReviewTask | None, reader: User) -> dict[str, Any]:
    """Return the card as it was shown and what was decided on it."""
    if task is None:
        return {}
    card = card_of(task)
    decisions = list(task.decisions.select_related("person", "showing"))
    return {
        "task": task,
        "shown": as_shown(task, decisions[-1] if decisions else None, reader),
        "arguments": draw.render_arguments(card),
        "description": draw.render_prose(task.description) if task.description else "",
        "decisions": [_decided(task, decision) for decision in decisions],
    }


def _decided(task: ReviewTask, decision: Decision) -> dict[str, Any]:
    changes = changes_of(task, decision)
    answer: Json = decode(decision.answer)
    return {
        "decision": decision,
        "reason": reason_words(decision.reason_code),
        "answer": "" if changes else draw.render_value(True, answer),
        "diff": draw.render_diff(changes, mask=card_of(task).mask) if changes else "",
        "took": decision.decided_at - task.created_at,
    }


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _day(text: str) -> dt.datetime | None:
    """Return the start of a day in the reader's time zone."""
    try:
        date = parse_date(text)
    except ValueError:  # such as 31 February
        return None
    if date is None or not FIRST_YEAR <= date.year <= LAST_YEAR:
        return None
    return timezone.make_aware(dt.datetime.combine(date, dt.time.min))
