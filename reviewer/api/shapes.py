"""What programs get: the shapes of runs, tasks, decisions and events, made from the rows they show.

Values of agents leave as the JSON they are; only a run's pauses are cut where a person may not see their
tasks, and secrets are masked for whoever could not decide.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Generic, TypeVar
from uuid import UUID

from ninja.responses import NinjaJSONEncoder
from pydantic import BaseModel, Field

from agents_runtime.canonical import Json, decode
from agents_runtime.compiled import SOME_ID, Compiled
from agents_runtime.models import Pause, Run, ToolExecution
from agents_runtime.states import ExecutionStatus, RunStatus
from reviewer import queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.api.problems import Pointed
from reviewer.cards import Card
from reviewer.cards.diff import Change
from reviewer.cards.secrets import masked
from reviewer.intake import person_of
from reviewer.models import AuditEvent, Decision, ReviewTask, Showing
from reviewer.openings import may_uncover
from reviewer.queries import Asked
from reviewer.shown import card_of, changes_of, told_record

Item = TypeVar("Item")
SECRET_SIGNS = ('"writeOnly":true', '"format":"password"')
"""How a canonical schema says that a value is not for showing."""


class Page(BaseModel, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    total: int
    limit: int
    offset: int


class TaskRow(BaseModel):
    """A task as lists show it: without what is to be decided, which only its own address gives."""

    id: UUID
    status: str = Field(description="open, decided, expired, superseded, withdrawn")
    kind: str = Field(description="tool_call, question, continue")
    title: str
    agent: str
    tool: str
    run: UUID
    queue: str
    risk: str
    version: int
    assigned_to: str | None
    claimed_by: str | None
    claimed_until: dt.datetime | None
    claim_version: int
    created_at: dt.datetime
    due_at: dt.datetime | None
    expires_at: dt.datetime | None = Field(description="When `on_expiry` happens unless somebody decides.")
    on_expiry: str | None = Field(description="hold (stays open, overdue), reject; null without a deadline.")
    overdue_at: dt.datetime | None = Field(description="When it was found undecided after its deadline.")
    closed_at: dt.datetime | None


class ChangeMade(BaseModel):
    """One difference between what was proposed and what was decided, by type and value: 1 is not 1.0."""

    pointer: str = Field(description="JSON Pointer into the arguments: the decided ones, or where it was.")
    kind: str = Field(description="changed, added, removed, moved")
    before: Any = Field(None, description="Not set for `added`.")
    after: Any = Field(None, description="Not set for `removed`.")
    came_from: int | None = Field(None, description="The index that a `moved` item had before.")


class CardShown(BaseModel):
    """The card as the person had it before them on a page; its HTML is kept under its SHA-256."""

    sha256: str
    renderer_version: int
    language: str


class DecisionMade(BaseModel):
    """A recorded decision."""

    task: UUID
    run: UUID
    verdict: str = Field(description="approve, edit, reject, respond, answer")
    answer: Any
    digest: str
    decided_by: str
    decided_at: dt.datetime
    via: str
    reason_code: str
    comment: str
    changes: list[ChangeMade] = Field(description="What an edit changed, as kept with the decision.")
    shown: CardShown | None = Field(description="null for a decision through the API: it gets this JSON.")
    effect: str = Field(
        description=(
            "What has become of it: pending (its pause has other calls to decide), answered or delivering "
            "(on its way), delivered (the agent has it), or why it is not: failed (the tool raised), "
            "in_doubt, refused by the agent, superseded, withdrawn, expired"
        )
    )
    run_status: str = Field(description="The run's own status, as in `RunShape`.")


class Task(TaskRow):
    """A whole card; giving it out is recorded as an opening."""

    args: Any = Field(description="What will happen, or what is asked.")
    response_schema: Any = Field(description="JSON Schema of the answer.")
    allowed_decisions: list[str] = Field(
        description="approve, edit, reject, respond; `answer` is any other answer."
    )
    args_schema: Any = None
    tool_call_id: str
    description: str
    said: str = Field(description="The agent's own words. Untrusted.")
    policy: str
    digest: str = Field(description="Send it back with the decision: it names exactly this card.")
    previous: UUID | None = Field(description="The task whose answer the agent refused, if any.")
    refused_answer: Any = None
    refusal: list[Pointed] = []
    decision: DecisionMade | None = None


class PauseShape(BaseModel):
    """One interrupt of a run. ``value`` and ``response_schema`` are null unless one may see all its tasks."""

    id: UUID
    interrupt_id: str
    namespace: str
    round: int
    kind: str = Field(description="per_call, batched, legacy, question, static")
    status: str
    tool: str
    tool_call_id: str
    value: Any = None
    response_schema: Any = None
    error: str
    tasks: list[UUID]
    created_at: dt.datetime
    answered_at: dt.datetime | None
    closed_at: dt.datetime | None


class Doubt(BaseModel):
    """An attempt to run a tool whose end nobody saw."""

    execution: int
    tool: str
    attempt: int
    started_at: dt.datetime
    since: dt.datetime | None


class RunShape(BaseModel):
    """A run."""

    id: UUID
    agent: str
    status: str = Field(description="queued, running, waiting, in_doubt, finished, failed, cancelled")
    input: Any
    output: Any = Field(description="null until finished.")
    error: str
    trouble: str = Field(
        description="Its kind: step, tool, agent, build, place, checkpoint, deaths, batch; empty without one."
    )
    requested_by: str
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    checkpoints_deleted_at: dt.datetime | None = Field(description="The run takes no input any more.")
    pauses: list[PauseShape]
    in_doubt: list[Doubt]


class Event(BaseModel):
    """One event of the audit trail."""

    id: int
    type: str
    at: dt.datetime
    actor: str
    run: UUID | None
    task: UUID | None
    queue: int | None
    agent: str
    tool: str
    outcome: str
    payload: Any


class Events(BaseModel):
    """A part of the trail, newest first; ``next`` is the ``before`` of the part that follows."""

    items: list[Event]
    next: int | None


_doubts_in_run = Compiled(
    lambda run_id: ToolExecution.objects.filter(
        run=run_id, status=ExecutionStatus.STARTED, in_doubt_since__isnull=False
    ),
    SOME_ID,
)


def as_json(shape: BaseModel) -> str:
    """Return a shape as the API sends it."""
    return json.dumps(shape.model_dump(), cls=NinjaJSONEncoder)


def task_row(task: ReviewTask) -> TaskRow:
    """Return the row of a task."""
    return TaskRow(**_row_fields(task))


def decision_for(decision: Decision, *, reader: User) -> DecisionMade:
    """Return the shape of a decision for who may see its task; who could not decide it sees no secret."""
    task = decision.task
    return decision_made(decision, masked_by=None if may_uncover(task, by=reader) else card_of(task))


def task_card(task: ReviewTask, *, reader: User) -> Task:
    """Return the whole card of a task; who could not decide it gets its secrets masked, as on its page."""
    card = None if may_uncover(task, by=reader) else card_of(task)
    decision = None if task.is_open else _decision_on(task)
    refused = decode(task.refused_answer)
    return Task(
        **_row_fields(task),
        args=card.mask.value(task.arguments) if card else task.arguments,
        response_schema=task.schema,
        allowed_decisions=_allowed(task),
        args_schema=decode(task.args_schema),
        tool_call_id=task.tool_call_id,
        description=task.description,
        said=task.said,
        policy=task.policy_label,
        digest=task.digest,
        previous=task.previous_id,
        refused_answer=_masked_answer(card, refused) if card else refused,
        refusal=[Pointed(**problem) for problem in decode(task.refusal)],
        decision=decision_made(decision, masked_by=card) if decision else None,
    )


def _decision_on(task: ReviewTask) -> Decision | None:
    return task.decisions.select_related("showing").order_by("-decided_at").first()


def _masked_answer(card: Card, answer: Json) -> Json:
    return masked(card.for_the_record(answer))


def _row_fields(task: ReviewTask) -> dict[str, Any]:
    return {
        "id": task.pk,
        "status": task.status,
        "kind": task.kind,
        "title": task.title,
        "agent": task.agent,
        "tool": task.tool,
        "run": task.run_id,
        "queue": task.queue.slug,
        "risk": task.risk,
        "version": task.version,
        "assigned_to": _name(task.assigned_to),
        "claimed_by": _name(task.claimed_by),
        "claimed_until": task.claimed_until,
        "claim_version": task.claim_version,
        "created_at": task.created_at,
        "due_at": task.due_at,
        "expires_at": task.due_at,
        "on_expiry": task.on_expiry if task.due_at else None,
        "overdue_at": task.overdue_at,
        "closed_at": task.closed_at,
    }


def _allowed(task: ReviewTask) -> list[str]:
    """Return the decisions that the task's schema allows, as the card offers them."""
    return [choice.verdict for choice in card_of(task).choices]


def decision_made(decision: Decision, *, masked_by: Card | None = None) -> DecisionMade:
    """Return the shape of a decision, without its secrets where its card is given to mask them."""
    answer, changes = decode(decision.answer), changes_of(decision.task, decision)
    if masked_by is not None:
        answer, changes = _masked_answer(masked_by, answer), masked_by.mask.changes(changes)
    return DecisionMade(
        task=decision.task_id,
        run=decision.task.run_id,
        verdict=decision.verdict,
        answer=answer,
        digest=decision.digest,
        decided_by=decision.person_name,
        decided_at=decision.decided_at,
        via=decision.via,
        reason_code=decision.reason_code,
        comment=decision.comment,
        changes=[_change(change) for change in changes],
        shown=_shown(decision.showing) if decision.showing else None,
        effect=decision.task.pause.status,
        run_status=decision.task.run.status,
    )


def _change(change: Change) -> ChangeMade:
    told = change.to_json()
    del told["steps"]
    return ChangeMade(**told)


def _shown(showing: Showing) -> CardShown:
    return CardShown(
        sha256=showing.snapshot_id, renderer_version=showing.renderer_version, language=showing.language
    )


def run_shape(run: Run, *, reader: User, asked: Sequence[Asked] | None = None) -> RunShape:
    """Return the shape of a run for someone who may see it, with those of its tasks that they may see.

    Who sees them without being asked, as whoever started it and auditors do, gets no secret with a pause.
    ``asked`` is all that the run has asked, where that is known already.
    """
    is_asked = not (run.is_directed_by(reader.reference) or permissions.sees_all_queues(reader))
    requester = reader if run.requested_by == reader.reference else person_of(run.requested_by)
    asked = queries.asked_by(run) if asked is None else asked
    visible_tasks = _visible(run, asked, reader=reader)
    may_have_doubts = run.status not in {RunStatus.QUEUED, RunStatus.FINISHED}
    may_have_doubts = may_have_doubts and getattr(run, "has_started", True)  # not every read has asked
    return RunShape(
        id=run.pk,
        agent=run.agent.name,
        status=run.status,
        input=decode(run.input),
        output=decode(run.output) if run.output else None,
        error=run.error,
        trouble=run.trouble,
        requested_by=requester.display_name if requester else run.requested_by,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        checkpoints_deleted_at=run.thread_deleted_at,
        pauses=[
            _pause(one, visible_tasks, value_of=_whole_value if is_asked else partial(_masked_value, run))
            for one in asked
        ],
        in_doubt=[_doubt(execution) for execution in _doubts_in_run.rows(run.pk)] if may_have_doubts else [],
    )


def _visible(run: Run, asked: Sequence[Asked], *, reader: User) -> Collection[UUID]:
    """Return the keys of those tasks that this person may see."""
    tasks = {task for one in asked for task in one.tasks}
    return tasks if not tasks or queries.sees_all_of_run(reader, run) else queries.visible_in_run(reader, run)


def _whole_value(pause: Pause) -> Json:
    return decode(pause.value)


def _masked_value(run: Run, pause: Pause) -> Json:
    """Return what a pause asked without secrets; nothing of it where a schema says which they are."""
    schemas = pause.response_schema + run.agent.tools
    is_told_by_schema = any(sign in schemas for sign in SECRET_SIGNS)
    return None if is_told_by_schema else masked(decode(pause.value))


def _pause(asked: Asked, visible_tasks: Collection[UUID], *, value_of: Callable[[Pause], Json]) -> PauseShape:
    """Return the shape of a pause."""
    pause, tasks = asked.pause, asked.tasks
    may_see = bool(tasks) and all(task in visible_tasks for task in tasks)
    return PauseShape(
        id=pause.pk,
        interrupt_id=pause.interrupt_id,
        namespace=pause.namespace,
        round=pause.round,
        kind=pause.kind,
        status=pause.status,
        tool=pause.tool,
        tool_call_id=pause.tool_call_id,
        value=value_of(pause) if may_see else None,
        response_schema=decode(pause.response_schema) if may_see else None,
        error=pause.error,
        tasks=[task for task in tasks if task in visible_tasks],
        created_at=pause.created_at,
        answered_at=pause.answered_at,
        closed_at=pause.closed_at,
    )


def _doubt(execution: ToolExecution) -> Doubt:
    return Doubt(
        execution=execution.pk,
        tool=execution.tool,
        attempt=execution.attempt,
        started_at=execution.started_at,
        since=execution.in_doubt_since,
    )


def event(found: AuditEvent) -> Event:
    """Return the shape of an audit event."""
    return Event(
        id=found.pk,
        type=found.type,
        at=found.at,
        actor=found.actor_name,
        run=found.run_id,
        task=found.task_id,
        queue=found.queue_id,
        agent=found.agent,
        tool=found.tool,
        outcome=found.outcome,
        payload=told_record(found.payload),
    )


def _name(person: User | None) -> str | None:
    return person.display_name if person else None
