"""The desk: what the agents' side tells becomes review tasks, audit events and live hints."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS
from django.utils.timezone import now
from django.utils.translation import gettext

from agents_runtime.canonical import digest, encode, encode_in_order, storable
from agents_runtime.compiled import SOME_ID, SOME_NUMBER, Compiled
from agents_runtime.desk import OpenedPause, Progress, ReviewRequest
from agents_runtime.models import Pause, Run, ToolExecution
from agents_runtime.states import PauseStatus
from agents_runtime.writing import Found, Write, insert, update, write
from reviewer import cards, live
from reviewer.accounts.models import User
from reviewer.audit.record import Subject, record, record_all
from reviewer.audit.subjects import of_execution, of_pause, of_run, of_task, remember_task
from reviewer.cards.titles import title
from reviewer.deadlines import deadline_of
from reviewer.expiry import expire_due
from reviewer.models import ReviewTask, TaskStatus
from reviewer.models.tasks import TASK_TRANSITIONS
from reviewer.routing import Route, route

CLOSES_TASKS = {
    PauseStatus.SUPERSEDED: TaskStatus.SUPERSEDED,
    PauseStatus.WITHDRAWN: TaskStatus.WITHDRAWN,
    PauseStatus.EXPIRED: TaskStatus.EXPIRED,
}
_person = Compiled(lambda user_id: User.objects.filter(pk=user_id), SOME_NUMBER)
_locked_tasks_of_pause = Compiled(
    lambda pause_id: ReviewTask.objects.select_for_update().filter(pause=pause_id).order_by("pk"), SOME_ID
)
# In the model's order.
_HINTED = ("id", "pause_id", "run_id", "position", "queue_id", "version", "assigned_to_id")


def _raise_those_of(whose: str) -> Write:
    """Return what raises versions of tasks, locked in the order that everybody keeps who locks several."""
    return Write(
        before=f"""
        locked AS (SELECT id FROM reviewer_reviewtask WHERE {whose} = %s ORDER BY id FOR UPDATE)
        """,  # noqa: S608  a column's name
        sql="""
        UPDATE reviewer_reviewtask AS task SET version = version + 1 FROM locked WHERE task.id = locked.id
        RETURNING task.id, task.pause_id, task.run_id, task.position,
            task.queue_id, task.version, task.assigned_to_id
        """,
        tables=frozenset({ReviewTask._meta.db_table}),  # noqa: SLF001  Django documents it as public
    )


_RAISE_OF_PAUSE, _RAISE_OF_RUN = _raise_those_of("pause_id"), _raise_those_of("run_id")


class Desk:
    """Implements ``agents_runtime.desk.Desk``; see there for when each method is called."""

    def run_started(self, run: Run) -> None:
        """Record the start with the person behind it."""
        record(
            "run.started",
            actor=person_of(run.requested_by),
            subject=of_run(run, input_digest=digest(run.input)),
        )
        live.run_changed(run.pk, at_work=True)

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """Pass text on, and hint that the timeline grew."""
        if progress.tokens:
            live.run_produced(run.pk, progress.tokens)
        if progress.steps:
            live.run_changed(run.pk, at_work=True)

    def run_paused(self, run: Run, opened: Sequence[OpenedPause]) -> None:
        """Open one task for each request."""
        for item in opened:
            paused = ("run.paused", of_pause(item.pause, kind=item.pause.kind))
            tasks = [_insert_task(item.pause, request) for request in item.requests]
            record_all([paused, *(("task.opened", _of_opened(task)) for task in tasks)])
        live.run_changed(run.pk)

    def pause_closed(self, pause: Pause) -> None:
        """Record what became of the pause and bring its tasks into line."""
        told = of_pause(pause, outcome=pause.status, error=pause.error[:500])
        closing = CLOSES_TASKS.get(PauseStatus(pause.status))
        if closing is None:
            _record_and_refresh(f"pause.{pause.status}", told, _RAISE_OF_PAUSE, pause.pk)
        else:
            record(f"pause.{pause.status}", subject=told)
            _close_tasks(pause, closing)
        live.run_changed(pause.run_id)

    def delivery_started(self, pause: Pause) -> None:
        """Record that the answer can no longer be changed."""
        told = of_pause(pause, answers_digest=digest(pause.answer_list))
        _record_and_refresh("answer.delivering", told, _RAISE_OF_PAUSE, pause.pk)

    def tool_started(self, execution: ToolExecution) -> None:
        """Record that a gated tool is about to run, and under which grant."""
        record("tool.started", subject=of_execution(execution, grant=execution.grant))
        live.run_changed(execution.run_id, at_work=True)

    def tool_finished(self, execution: ToolExecution) -> None:
        """Record how the attempt ended."""
        record(
            f"tool.{execution.status}",
            subject=of_execution(execution, outcome=execution.status, error=execution.error[:500]),
        )
        live.run_changed(execution.run_id, at_work=True)

    def tool_refused(self, run: Run, tool: str, reason: str) -> None:
        """Record that the gate stopped a call."""
        record("tool.refused", subject=of_run(run, outcome="refused", tool=tool, reason=reason))
        live.run_changed(run.pk, at_work=True)

    def run_in_doubt(self, run: Run, executions: Sequence[ToolExecution]) -> None:
        """Record which attempts nobody knows the end of."""
        *others, last = [of_execution(execution, outcome="in_doubt") for execution in executions]
        record_all([("run.in_doubt", told) for told in others])
        live.run_changed(run.pk)
        _record_and_refresh("run.in_doubt", last, _RAISE_OF_RUN, run.pk)

    def run_resumed(self, run: Run) -> None:
        """Record that the run works again."""
        record("run.resumed", subject=of_run(run))
        live.run_changed(run.pk, at_work=True)

    def run_finished(self, run: Run) -> None:
        """Record the end, with a digest of the output."""
        record("run.finished", subject=of_run(run, outcome="finished", output_digest=digest(run.output)))
        live.run_changed(run.pk)

    def run_failed(self, run: Run) -> None:
        """Record why the run stopped."""
        told = of_run(run, outcome="failed", error=run.error[:500])
        live.run_changed(run.pk)
        _record_and_refresh("run.failed", told, _RAISE_OF_RUN, run.pk)

    def run_cancelled(self, run: Run) -> None:
        """Record the cancellation; who asked for it is recorded by whoever called for it."""
        record("run.cancelled", subject=of_run(run, outcome="cancelled"))
        live.run_changed(run.pk)

    def thread_deleted(self, run: Run) -> None:
        """Record that the run cannot go on any more, and by whose word."""
        record("run.thread_deleted", subject=of_run(run, deleted_by=run.thread_deleted_by))
        live.run_changed(run.pk)

    def time_passed(self) -> int:
        """Hold or reject what nobody decided in time."""
        return expire_due()


def open_task(pause: Pause, request: ReviewRequest) -> ReviewTask:
    """Open the task for one request: route it, fix what its card shows, link it to the one it follows."""
    task = _insert_task(pause, request)
    record("task.opened", subject=_of_opened(task))
    return task


def _of_opened(task: ReviewTask) -> Subject:
    return of_task(task, digest=task.digest, policy=task.policy_label, risk=task.risk)


def _insert_task(pause: Pause, request: ReviewRequest) -> ReviewTask:
    agent = pause.run.agent.name
    where = route(agent=agent, tool=request.tool, risk=request.risk, queue=request.queue)
    previous = _previous_task(pause, request.position)
    queue = previous.queue if previous else where.queue
    deadline = deadline_of(request, where, queue=queue)
    task = ReviewTask(
        pause=pause,
        run=pause.run,
        position=request.position,
        queue=queue,
        kind=request.kind,
        title=storable(title_of(request)),
        agent=agent,
        tool=storable(request.tool)[:200],
        tool_call_id=storable(request.tool_call_id)[:200],
        action=encode_in_order(request.arguments),
        response_schema=encode_in_order(request.response_schema),
        args_schema=encode_in_order(request.args_schema),
        description=storable(request.description),
        said=storable(request.said),
        risk=where.risk,
        policy=where.policy,
        policy_label=where.label,
        digest=card_digest(request, where),
        due_at=deadline.at,
        on_expiry=deadline.on_expiry,
        expiry_label=deadline.label[:120],
        previous=previous,
        refusal=encode([{"pointer": item.pointer, "message": item.message} for item in request.refusal]),
        refused_answer=encode(request.refused_answer),
        assigned_to=previous.assigned_to if previous else None,
    )
    insert(task)
    live.task_changed(task)
    return task


def title_of(request: ReviewRequest) -> str:
    """Return the title of a card: the author's, or made from the tool, the question or the next steps."""
    if request.kind == ReviewTask.Kind.CONTINUE:
        nodes = ", ".join(map(str, request.arguments["next"]))
        return title(gettext("Continue with {nodes}"), "", {"nodes": nodes})
    card = cards.build(
        cards.CardRequest(
            card_id="",
            tool=request.tool,
            args=request.arguments,
            response_schema=request.response_schema,
            args_schema=request.args_schema,
            title_template=request.title_template or None,
        )
    )
    return card.title


def card_digest(request: ReviewRequest, where: Route) -> str:
    """Return the digest that a decision is bound to: action, schema, policy."""
    return digest(
        {
            "tool": request.tool,
            "action": request.arguments,
            "schema": request.response_schema,
            "description": request.description,
            "policy": where.label,
        }
    )


def person_of(reference: str) -> User | None:
    """Return the person behind an opaque reference of the agents' side, or None."""
    kind, _, key = reference.partition(":")
    return _person.first(int(key)) if kind == "user" and key.isdigit() else None


def _previous_task(pause: Pause, position: int) -> ReviewTask | None:
    if pause.previous_id is None:
        return None
    return ReviewTask.objects.filter(pause_id=pause.previous_id, position=position).first()


def _close_tasks(pause: Pause, closing: TaskStatus) -> None:
    """Raise the version of the pause's tasks; close those that no delivery has begun of."""
    for task in _locked_tasks_of_pause.rows(pause.pk):
        is_undelivered = task.is_open or pause.delivery_started_at is None
        if is_undelivered and closing in TASK_TRANSITIONS[task.status]:
            _close(task, closing)
        task.version += 1
        update(task, "version", "status", "closed_at", "claimed_by", "claimed_until")
        live.task_changed(task)


def _close(task: ReviewTask, status: TaskStatus) -> None:
    task.status = status
    task.closed_at = task.closed_at or now()
    task.claimed_by = task.claimed_until = None
    record(f"task.{status}", subject=of_task(task, outcome=status))


def _record_and_refresh(event: str, subject: Subject, change: Write, key: UUID) -> None:
    """Record an event and raise the version of the tasks that show what it tells of."""
    record(event, subject=subject)
    write(change, key, then=_tell_of_raised, may_refuse=False)  # hints refuse nothing


def _tell_of_raised(tasks: Found) -> None:
    for columns in tasks:
        task = ReviewTask.from_db(DEFAULT_DB_ALIAS, _HINTED, columns)
        remember_task(task.pk, pause_id=task.pause_id, position=task.position)
        live.task_changed(task)
