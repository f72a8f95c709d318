"""Runs: start, read, retry, settle, give input, cancel."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.urls import reverse
from ninja import Router
from ninja.responses import Status

from reviewer import live, queries, steering
from reviewer.api.bearer import ApiRequest
from reviewer.api.bodies import NewInput, Settlement, StartRun
from reviewer.api.idempotency import idempotent, is_replayed, told
from reviewer.api.problems import Problem
from reviewer.api.shapes import RunShape, run_shape
from reviewer.api.waiting import Awaited, Seconds, answer_later, hold_back

router = Router()
REFUSALS = {401: Problem, 403: Problem, 404: Problem, 409: Problem, 422: Problem}


@router.post("/runs", response={201: RunShape, **REFUSALS}, summary="Start a run")
def start_run(request: ApiRequest, body: StartRun, wait: Seconds = 0) -> Any:
    """Start an agent in one's own name. 409 `agent_unavailable` when its code does not load.

    With `wait`, the run is started at once and answered as soon as it is not at work, as *Read a run* does.
    """
    started = _start_run(request, body)
    _answer_at_rest(request, wait, started)
    return started


@idempotent
def _start_run(request: ApiRequest, body: StartRun) -> Any:
    run = steering.start_run(body.agent, input=body.input, by=request.auth)
    return Status(HTTPStatus.CREATED, run_shape(run, reader=request.auth))


@router.get(
    "/runs/{uuid:run_id}",
    response={200: RunShape, 401: Problem, 404: Problem, 422: Problem},
    summary="Read a run",
)
def read_run(request: ApiRequest, run_id: UUID, wait: Seconds = 0) -> RunShape:
    """Status, output or error, and everything the run waits or waited for.

    With `wait`, as soon as the run is not at work: when it waits for people, is in doubt, or has ended. While
    the answer to the last thing that it asked is on its way, it is at work.
    """
    run = queries.get_run(request.auth, run_id)
    asked = queries.asked_by(run)
    if wait and queries.is_at_work(run, asked):
        hold_back(request, wait, Awaited({live.rest(run_id)}))
    return run_shape(run, reader=request.auth, asked=asked)


def _answer_at_rest(request: ApiRequest, wait: float, reply: Any) -> None:
    run_id = told(reply, "id")
    answer_later(
        request,
        wait,
        Awaited({live.rest(run_id)}),
        reply=reply,
        path=reverse("api:read_run", kwargs={"run_id": run_id}),
        may_have_come=is_replayed(reply),
    )


@router.post("/runs/{uuid:run_id}/cancel", response={200: RunShape, **REFUSALS}, summary="Cancel a run")
@idempotent
def cancel_run(request: ApiRequest, run_id: UUID) -> RunShape:
    """Stop the run; its open tasks are withdrawn. A tool that has already started is not undone."""
    return run_shape(steering.cancel(run_id, by=request.auth), reader=request.auth)


@router.post("/runs/{uuid:run_id}/retry", response={200: RunShape, **REFUSALS}, summary="Retry a run")
@idempotent
def retry_run(request: ApiRequest, run_id: UUID) -> RunShape:
    """Let a failed run, or an approved call that raised, try once more."""
    return run_shape(steering.retry(run_id, by=request.auth), reader=request.auth)


@router.post("/runs/{uuid:run_id}/build", response={200: RunShape, **REFUSALS}, summary="Accept a build")
@idempotent
def accept_build(request: ApiRequest, run_id: UUID) -> RunShape:
    """Let a run that began on another build of its agent go on with the one that is registered now.

    409 where it is on that build already. A run with the trouble `build` waits for this, or to be cancelled.
    """
    return run_shape(steering.accept_build(run_id, by=request.auth), reader=request.auth)


@router.post("/runs/{uuid:run_id}/settle", response={200: RunShape, **REFUSALS}, summary="Settle a doubt")
@idempotent
def settle_run(request: ApiRequest, run_id: UUID, body: Settlement) -> RunShape:
    """Say what became of a tool whose worker died: it happened (with its result), run it again, or stop."""
    run = steering.settle(
        run_id, outcome=body.outcome, result=body.result, execution_id=body.execution, by=request.auth
    )
    return run_shape(run, reader=request.auth)


@router.post("/runs/{uuid:run_id}/input", response={200: RunShape, **REFUSALS}, summary="Give new input")
def add_input(request: ApiRequest, run_id: UUID, body: NewInput, wait: Seconds = 0) -> Any:
    """Start the next turn of a run. While it waits for people: 409 `open_reviews`, and `tasks` says which.

    With `close_open_reviews` they are closed first, superseded and on record, and none of their tools runs.
    With `wait`, the answer comes as soon as the run is not at work, as *Read a run* gives it.
    """
    given = _add_input(request, run_id, body)
    _answer_at_rest(request, wait, given)
    return given


@idempotent
def _add_input(request: ApiRequest, run_id: UUID, body: NewInput) -> RunShape:
    run = steering.add_input(
        run_id, input=body.input, close_open_reviews=body.close_open_reviews, by=request.auth
    )
    return run_shape(run, reader=request.auth)
