"""What an agent's author says of risk, queue and expiry reaches the card, and never outweighs a policy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents_runtime.listings import Hints, problem_with
from reviewer.models import Policy, ReviewTask
from reviewer.models.queues import Risk
from tests.cast import Cast
from tests.deciding.making import pause_run, refund
from tests.runtime.driving import start


def test_a_hint_counts_where_no_policy_matches(cast: Cast) -> None:
    request = replace(refund(), tool="wipe", risk="high", queue=cast.payments.slug)
    task = pause_run(request, by=cast.developer, agent="unknown").tasks.get()
    assert (task.queue, task.risk, task.policy_label) == (cast.payments, "high", "the agent's author")


def test_a_hint_of_a_queue_that_does_not_exist_goes_to_the_default_one(cast: Cast) -> None:
    request = replace(refund(), tool="wipe", queue="nowhere")
    task = pause_run(request, by=cast.developer, agent="unknown").tasks.get()
    assert (task.queue, task.risk, task.policy_label) == (cast.general, "medium", "default v1")


@pytest.mark.parametrize("hinted", ["", *Risk.values])
def test_a_hint_can_raise_the_risk_of_a_policy_and_never_lower_it(cast: Cast, hinted: str) -> None:
    Policy.objects.create(name="wiping", tool="wipe", queue=cast.payments, risk="high")
    request = replace(refund(), tool="wipe", risk=hinted, queue=cast.general.slug)
    task = pause_run(request, by=cast.developer, agent="unknown").tasks.get()
    assert (task.queue, task.policy_label) == (cast.payments, "wiping v1")
    assert task.risk == ("critical" if hinted == "critical" else "high")


@pytest.mark.usefixtures("runtime")
def test_what_a_policy_of_an_agent_says_reaches_the_card_of_a_run() -> None:
    run = start("refunds", {"order_id": "A-1043", "complaint": "The lamp arrived broken."})
    task = ReviewTask.objects.get(run=run)
    assert (task.tool, task.risk, task.policy_label) == ("issue_refund", "high", "the agent's author")
    assert task.description == "The money leaves the account as soon as this is approved."


@pytest.mark.parametrize(
    ("hints", "word"),
    [
        (Hints(risk="deadly"), "deadly"),
        (Hints(queue="Pay ments"), "short name"),
        (Hints(expires_after=0), "seconds"),
        (Hints(expires_after=60, on_expiry="approve"), "never approves"),
        (Hints(on_expiry="reject"), "not when"),
    ],
)
def test_a_hint_that_means_nothing_is_refused(hints: Hints, word: str) -> None:
    assert word in problem_with(hints)
    assert problem_with(Hints("high", "payments", 60, "reject")) == problem_with(Hints()) == ""
