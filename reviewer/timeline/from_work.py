"""Lines of a run's story that its own work tells: what the model said, which tools ran, what it does now.

A gated call is told by the ledger, because only the ledger knows whether it ran; an answer that the agent got
in a tool's place (a rejection, a reviewer's text) is told as such and never as "Tool ran".
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents_runtime.canonical import Json, decode
from agents_runtime.models import Run, RunStep, ToolExecution
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus
from reviewer.models import ReviewTask, Verdict
from reviewer.timeline.entries import Entry, Source

LONGEST_SAID = 6_000


def is_in_doubt(execution: ToolExecution) -> bool:
    """Say whether nobody knows how this attempt ended."""
    return execution.in_doubt_since is not None and execution.status == ExecutionStatus.STARTED


def from_execution(execution: ToolExecution) -> Entry:
    """Tell of one attempt to run a gated tool."""
    key, at = f"execution-{execution.pk}", execution.finished_at or execution.started_at
    code, took = execution.tool, _took(execution)
    if is_in_doubt(execution):
        notes = [_("The worker stopped while it ran. It may have happened. Nobody has said yet.")]
        return Entry(
            "circle-question-mark",
            _("In doubt"),
            tone="danger",
            code=code,
            notes=notes,
            key=key,
            at=execution.in_doubt_since,
        )
    if execution.status == ExecutionStatus.STARTED:
        return Entry("zap", _("Tool is running"), tone="info", code=code, key=key, at=at)
    icon, title, tone = _ENDS[ExecutionStatus(execution.status)]
    said = execution.error or _shortened(_shown(execution.result))
    return Entry(
        icon,
        str(title),
        tone=tone,
        code=code,
        notes=_attempt_notes(execution),
        said=said,
        is_data=not execution.error,
        key=key,
        at=at,
        took=took,
    )


def from_step(source: Source, step: RunStep) -> Entry | None:
    """Tell of one step of the graph; a gated call's own step is left to the ledger."""
    if step.kind == RunStep.Kind.MODEL:
        return _model_said(step)
    if step.kind == RunStep.Kind.TOOL:
        return _tool_answered(source, step)
    if step.kind == RunStep.Kind.NODE:
        return _node_finished(step)
    return _went_wrong(step) if step.kind == RunStep.Kind.ERROR else None


def still_to_come(run: Run, tasks: Sequence[ReviewTask]) -> Sequence[Entry]:
    """Tell what the run does now, as the last line; nothing once it is over."""
    if run.status == RunStatus.QUEUED:
        return [_now("clock", _("Waits for a free worker"))]
    if run.status == RunStatus.RUNNING:
        return [_now("bot", _("At work"), tone="info")]
    if run.status == RunStatus.IN_DOUBT:
        return [_now("circle-question-mark", _("Waits for somebody to say what happened"), tone="danger")]
    if run.status != RunStatus.WAITING:
        return []
    count = sum(task.is_open for task in tasks)
    if not count:
        has_failed = run.error or any(task.pause.status == PauseStatus.FAILED for task in tasks)
        title = _("Waits for a retry, or to be cancelled") if has_failed else _("Waits for people")
        return [_now("hourglass", title, tone="warn")]
    title = ngettext("Waits for %(count)s decision", "Waits for %(count)s decisions", count) % {
        "count": count
    }
    return [_now("hourglass", title, tone="warn")]


def _now(icon: str, title: str, *, tone: str = "") -> Entry:
    return Entry(icon, title, tone=tone, key="now", is_now=True)


def _model_said(step: RunStep) -> Entry | None:
    calls = [call for call in _list(_data(step).get("tool_calls")) if isinstance(call, dict)]
    names = [str(call.get("name", "")) for call in calls]
    if not step.text and not names:
        return None
    notes = [_("It asks to run %(tools)s.") % {"tools": ", ".join(names)}] if names else []
    return Entry(
        "bot",
        _("Model said") if step.text else _("Model chose its next step"),
        said=_shortened(step.text),
        notes=notes,
        key=f"step-{step.pk}",
        at=step.at,
        took=_step_took(step),
        message=step.key.removeprefix("message:"),
    )


def _tool_answered(source: Source, step: RunStep) -> Entry | None:
    call = str(_data(step).get("tool_call_id", ""))
    if call in source.executions:
        return None
    key, said = f"step-{step.pk}", _shortened(step.text)
    if step.name not in source.gated and call not in source.asked:
        return Entry(
            "wrench",
            _("Tool ran"),
            code=step.name,
            remark=_("no decision needed"),
            said=said,
            is_data=True,
            key=key,
            at=step.at,
            took=_step_took(step),
        )
    return Entry(
        "message-square",
        _replaced_title(source.asked.get(call)),
        code=step.name,
        notes=[_("The agent was told:")],
        said=said,
        key=key,
        at=step.at,
    )


def _replaced_title(task: ReviewTask | None) -> str:
    outcome = getattr(task, "outcome", None)
    if outcome is not None and outcome.verdict == Verdict.RESPOND:
        return _("Answered in place of")
    return _("Did not run")


def _node_finished(step: RunStep) -> Entry | None:
    if step.name.startswith("__"):
        return None
    return Entry(
        "workflow",
        _("Step finished"),
        code=step.name,
        said=_shortened(step.text),
        key=f"step-{step.pk}",
        at=step.at,
    )


def _went_wrong(step: RunStep) -> Entry:
    return Entry(
        "octagon-alert",
        _("Error"),
        tone="danger",
        code=step.name,
        said=_shortened(step.text),
        key=f"step-{step.pk}",
        at=step.at,
    )


def _attempt_notes(execution: ToolExecution) -> list[str]:
    notes = [_("Attempt %(count)s.") % {"count": execution.attempt}] if execution.attempt > 1 else []
    if execution.grant == ToolExecution.Grant.CONDITION:
        notes.append(_("The agent's own condition said that nobody need be asked."))
    if execution.status == ExecutionStatus.RAISED:
        notes.append(_("It may have taken effect before it failed."))
    return notes


def _took(execution: ToolExecution) -> dt.timedelta | None:
    return execution.finished_at - execution.started_at if execution.finished_at else None


def _step_took(step: RunStep) -> dt.timedelta | None:
    return None if step.duration_ms is None else dt.timedelta(milliseconds=step.duration_ms)


def _shown(result: str) -> str:
    """Return a canonical result as people read it: a text as itself, anything else as it is stored."""
    if not result:
        return ""
    value = decode(result)
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return str(value["content"])
    return value if isinstance(value, str) else result


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SAID else text[:LONGEST_SAID] + "…"


def _data(step: RunStep) -> dict[str, Json]:
    try:
        data = decode(step.data) if step.data else {}
    except ValueError:  # the runtime cuts very long details short
        return {}
    return data if isinstance(data, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


_ENDS = {
    ExecutionStatus.SUCCEEDED: ("circle-check", gettext_lazy("Tool ran"), "ok"),
    ExecutionStatus.RAISED: ("octagon-alert", gettext_lazy("Tool failed"), "danger"),
    ExecutionStatus.SUSPENDED: ("circle-pause", gettext_lazy("Tool paused inside"), "neutral"),
    ExecutionStatus.ASSERTED: ("user-check", gettext_lazy("Said to have happened"), "ok"),
    ExecutionStatus.ABANDONED: ("circle-question-mark", gettext_lazy("Outcome unknown, given up"), "warn"),
}
