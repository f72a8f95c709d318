"""The audit trail, for admins and auditors."""

from __future__ import annotations

import datetime as dt
from typing import Annotated
from uuid import UUID

from ninja import Query, Router
from pydantic import AwareDatetime, BaseModel, Field

from reviewer import queries
from reviewer.api.bearer import ApiRequest
from reviewer.api.bodies import Blank, Text
from reviewer.api.problems import Problem
from reviewer.api.shapes import Events, event

router = Router()
EventId = Annotated[int, Field(ge=1, le=2**63 - 1)]
FIRST_MOMENT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
LAST_MOMENT = dt.datetime(9000, 1, 1, tzinfo=dt.UTC)
Moment = Annotated[AwareDatetime, Field(ge=FIRST_MOMENT, le=LAST_MOMENT)]
"""No event lies outside, and further out a change of time zone leaves the calendar."""


class EventFilter(BaseModel):
    """Which part of the trail."""

    person: Annotated[Text, Field(max_length=150, description="User name of who did it.")] = ""
    agent: Annotated[Text, Field(max_length=100)] = ""
    tool: Annotated[Text, Field(max_length=200)] = ""
    queue: Annotated[Text, Field(max_length=60, description="Slug of a queue.")] = ""
    outcome: Annotated[Text, Field(max_length=20)] = ""
    type: Annotated[Text, Field(max_length=40)] = ""
    run: Annotated[UUID | None, Blank] = None
    task: Annotated[UUID | None, Blank] = None
    since: Annotated[Moment | None, Blank, Field(description="With its time zone.")] = None
    until: Annotated[Moment | None, Blank, Field(description="Before this time.")] = None
    before: Annotated[EventId | None, Blank, Field(description="Only events with a smaller id.")] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100


@router.get(
    "/audit",
    response={200: Events, 401: Problem, 403: Problem, 422: Problem},
    summary="Read the audit trail",
)
def read_trail(request: ApiRequest, wanted: Query[EventFilter]) -> Events:
    """Events, newest first. `next` is the `before` of the following part, null at the end."""
    events = queries.audit_events(
        request.auth,
        queries.AuditFilter(
            agent=wanted.agent,
            tool=wanted.tool,
            outcome=wanted.outcome,
            type=wanted.type,
            since=wanted.since,
            until=wanted.until,
            run=wanted.run,
            task=wanted.task,
        ),
    )
    if wanted.person:
        events = events.filter(actor__username=wanted.person)
    if wanted.queue:
        events = events.filter(queue_id__in=_queue_ids(request, wanted.queue))
    if wanted.before is not None:
        events = events.filter(pk__lt=wanted.before)
    found = list(events[: wanted.limit + 1])
    items, has_more = found[: wanted.limit], len(found) > wanted.limit
    return Events(items=[event(item) for item in items], next=items[-1].pk if has_more else None)


def _queue_ids(request: ApiRequest, slug: str) -> list[int]:
    return list(queries.visible_queues(request.auth).filter(slug=slug).values_list("pk", flat=True))
