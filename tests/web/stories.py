"""Tasks brought to every stage a card can stand at, as the agents' side and people would bring them there."""

from __future__ import annotations

from django.db import transaction
from django.utils.timezone import now

from agents_runtime.canonical import Json, encode
from agents_runtime.desk import ReviewRequest
from agents_runtime.models import Pause, Run, ToolExecution
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus
from reviewer import decisions
from reviewer.intake import Desk
from reviewer.models import ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, decision_schema, pause_run

REFUND_ARGS: Json = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "amount": {"type": "string"},
        "reason": {"enum": ["duplicate", "damaged"]},
    },
    "required": ["order_id", "amount", "reason"],
}
ARGUMENTS: Json = {"order_id": "A-1001", "amount": "18.40", "reason": "duplicate"}
EDITED: Json = {
    "type": "edit",
    "edited_action": {"name": "issue_refund", "args": {**ARGUMENTS, "amount": "9.20"}},
}


def refund(*, order: str = "A-1001", said: str = "The customer was charged twice.") -> ReviewRequest:
    """Return a request for a refund with everything a card can show."""
    return ReviewRequest(
        position=0,
        kind="tool_call",
        tool="issue_refund",
        tool_call_id="call-0",
        arguments={**ARGUMENTS, "order_id": order},
        response_schema=decision_schema("issue_refund", REFUND_ARGS),
        args_schema=REFUND_ARGS,
        said=said,
        title_template="Refund {amount} for order {order_id}",
    )


def open_task(
    cast: Cast, *, order: str = "A-1001", said: str = "The customer was charged twice."
) -> ReviewTask:
    """Store a waiting run of the developer with one refund to decide."""
    return pause_run(
        refund(order=order, said=said), by=cast.developer, interrupt=order.ljust(32, "0")
    ).tasks.get()


def decide(
    task: ReviewTask, cast: Cast, answer: Json = APPROVE, *, reason_code: str = "", comment: str = ""
) -> ReviewTask:
    """Let the reviewer decide."""
    decisions.decide(
        task.pk,
        by=cast.reviewer,
        answer=answer,
        digest=task.digest,
        reason_code=reason_code,
        comment=comment,
    )
    return ReviewTask.objects.get(pk=task.pk)


@transaction.atomic
def deliver(task: ReviewTask, *, ends: PauseStatus | None = None, error: str = "") -> Pause:
    """Bring the answered pause into delivery, and on to its end."""
    pause = Pause.objects.get(pk=task.pause_id)
    pause.become(PauseStatus.DELIVERING)
    pause.delivery_epoch, pause.delivery_started_at = 1, now()
    pause.save()
    Desk().delivery_started(pause)
    if ends is not None:
        pause.become(ends)
        pause.closed_at, pause.error = now(), error
        pause.save()
        Desk().pause_closed(pause)
    return pause


def attempt(
    task: ReviewTask, status: ExecutionStatus, *, error: str = "", doubt: bool = False
) -> ToolExecution:
    """Write one attempt to run the task's tool into the ledger."""
    ended = status not in {ExecutionStatus.STARTED, ExecutionStatus.SUSPENDED}
    return ToolExecution.objects.create(
        run=task.run,
        pause=task.pause,
        call_key=str(task.pause_id),
        tool=task.tool,
        arguments=task.action,
        arguments_digest="0" * 64,
        grant=ToolExecution.Grant.DECISION,
        epoch=1,
        status=status,
        error=error,
        in_doubt_since=now() if doubt else None,
        finished_at=now() if ended else None,
        result=encode("done") if status == ExecutionStatus.SUCCEEDED else "",
    )


@transaction.atomic
def close(task: ReviewTask, status: PauseStatus) -> ReviewTask:
    """Let the pause end before anybody decided."""
    pause = Pause.objects.get(pk=task.pause_id)
    pause.become(status)
    pause.closed_at = now()
    pause.save()
    Desk().pause_closed(pause)
    return ReviewTask.objects.get(pk=task.pk)


def run_becomes(task: ReviewTask, status: RunStatus, *, error: str = "") -> None:
    """Change what the run is doing."""
    run = Run.objects.get(pk=task.run_id)
    run.become(status)
    run.error = error
    run.save()
