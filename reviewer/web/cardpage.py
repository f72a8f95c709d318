"""Everything one card needs to be drawn for one reader: built from the task, its story and an open form.

Cards themselves (fields, arguments, diffs) come from ``reviewer.cards``; this room only puts them together.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents_runtime.canonical import Json, decode
from agents_runtime.models import ToolExecution
from reviewer import cards, queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.cards import render as draw
from reviewer.models import Decision, ReviewTask, Verdict
from reviewer.models.queues import Risk
from reviewer.shown import card_of
from reviewer.web.reasons import REASONS, Reason, reason_words
from reviewer.web.rows import holder_of, last_decision
from reviewer.web.stages import Stage, duration_words, executions_of, stage_of

LONG_SAID = 420
LONG_SAID_LINES = 5
EARLIER_SHOWN = 10


@dataclass(frozen=True)
class Action:
    """One way to decide, as the bar offers it. ``direct``: the button decides; otherwise it opens a form."""

    verdict: str
    label: str
    key: str
    icon: str
    style: str
    direct: bool


@dataclass(frozen=True)
class Notice:
    """One fact above the card; ``kept`` is the reviewer's own text, where the form it stood in is gone."""

    tone: str
    icon: str
    title: str
    text: str = ""
    kept: str = ""
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class Fact:
    """One line of what happened after the decision."""

    icon: str
    text: str
    at: dt.datetime | None = None


@dataclass(frozen=True)
class Typed:
    """What the reviewer sent with a form beside the answer itself."""

    reason_code: str = ""
    reason_error: str = ""
    comment: str = ""


@dataclass(frozen=True)
class CardPage:
    """A card for one reader. Without a ``task`` it is the empty pane."""

    task: ReviewTask | None = None
    title: str = ""
    stage: Stage | None = None
    holds: bool = False
    can_claim: bool = False
    can_steer: bool = False
    actions: Sequence[Action] = ()
    verdict: str = ""
    alone: bool = False
    fields: SafeString | None = None
    diff: SafeString | None = None
    send: Action | None = None
    bar_note: str = ""
    arguments: SafeString | None = None
    what_title: str = ""
    what_note: str = ""
    said: SafeString | None = None
    said_is_long: bool = False
    said_length: int = 0
    description: SafeString | None = None
    decision: Decision | None = None
    reason: str = ""
    changes: SafeString | None = None
    answer: SafeString | None = None
    story: Sequence[Fact] = ()
    tool_error: SafeString | None = None
    execution: ToolExecution | None = None
    newer: ReviewTask | None = None
    earlier: Sequence[Decision] = ()
    reasons: Sequence[Reason] = REASONS
    typed: Typed = Typed()
    notice: Notice | None = None
    origin: str = ""
    beside: bool = False
    after: Decision | None = None


def build_page(
    task: ReviewTask,
    reader: User,
    *,
    wanted: str = "",
    reading: cards.Reading | None = None,
    typed: Typed | None = None,
    notice: Notice | None = None,
    origin: str = "",
    beside: bool = False,
    after: Decision | None = None,
) -> CardPage:
    """Build the page of one card: ``wanted`` opens that form, ``reading`` shows a form as it was sent.

    ``origin`` is where the reader goes on to afterwards; ``beside`` says that the card lies beside the list.
    """
    card = card_of(task)
    executions = executions_of(task)
    stage = stage_of(task, reader, executions=executions)
    decision = None if task.is_open else last_decision(task)
    verdict, fields, diff = (
        _open_form(card, task, wanted=wanted, reading=reading) if stage.key == "open" else _NO_FORM
    )
    actions = _actions(card, task) if stage.key == "open" else []
    last = executions[-1] if executions else None
    return CardPage(
        task=task,
        title=task.title,
        stage=stage,
        holds=_holds(task, reader),
        can_claim=stage.key == "open" and holder_of(task) is None,
        can_steer=permissions.can_steer_run(reader, requested_by=task.run.requested_by),
        actions=actions,
        verdict=verdict,
        alone=len(actions) == 1 and not actions[0].direct,
        fields=fields,
        diff=diff,
        send=_send_action(verdict, actions),
        bar_note=_bar_note(task, verdict),
        arguments=draw.render_arguments(card),
        what_title=_what_title(task),
        what_note=_what_note(task, actions),
        said=draw.render_agent_text(task.said) if task.said else None,
        said_is_long=len(task.said) > LONG_SAID or task.said.count("\n") > LONG_SAID_LINES,
        said_length=len(task.said),
        description=draw.render_agent_text(task.description) if task.description else None,
        decision=decision,
        reason=reason_words(decision.reason_code) if decision and decision.reason_code else "",
        changes=_changes(card, decision),
        answer=_answer(task, decision),
        story=_story(task, decision, executions),
        tool_error=draw.render_agent_text(last.error)
        if last and last.error and stage.key == "failed"
        else None,
        execution=last,
        newer=_newer(task),
        earlier=_earlier(task, reader),
        typed=typed or Typed(),
        notice=notice or _refusal_notice(task),
        origin=origin,
        beside=beside,
        after=after,
    )


_NO_FORM: tuple[str, SafeString | None, SafeString | None] = ("", None, None)


def _holds(task: ReviewTask, reader: User) -> bool:
    holder = holder_of(task)
    return holder is not None and holder.pk == reader.pk


def _open_form(
    card: cards.Card, task: ReviewTask, *, wanted: str, reading: cards.Reading | None
) -> tuple[str, SafeString | None, SafeString | None]:
    if reading is not None:
        diff = draw.render_diff(reading.changes) if reading.verdict == "edit" else None
        return reading.verdict, draw.render_form(reading.form, reading.errors), diff
    if wanted == Verdict.APPROVE and task.risk == Risk.CRITICAL and card.choice("approve"):
        return "approve", SafeString('<input type="hidden" name="verdict" value="approve">'), None
    if not wanted and len(card.choices) == 1 and not card.choices[0].direct:
        wanted = card.choices[0].verdict
    choice = card.choice(wanted) if wanted else None
    if choice is None or choice.direct:
        return _NO_FORM
    refused = decode(task.refused_answer)
    draft = refused if refused is not None and cards.verdict_of(refused) == wanted else None
    form = card.open(wanted, draft=draft) if draft is not None else card.open(wanted)
    diff = draw.render_diff(card.changes(draft) if draft is not None else ()) if wanted == "edit" else None
    return wanted, draw.render_form(form), diff


_STYLES = {
    "approve": ("a", "check", "btn--primary"),
    "edit": ("e", "pencil", ""),
    "reject": ("r", "x", "btn--reject"),
    "respond": ("m", "message-square", ""),
    "answer": ("m", "message-square", ""),
}


def _labels() -> dict[str, str]:
    return {
        "approve": _("Approve"),
        "edit": _("Edit"),
        "reject": _("Reject"),
        "respond": _("Respond"),
        "answer": _("Answer"),
    }


def _actions(card: cards.Card, task: ReviewTask) -> list[Action]:
    labels = _labels()
    actions: list[Action] = []
    for choice in card.choices:
        key, icon, style = _STYLES.get(choice.verdict, ("", "circle-dot", ""))
        is_second_step = choice.verdict == "approve" and task.risk == Risk.CRITICAL
        actions.append(
            Action(
                verdict=choice.verdict,
                label=labels.get(choice.verdict) or choice.label or choice.verdict,
                key=key,
                icon=icon,
                style=style or ("btn--primary" if not actions else ""),
                direct=choice.direct and not is_second_step,
            )
        )
    return actions


def _send_action(verdict: str, actions: Sequence[Action]) -> Action | None:
    if not verdict:
        return None
    labels = {
        "approve": _("Approve"),
        "edit": _("Approve with changes"),
        "reject": _("Reject"),
        "respond": _("Send answer"),
        "answer": _("Send answer"),
    }
    chosen = next((action for action in actions if action.verdict == verdict), None)
    label = labels.get(verdict) or (chosen.label if chosen else verdict)
    style = "btn--danger" if verdict == "reject" else "btn--primary"
    return Action(verdict, label, "", chosen.icon if chosen else "check", style, direct=True)


def _bar_note(task: ReviewTask, verdict: str) -> str:
    notes = {
        "edit": _("The tool runs with your version."),
        "reject": _("Rejecting runs nothing."),
        "respond": _("An answer approves no action."),
        "answer": _("The agent gets exactly this."),
    }
    return notes.get(verdict) or (
        _("The agent gets what you answer.") if not task.tool else _("What you see is what is sent.")
    )


def _what_title(task: ReviewTask) -> str:
    titles = {
        ReviewTask.Kind.QUESTION: _("What the agent asks"),
        ReviewTask.Kind.CONTINUE: _("Where the run stands"),
    }
    return titles.get(
        ReviewTask.Kind(task.kind), _("What will happen") if task.is_open else _("What was proposed")
    )


def _what_note(task: ReviewTask, actions: Sequence[Action]) -> str:
    if not task.is_open:
        return _("The card as it stood when it closed.")
    if task.kind == ReviewTask.Kind.QUESTION:
        return _("Sent by the agent. Nobody has checked it.")
    if task.kind == ReviewTask.Kind.CONTINUE:
        return _("It waits before its next step.")
    if actions and all(action.verdict not in {"approve", "edit"} for action in actions):
        return _("The tool itself does not run: your answer stands in for its result.")
    arguments = task.arguments
    count = len(arguments) if isinstance(arguments, dict) else 0
    if not count:
        return _("The tool is called once, with no arguments.")
    return ngettext(
        "The tool is called once, with exactly this %(n)s argument.",
        "The tool is called once, with exactly these %(n)s arguments.",
        count,
    ) % {"n": count}


def _changes(card: cards.Card, decision: Decision | None) -> SafeString | None:
    if decision is None or decision.verdict != Verdict.EDIT:
        return None
    return draw.render_diff(card.changes(decode(decision.answer)))


def _answer(task: ReviewTask, decision: Decision | None) -> SafeString | None:
    if decision is None or decision.verdict in {Verdict.APPROVE, Verdict.EDIT}:
        return None
    answer: Json = decode(decision.answer)
    if isinstance(answer, dict) and decision.verdict in {Verdict.REJECT, Verdict.RESPOND}:
        answer = {name: value for name, value in answer.items() if name != "type"}
        return draw.render_value({"type": "object"}, answer) if answer else None
    return draw.render_value(task.schema, answer)


def _story(task: ReviewTask, decision: Decision | None, executions: Sequence[ToolExecution]) -> list[Fact]:
    if decision is None:
        return []
    facts = []
    if task.pause.delivery_started_at:
        facts.append(Fact("send", _("The run was resumed with it"), task.pause.delivery_started_at))
    for execution in executions:
        facts.append(Fact("play", _("Call %(n)s started") % {"n": execution.attempt}, execution.started_at))
        if execution.finished_at:
            facts.append(_ending(execution))
    return facts


def _ending(execution: ToolExecution) -> Fact:
    words = {
        "succeeded": ("circle-check", _("The tool answered")),
        "raised": ("octagon-alert", _("The tool raised an error")),
        "suspended": ("circle-pause", _("The tool paused to ask something itself")),
        "asserted": ("user-check", _("A person said that it happened")),
        "abandoned": ("ban", _("Given up; its outcome is unknown")),
    }
    icon, text = words.get(execution.status, ("circle-dot", execution.get_status_display()))
    took = duration_words(execution)
    return Fact(
        icon, f"{text}, {took}" if took and execution.status == "succeeded" else text, execution.finished_at
    )


def _newer(task: ReviewTask) -> ReviewTask | None:
    return ReviewTask.objects.filter(previous=task).first()


def _earlier(task: ReviewTask, reader: User) -> list[Decision]:
    visible = queries.visible_tasks(reader).filter(run=task.run_id).exclude(pk=task.pk)
    decisions = Decision.objects.filter(task__in=visible.values("pk")).select_related("person", "task")
    return list(decisions.order_by("-decided_at")[:EARLIER_SHOWN])


def _refusal_notice(task: ReviewTask) -> Notice | None:
    refusal = decode(task.refusal)
    if not refusal or not task.is_open:
        return None
    problems = [
        f"{item['pointer']}: {item['message']}" if item["pointer"] else item["message"] for item in refusal
    ]
    return Notice(
        "warn",
        "triangle-alert",
        _("The agent refused the last answer"),
        _("Its own type check did not take it. Nothing was run."),
        problems=problems,
    )
