"""The story of a real run tells things in the order in which they came about, also those of one moment."""

from __future__ import annotations

import pytest
from django.db import transaction

from reviewer.models import ReviewTask
from reviewer.timeline import tell
from tests.cast import Cast
from tests.runtime.driving import APPROVE, advance, call, give, pending, script, start

pytestmark = pytest.mark.usefixtures("runtime")


def test_what_led_to_a_pause_and_to_the_end_stands_before_it(cast: Cast) -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)], say="I shall pay."))

    def titles() -> list[str]:
        with transaction.atomic():
            return [str(entry.title) for entry in tell(cast.admin, run).entries if not entry.is_now]

    assert titles() == ["Started", "Model said", "Paused"]
    give(pending(run), APPROVE)
    advance(run)
    run.refresh_from_db()
    assert titles()[-3:] == ["Tool ran", "Model said", "Finished"]


def test_cards_that_came_together_wait_in_the_order_in_which_they_are_asked(cast: Cast) -> None:
    agents = {"t-per-call": 4, "t-batched": 4}
    for agent, count in agents.items():
        run = start(agent, script([call("pay", to=str(place), amount=place) for place in range(count)]))
        tasks = ReviewTask.objects.filter(run=run).order_by("created_at")
        assert [task.arguments["to"] for task in tasks] == [str(place) for place in range(count)]
        assert len({task.created_at for task in tasks}) == count
