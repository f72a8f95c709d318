"""Everything one card needs to be drawn for one reader: built from the task, its story and an open form.

Cards themselves (fields, arguments, diffs) come from ``reviewer.cards``; this room only puts them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents_runtime.canonical import decode
from agents_runtime.models import ToolExecution
from reviewer import cards, queries
from reviewer.accounts import permissions
from reviewer.accounts.models import User
from reviewer.cards import render as draw
from reviewer.cards import unicode
from reviewer.models import Decision, ReviewTask
from reviewer.shown import card_of
from reviewer.web.actions import Action, actions_of, bar_note, send_action
from reviewer.web.asked_before import AskedBefore, asked_before
from reviewer.web.cardforms import OpenForm, open_form
from reviewer.web.deadlines import deadline_words
from reviewer.web.decided import (
    AsShown,
    Fact,
    answer_of,
    as_shown,
    drawn_changes,
    final_arguments,
    story_of,
)
from reviewer.web.hidden_parts import HiddenParts, Unread, starts_from_refused
from reviewer.web.reasons import REASONS, Reason, reason_words
from reviewer.web.rows import holder_of, last_decision
from reviewer.web.stages import Stage, executions_of, stage_of

EARLIER_SHOWN = 10


@dataclass(frozen=True)
class Notice:
    """One fact above the card; ``kept`` is the reviewer's own text, where the form it stood in is gone.

    ``names_unread`` adds the parts of the card that are still hidden, each with what opens it.
    """

    tone: str
    icon: str
    title: str
    text: str = ""
    kept: str = ""
    problems: Sequence[str] = ()
    names_unread: bool = False


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
    version: str = ""
    send: Action | None = None
    bar_note: str = ""
    arguments: SafeString | None = None
    deadline: str = ""
    unread: Unread | None = None
    proposal_beside: bool = False
    shown: AsShown | None = None
    before: AskedBefore | None = None
    siblings: int = 1
    what_title: str = ""
    what_note: str = ""
    said: SafeString | None = None
    hidden: int = 0
    description: SafeString | None = None
    decision: Decision | None = None
    reason: str = ""
    changes: SafeString | None = None
    answer: SafeString | None = None
    final: SafeString | None = None
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
    landing: Sequence[str] = (),
) -> CardPage:
    """Build the page of one card: ``wanted`` opens that form, ``reading`` shows a form as it was sent.

    ``origin`` is where the reader goes on to afterwards; ``beside`` says that the card lies beside the list;
    ``landing`` are the parts that were just opened: the first of them gets the focus.
    """
    card = card_of(task)
    executions = executions_of(task)
    stage = stage_of(task, reader, executions=executions)
    decision = None if task.is_open else last_decision(task)
    is_open = stage.key == "open"
    form = open_form(card, task, wanted=wanted, reading=reading) if is_open else OpenForm()
    actions = actions_of(card, task) if is_open else []
    has_form = form.fields is not None
    parts = HiddenParts(task, card, reader, origin=origin, has_form=has_form) if task.is_open else None
    last = executions[-1] if executions else None
    return CardPage(
        task=task,
        title=task.title,
        stage=stage,
        holds=_holds(task, reader),
        can_claim=is_open and holder_of(task) is None,
        can_steer=permissions.can_steer_run(reader, run_id=task.run_id, requested_by=task.run.requested_by),
        actions=actions,
        verdict=form.verdict,
        alone=len(actions) == 1 and not actions[0].direct,
        fields=form.fields,
        diff=form.diff,
        version=form.version,
        send=send_action(form.verdict, actions, changes=form.changes),
        bar_note=bar_note(task, form.verdict),
        deadline=deadline_words(task, card),
        arguments=parts.arguments(landing) if parts else draw.render_arguments(card),
        unread=parts.unread() if parts and is_open else None,
        proposal_beside=bool(
            parts
            and is_open
            and (parts.unread_pointers or (landing and (reading or starts_from_refused(task))))
        ),
        shown=None if task.is_open else as_shown(task, decision, reader),
        before=asked_before(task, reader),
        siblings=task.pause.tasks.count(),
        what_title=_what_title(task, actions or actions_of(card, task)),
        what_note=_what_note(task, actions),
        hidden=card.hidden + unicode.count(task.said),
        said=draw.render_prose(task.said) if task.said else None,
        description=draw.render_prose(task.description) if task.description else None,
        decision=decision,
        reason=reason_words(decision.reason_code) if decision and decision.reason_code else "",
        changes=drawn_changes(task, decision),
        answer=answer_of(task, decision),
        final=final_arguments(card, decision),
        story=story_of(task, decision, executions),
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


def _holds(task: ReviewTask, reader: User) -> bool:
    holder = holder_of(task)
    return holder is not None and holder.pk == reader.pk


def _what_title(task: ReviewTask, actions: Sequence[Action]) -> str:
    if not task.is_open:
        return _("What was asked") if _only_asks(task, actions) else _("What was proposed")
    if task.kind == ReviewTask.Kind.CONTINUE:
        return _("Where the run stands")
    return _("What the agent asks") if _only_asks(task, actions) else _("What will happen")


def _only_asks(task: ReviewTask, actions: Sequence[Action]) -> bool:
    """Say whether nothing would run whatever is answered."""
    if task.kind == ReviewTask.Kind.QUESTION:
        return True
    return bool(actions) and all(action.verdict not in {"approve", "edit"} for action in actions)


def _what_note(task: ReviewTask, actions: Sequence[Action]) -> str:
    if not task.is_open:
        return _("The card as it stood when it closed.")
    if task.kind == ReviewTask.Kind.QUESTION:
        return _("Sent by the agent. Nobody has checked it.")
    if task.kind == ReviewTask.Kind.CONTINUE:
        return _("It waits before its next step.")
    if _only_asks(task, actions):
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


def _newer(task: ReviewTask) -> ReviewTask | None:
    return ReviewTask.objects.filter(previous=task).first()


def _earlier(task: ReviewTask, reader: User) -> list[Decision]:
    visible = queries.visible_tasks(reader).filter(run=task.run_id).exclude(pk=task.pk)
    decisions = Decision.objects.filter(task__in=visible.values("pk")).select_related("person", "task")
    return list(decisions.order_by("-decided_at")[:EARLIER_SHOWN])


def _place(pointer: str) -> str:
    """Say a JSON pointer as a path of keys."""
    return " › ".join(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def _refusal_notice(task: ReviewTask) -> Notice | None:
    refusal = decode(task.refusal)
    if not refusal or not task.is_open:
        return None
    problems = [
        f"{_place(item['pointer'])}: {item['message']}" if item["pointer"] else item["message"]
        for item in refusal
    ]
    return Notice(
        "warn",
        "triangle-alert",
        _("The agent refused the last answer"),
        _("Its own type check did not take it. Nothing was run. The form starts from that answer."),
        problems=problems,
    )
