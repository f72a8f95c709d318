"""Cards kept from request to request are made from the same as if each were made anew."""

from __future__ import annotations

import pytest
from django.utils import translation

from reviewer.cards import Card
from reviewer.models import ReviewTask
from reviewer.shown import card_of
from tests.cast import Cast
from tests.deciding.making import open_refund

pytestmark = pytest.mark.usefixtures("db")


def opened(task: ReviewTask, language: str) -> Card:
    """Return the card as a request in this language gets it."""
    with translation.override(language):
        return card_of(ReviewTask.objects.get(pk=task.pk))


def test_a_card_is_kept_for_the_requests_in_its_language_alone(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    assert opened(task, "en") is opened(task, "en")
    assert opened(task, "de") is not opened(task, "en")
    assert opened(task, "de").request == opened(task, "en").request


def test_a_card_is_that_of_its_own_task(cast: Cast) -> None:
    first, second = open_refund(by=cast.developer), open_refund(by=cast.developer)
    assert card_of(ReviewTask.objects.get(pk=first.pk)).request.card_id == str(first.pk)
    assert card_of(ReviewTask.objects.get(pk=second.pk)).request.card_id == str(second.pk)


@pytest.mark.parametrize("name", ["tool", "action", "description", "risk", "policy_label"])
def test_a_card_whose_task_was_read_otherwise_is_made_anew(cast: Cast, name: str) -> None:
    task = open_refund(by=cast.developer)
    before = card_of(ReviewTask.objects.get(pk=task.pk))
    changed = ReviewTask.objects.get(pk=task.pk)
    setattr(changed, name, '{"other": 1}' if name == "action" else "low" if name == "risk" else "other")
    assert card_of(changed).request != before.request
