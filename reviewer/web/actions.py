"""The ways to decide, as the bar of a card offers them: labels, keys, and which one is primary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reviewer import cards
from reviewer.cards import unicode
from reviewer.models import ReviewTask
from reviewer.models.queues import Risk


@dataclass(frozen=True)
class Action:
    """One way to decide, as the bar offers it. ``direct``: the button decides; otherwise it opens a form."""

    verdict: str
    label: str
    key: str
    icon: str
    style: str
    direct: bool


LONGEST_LABEL = 40
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


def actions_of(card: cards.Card, task: ReviewTask) -> list[Action]:
    """Return the ways to decide that the card allows, in the order in which the bar shows them."""
    labels = _labels()
    actions: list[Action] = []
    for choice in card.choices:
        key, icon, style = _STYLES.get(choice.verdict, ("", "circle-dot", ""))
        is_second_step = choice.verdict == "approve" and task.risk == Risk.CRITICAL
        actions.append(
            Action(
                verdict=choice.verdict,
                label=_label(choice, labels),
                key=key,
                icon="arrow-right" if task.kind == ReviewTask.Kind.CONTINUE else icon,
                style=style or ("btn--primary" if not actions else ""),
                direct=choice.direct and not is_second_step,
            )
        )
    return actions


def _label(choice: cards.Choice, labels: dict[str, str]) -> str:
    """Return what a button says: our word for it, or the agent's where that is the only answer there is."""
    if choice.verdict == "answer" and choice.direct and choice.label:
        return unicode.visible(choice.label)[:LONGEST_LABEL]
    return labels.get(choice.verdict) or choice.label or choice.verdict


def send_action(verdict: str, actions: Sequence[Action], *, changes: int = 0) -> Action | None:
    """Return the button that sends an open form; it says what it does, and how much an edit changes."""
    if not verdict:
        return None
    labels = {
        "approve": _("Approve"),
        "edit": _edit_label(changes),
        "reject": _("Reject"),
        "respond": _("Send answer"),
        "answer": _("Send answer"),
    }
    chosen = next((action for action in actions if action.verdict == verdict), None)
    label = labels.get(verdict) or (chosen.label if chosen else verdict)
    style = "btn--danger" if verdict == "reject" else "btn--primary"
    return Action(verdict, label, "", chosen.icon if chosen else "check", style, direct=True)


def _edit_label(changes: int) -> str:
    if not changes:
        return _("Approve with changes")
    return ngettext("Approve with %(n)s change", "Approve with %(n)s changes", changes) % {"n": changes}


def bar_note(task: ReviewTask, verdict: str) -> str:
    """Return what stands under the digest: what sending means."""
    notes = {
        "edit": _("The tool runs with your version."),
        "reject": _("Rejecting runs nothing."),
        "respond": _("An answer approves no action."),
        "answer": _("The agent gets exactly this."),
    }
    if task.kind == ReviewTask.Kind.CONTINUE:
        return _("The run goes on with its next step.")
    return notes.get(verdict) or (
        _("The agent gets what you answer.") if not task.tool else _("What you see is what is sent.")
    )
