"""Runs, pauses and tasks as the agents' side would make them, for tests of the humans' side alone."""

from __future__ import annotations

from django.db import transaction

from agents_runtime.canonical import Json, encode
from agents_runtime.desk import OpenedPause, ReviewRequest
from agents_runtime.models import AgentSpec, Pause, Run
from agents_runtime.states import RunStatus
from reviewer.accounts.models import User
from reviewer.intake import Desk
from reviewer.models import ReviewTask

APPROVE: Json = {"type": "approve"}
REJECT: Json = {"type": "reject", "message": "Not this one"}


def decision_schema(tool: str, args_schema: Json) -> Json:
    """Return a response schema as the library makes it: approve, edit, reject."""
    return {
        "$defs": {
            "Approve": _tagged("approve", {}, []),
            "Reject": _tagged("reject", {"message": {"type": "string"}}, []),
            "Edit": _tagged(
                "edit",
                {
                    "edited_action": {
                        "type": "object",
                        "properties": {"name": {"const": tool, "type": "string"}, "args": args_schema},
                        "required": ["name", "args"],
                    }
                },
                ["edited_action"],
            ),
        },
        "discriminator": {
            "propertyName": "type",
            "mapping": {
                "approve": "#/$defs/Approve",
                "reject": "#/$defs/Reject",
                "edit": "#/$defs/Edit",
            },
        },
        "oneOf": [{"$ref": "#/$defs/Approve"}, {"$ref": "#/$defs/Edit"}, {"$ref": "#/$defs/Reject"}],
    }


def _tagged(tag: str, properties: Json, required: list[str]) -> Json:
    return {
        "type": "object",
        "properties": {"type": {"const": tag, "type": "string"}, **properties},
        "required": ["type", *required],
    }


REFUND_ARGS: Json = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "amount": {"type": "string", "pattern": r"^\d+\.\d{2}$"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "required": ["order_id", "amount"],
}


def refund(position: int = 0, *, order: str = "A-1001", amount: str = "18.40") -> ReviewRequest:
    """Return a request to refund an order."""
    return ReviewRequest(
        position=position,
        kind="tool_call",
        tool="issue_refund",
        tool_call_id=f"call-{position}",
        arguments={"order_id": order, "amount": amount},
        response_schema=decision_schema("issue_refund", REFUND_ARGS),
        description="The customer was charged twice.",
        title_template="Refund {amount} for order {order_id}",
    )


def question(text: str = "Which tax rule?") -> ReviewRequest:
    """Return a plain question with a free answer."""
    return ReviewRequest(
        position=0, kind="question", arguments=text, response_schema={"type": "string", "minLength": 1}
    )


@transaction.atomic
def pause_run(*requests: ReviewRequest, by: User, agent: str = "refunds", interrupt: str = "0" * 32) -> Pause:
    """Store a run that waits at one pause with these requests, through the desk as the runtime would."""
    spec, _ = AgentSpec.objects.get_or_create(name=agent, defaults={"source": "tests", "entry": agent})
    run = Run.objects.create(
        agent=spec, input=encode({}), requested_by=by.reference, status=RunStatus.WAITING, epoch=1
    )
    pause = Pause.objects.create(
        run=run,
        interrupt_id=interrupt,
        kind=Pause.Kind.PER_CALL if len(requests) == 1 else Pause.Kind.BATCHED,
        tool=requests[0].tool,
        value=encode(None),
        calls=encode(
            [
                {"tool": item.tool, "tool_call_id": item.tool_call_id, "arguments": item.arguments}
                for item in requests
                if item.tool
            ]
        ),
    )
    Desk().run_paused(run, [OpenedPause(pause, requests)])
    return pause


def open_refund(*, by: User, amount: str = "18.40") -> ReviewTask:
    """Store a waiting run with one refund to decide and return its task."""
    return pause_run(refund(amount=amount), by=by).tasks.get()
