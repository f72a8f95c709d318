"""One line of a run's story, and what lines are made from."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from agents_runtime.canonical import decode
from agents_runtime.models import Run, ToolExecution
from reviewer.accounts.models import User
from reviewer.models import AuditEvent, Decision, ReviewTask

LONG = 600
SHOWN_OF_LONG = 400


@dataclass(frozen=True)
class Entry:
    """One line. ``title``, ``aside`` and ``notes`` are our words; ``code`` and ``said`` are the agent's."""

    icon: str
    title: str
    key: str = ""
    at: dt.datetime | None = None
    tone: str = ""
    aside: str = ""
    code: str = ""
    notes: Sequence[str] = ()
    said: str = ""
    is_data: bool = False  # ``said`` is a tool's result and not prose
    remark: str = ""
    task: ReviewTask | None = None
    event: AuditEvent | None = None
    took: dt.timedelta | None = None
    is_now: bool = False
    message: str = ""  # id of the message that is told here in full

    @property
    def beginning(self) -> str:
        """What of a long ``said`` is shown before it is opened; nothing where it is short."""
        return self.said[:SHOWN_OF_LONG] + "…" if len(self.said) > LONG else ""


@dataclass(frozen=True)
class Source:
    """A run with what its lines refer to, found by task or by tool call."""

    run: Run
    reader: User
    tasks: dict[str, ReviewTask]
    decisions: dict[str, Decision]
    asked: dict[str, ReviewTask]  # by tool_call_id
    executions: dict[str, ToolExecution]  # by tool_call_id
    gated: frozenset[str]


def source_of(
    run: Run, reader: User, tasks: Sequence[ReviewTask], executions: Sequence[ToolExecution]
) -> Source:
    """Return the source of a run's lines; of two attempts at one call the last one counts."""
    return Source(
        run=run,
        reader=reader,
        tasks={str(task.pk): task for task in tasks},
        decisions={str(task.pk): decision for task in tasks for decision in task.decisions.all()},
        asked={task.tool_call_id: task for task in tasks if task.tool_call_id},
        executions={execution.tool_call_id: execution for execution in executions if execution.tool_call_id},
        gated=frozenset(decode(run.gates)),
    )


def actor_name(event: AuditEvent, reader: User, *, capital: bool = False) -> str:
    """Name who did it; the reader is "you"."""
    if event.actor_id == reader.pk:
        return _("You") if capital else _("you")
    return event.actor_name
