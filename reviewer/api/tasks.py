"""Tasks: find, open, claim, release, decide."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from ninja import Query, Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from agents_runtime.states import PauseStatus
from reviewer import claims, decisions, live, queries
from reviewer.api.bearer import ApiRequest
from reviewer.api.bodies import Blank, NewDecision, Text
from reviewer.api.idempotency import idempotent, is_replayed, told
from reviewer.api.problems import Problem
from reviewer.api.shapes import (
    DecisionMade,
    Page,
    Task,
    TaskRow,
    decision_for,
    decision_made,
    task_card,
    task_row,
)
from reviewer.api.waiting import Awaited, Seconds, answer_later, hold_back
from reviewer.models import TaskStatus
from reviewer.openings import opened

router = Router()
REFUSALS = {401: Problem, 403: Problem, 404: Problem, 409: Problem, 422: Problem}


class TaskFilter(BaseModel):
    """Which tasks to list."""

    status: Annotated[TaskStatus | None, Blank, Field(description="Only tasks in this status.")] = None
    queue: Annotated[Text, Field(max_length=60, description="Slug of a queue.")] = ""
    run: Annotated[UUID | None, Blank, Field(description="Only tasks of this run.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="At most so many.")] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000, description="After so many.")] = 0
    wait: Seconds = 0


@router.get("/tasks", response={200: Page[TaskRow], 401: Problem, 422: Problem}, summary="List tasks")
def list_tasks(request: ApiRequest, wanted: Query[TaskFilter]) -> Page[TaskRow]:
    """The tasks one may see, most urgent first. With `wait`, as soon as there is one that fits."""
    find = partial(
        queries.list_tasks,
        request.auth,
        limit=wanted.limit,
        offset=wanted.offset,
        status=wanted.status or "",
        queue=wanted.queue,
        run=wanted.run,
    )
    part, total = find()
    if wanted.wait and not part:
        hold_back(request, wanted.wait, Awaited(_names(request, wanted), lambda: bool(find()[0])))
    return Page(
        items=[task_row(task) for task in part],
        total=total,
        limit=wanted.limit,
        offset=wanted.offset,
    )


def _names(request: ApiRequest, wanted: TaskFilter) -> set[str]:
    """Return the names by which hints tell of tasks that fit."""
    if wanted.run is not None:
        return {live.run_group(wanted.run)}
    return {live.queue_group(queue.pk) for queue in queries.visible_queues(request.auth)}


@router.get("/tasks/{uuid:task_id}", response={200: Task, 401: Problem, 404: Problem}, summary="Open a task")
def open_task(request: ApiRequest, task_id: UUID) -> Task:
    """The whole card. Recorded: this person had this digest before them.

    It hides nothing, so every part of it counts as opened by this person: what approving a card of high risk
    waits for.
    """
    return _card(request, task_id)


@router.post("/tasks/{uuid:task_id}/decision", response={200: DecisionMade, **REFUSALS}, summary="Decide")
def decide(request: ApiRequest, task_id: UUID, body: NewDecision, wait: Seconds = 0) -> Any:
    """Decide exactly the card with `digest`; an unclaimed task is claimed along.

    With `wait`, the decision is recorded at once and answered as soon as it took effect, or says why it did
    not: `effect`. Where other calls of the same pause are still to be decided, that is at once.

    409: `taken` by another person, `stale` because the card changed, or already `decided`: `who` and `when`
    say by whom. 422: `problems` point into `answer`; `unread` where a card of high risk would be approved by
    somebody who never opened all of it: get the task first.
    """
    made = _decide(request, task_id, body)
    answer_later(
        request,
        wait,
        Awaited({live.rest(told(made, "run"))}),
        reply=made,
        may_have_come=is_replayed(made) or told(made, "effect") == PauseStatus.PENDING,
    )
    return made


@idempotent
def _decide(request: ApiRequest, task_id: UUID, body: NewDecision) -> Any:
    decision = decisions.decide(
        task_id,
        by=request.auth,
        answer=body.answer,
        digest=body.digest,
        claim_version=body.claim_version,
        reason_code=body.reason_code,
        comment=body.comment,
        via="api",
    )
    return decision_made(decision)


@router.get(
    "/tasks/{uuid:task_id}/decision",
    response={200: DecisionMade, 401: Problem, 404: Problem, 422: Problem},
    summary="Read a decision",
)
def read_decision(request: ApiRequest, task_id: UUID, wait: Seconds = 0) -> DecisionMade:
    """What was decided, by whom, and what has become of it: `effect`. 404 while nobody has decided.

    With `wait`, as soon as the decision took effect or could not: when it is not on its way any more.
    """
    decision = queries.get_decision(request.auth, task_id)
    if wait and queries.is_on_its_way(decision.task.pause):
        hold_back(request, wait, Awaited({live.rest(decision.task.run_id)}))
    return decision_for(decision, reader=request.auth)


@router.post("/tasks/{uuid:task_id}/claim", response={200: Task, **REFUSALS}, summary="Claim a task")
@idempotent
def claim(request: ApiRequest, task_id: UUID) -> Task:
    """Hold the task for a while, or longer. Its whole card comes back and is recorded as opened."""
    claims.claim(task_id, by=request.auth)
    return _card(request, task_id)


@router.post("/tasks/{uuid:task_id}/release", response={200: TaskRow, **REFUSALS}, summary="Release a task")
@idempotent
def release(request: ApiRequest, task_id: UUID) -> TaskRow:
    """Give the task back; a lead of its queue may give back anybody's."""
    claims.release(task_id, by=request.auth)
    return task_row(queries.get_task(request.auth, task_id))


@router.post(
    "/queues/{slug:slug}/claim-next",
    response={200: Task, 204: None, **REFUSALS},
    summary="Claim the next task",
)
@idempotent
def claim_next(request: ApiRequest, slug: str) -> Status[Task] | Status[None]:
    """Claim the most urgent free task of a queue; 204 when nothing waits."""
    task = claims.claim_next(slug, by=request.auth)
    if task is None:
        return Status(HTTPStatus.NO_CONTENT, None)
    return Status(HTTPStatus.OK, _card(request, task.pk))


def _card(request: ApiRequest, task_id: UUID) -> Task:
    task = queries.get_card(request.auth, task_id)
    opened(task, by=request.auth, via="api")
    return task_card(task, reader=request.auth)
