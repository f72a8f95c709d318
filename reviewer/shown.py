"""The card of a task, made from what was stored when it opened: the same for every door and every check."""

from __future__ import annotations

from agents_runtime.canonical import decode
from reviewer import cards
from reviewer.models import ReviewTask


def card_of(task: ReviewTask) -> cards.Card:
    """Return the card that people decide on; its title is the one stored with the task."""
    return cards.build(
        cards.CardRequest(
            card_id=str(task.pk),
            tool=task.tool,
            args=task.arguments,
            response_schema=task.schema,
            args_schema=decode(task.args_schema),
            description=task.description,
            risk=task.risk,
            policy=task.policy_label,
        )
    )
