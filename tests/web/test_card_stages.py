"""A card at every stage: what happened, what is true now, and only the ways on that there are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from agents_runtime.canonical import encode
from agents_runtime.states import ExecutionStatus, PauseStatus, RunStatus
from reviewer import claims
from reviewer.models import ReviewTask
from tests.cast import Cast
from tests.deciding.making import REJECT, pause_run, question
from tests.deciding.making import refund as plain_refund
from tests.web.markup import Markup, read
from tests.web.stories import EDITED, attempt, close, decide, deliver, open_task, run_becomes

ClientOf = Callable[..., Client]
Look = Callable[..., Markup]


@pytest.fixture
def look(cast: Cast, client_of: ClientOf) -> Look:
    """Open a task's page as somebody, the reviewer unless said."""

    def looked(task: ReviewTask, who: str = "reviewer", query: str = "") -> Markup:
        response = client_of(cast.people[who]).get(f"/tasks/{task.pk}/{query}")
        assert response.status_code == 200
        page = read(response)
        assert page.inline == []
        return page

    return looked


def offers(page: Markup) -> set[str]:
    """Return the verdicts that the bar offers, as buttons or links."""
    buttons = {element.attributes["value"] for element in page.all("input", name="verdict")}
    links = {href.split("verdict=")[1].split("&")[0] for href in page.values("href") if "?verdict=" in href}
    return buttons | links


def test_an_open_card_shows_arguments_words_digest_and_the_allowed_actions(cast: Cast, look: Look) -> None:
    task = open_task(cast)

    page = look(task)

    assert "Refund 18.40 for order A-1001" in page.text
    assert "The tool is called once, with exactly these 3 arguments." in page.text
    assert "Nobody has checked them." in page.text
    assert "The customer was charged twice." in page.text
    assert task.short_digest in page.text
    assert task.policy_label in page.text
    assert offers(page) == {"approve", "edit", "reject"}


def test_what_an_agent_wrote_stays_text(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast, said="<img src=x onerror=alert(1)>\u202eevil")

    body = client_of(cast.reviewer).get(f"/tasks/{task.pk}/").content.decode()

    assert "<img" not in body
    assert "&lt;img src=x onerror=alert(1)&gt;" in body
    assert "U+202E" in body


def test_a_card_held_by_another_can_be_read_but_not_decided(cast: Cast, look: Look) -> None:
    task = open_task(cast)
    claims.claim(task.pk, by=cast.reviewer2)

    page = look(ReviewTask.objects.get(pk=task.pk))

    assert "Claimed by Tom O." in page.text
    assert offers(page) == set()


def test_ones_own_claim_counts_down_and_can_be_given_back(cast: Cast, look: Look) -> None:
    task = open_task(cast)
    claims.claim(task.pk, by=cast.reviewer)

    page = look(task)

    assert page.has("data-claim-until")
    assert page.all("form", action=f"/tasks/{task.pk}/release/")


def test_whoever_started_the_run_only_watches(cast: Cast, look: Look) -> None:
    page = look(open_task(cast), "developer")

    assert "Whoever started a run cannot decide its tasks." in page.text
    assert offers(page) == set()


def test_an_auditor_only_reads(cast: Cast, look: Look) -> None:
    page = look(open_task(cast), "auditor")

    assert "Only members of Payments can decide its tasks." in page.text
    assert offers(page) == set()


def test_a_critical_card_takes_a_second_step(cast: Cast, look: Look) -> None:
    task = open_task(cast)
    ReviewTask.objects.filter(pk=task.pk).update(risk="critical")

    first, second = look(task), look(task, query="?verdict=approve")

    assert not first.all("input", name="verdict", value="approve")
    assert "You are about to approve a critical action" in second.text
    assert second.all("input", name="verdict", value="approve")


def test_a_card_with_one_way_to_answer_shows_its_form_at_once(cast: Cast, look: Look) -> None:
    task = pause_run(question("Which tax rule?"), by=cast.developer).tasks.get()

    page = look(task)

    assert "Which tax rule?" in page.text
    assert page.has("data-draft")
    assert "Send answer" in page.text


def test_a_decided_card_shows_what_was_submitted(cast: Cast, look: Look) -> None:
    task = decide(open_task(cast), cast, REJECT, reason_code="not_proven", comment="Asked payments")

    page = look(task, "reviewer2")

    assert "Rejected by Ines H. : Not proven" in page.text or "by Ines H.: Not proven" in page.text
    assert "Not this one" in page.text
    assert "Asked payments" in page.text
    assert "It goes to the agent as soon as a worker is free." in page.text
    assert offers(page) == set()


def test_an_edit_shows_its_difference(cast: Cast, look: Look) -> None:
    page = look(decide(open_task(cast), cast, EDITED))

    assert [element.tag for element in page.elements if element.tag in {"del", "ins"}] == ["del", "ins"]


def test_a_decision_in_a_batch_waits_for_the_rest(cast: Cast, look: Look) -> None:
    pause = pause_run(plain_refund(0), plain_refund(1, order="B-2"), by=cast.developer)
    task = decide(pause.tasks.get(position=0), cast)

    assert "1 more action of this pause has to be decided." in look(task).text


def test_a_decision_waits_for_a_slow_sibling(cast: Cast, look: Look) -> None:
    slow, task = open_task(cast, order="A-1"), open_task(cast, order="A-2")
    ReviewTask.objects.filter(pk=task.pk).update(run=slow.run)
    task.pause.run = slow.run
    task.pause.save()
    decide(slow, cast)
    deliver(slow)

    page = look(decide(ReviewTask.objects.get(pk=task.pk), cast))

    assert "Another action of this run is still at work." in page.text


def test_a_delivery_under_way_shows_that_it_works(cast: Cast, look: Look) -> None:
    task = decide(open_task(cast), cast)
    deliver(task)
    attempt(task, ExecutionStatus.STARTED)

    page = look(task)

    assert "Delivering" in page.text
    assert page.all(role="progressbar")


def test_an_executed_card_says_so(cast: Cast, look: Look) -> None:
    task = decide(open_task(cast), cast)
    attempt(task, ExecutionStatus.SUCCEEDED)
    deliver(task, ends=PauseStatus.DELIVERED)

    page = look(task)

    assert "Executed" in page.text
    assert "The tool answered" in page.text


def test_a_rejection_that_reached_the_agent_says_that_nothing_ran(cast: Cast, look: Look) -> None:
    task = decide(open_task(cast), cast, REJECT)
    deliver(task, ends=PauseStatus.DELIVERED)

    assert "Nothing was run. The agent was told why." in look(task).text


@pytest.mark.parametrize(("who", "may"), [("lead", True), ("reviewer", True), ("auditor", False)])
def test_approved_but_failed_offers_retry_and_cancel_to_those_who_may(
    cast: Cast, look: Look, who: str, may: bool
) -> None:
    task = decide(open_task(cast), cast)
    attempt(task, ExecutionStatus.RAISED, error="409 balance_locked")
    deliver(task, ends=PauseStatus.FAILED, error="409 balance_locked")

    page = look(task, who)

    assert "Approved, but the tool failed" in page.text
    assert "409 balance_locked" in page.text
    actions = set(page.values("action"))
    assert ({f"/runs/{task.run_id}/retry/", f"/runs/{task.run_id}/cancel/"} <= actions) is may
    assert offers(page) == set()


def test_a_decided_card_of_a_failed_run_offers_retry(cast: Cast, look: Look) -> None:
    task = decide(open_task(cast), cast)
    run_becomes(task, RunStatus.FAILED, error="The checkpoint could not be read.")

    page = look(task, "lead")

    assert "Decided, but the run failed" in page.text
    assert f"/runs/{task.run_id}/retry/" in page.values("action")


def test_in_doubt_offers_three_choices_and_never_retries_by_itself(cast: Cast, look: Look) -> None:
    task = decide(open_task(cast), cast)
    attempt(task, ExecutionStatus.STARTED, doubt=True)
    deliver(task, ends=PauseStatus.IN_DOUBT)

    page = look(task, "lead")

    assert "In doubt" in page.text
    outcomes = [element.attributes["value"] for element in page.all("button", name="outcome")]
    assert sorted(outcomes) == ["happened", "run_again", "stop"]
    assert page.all("textarea", name="result")


def test_a_refused_answer_points_to_the_card_that_asks_again(cast: Cast, look: Look) -> None:
    task = decide(open_task(cast, order="A-1"), cast, EDITED)
    deliver(task, ends=PauseStatus.REFUSED)
    newer = open_task(cast, order="A-2")
    ReviewTask.objects.filter(pk=newer.pk).update(
        previous=task,
        refusal='[{"message":"not a valid amount","pointer":"/edited_action/args/amount"}]',
        refused_answer=encode(EDITED),
    )

    old, new, form = look(task), look(newer), look(newer, query="?verdict=edit")

    assert "The agent refused this answer" in old.text
    assert f"/tasks/{newer.pk}/" in old.values("href")
    assert "not a valid amount" in new.text
    assert offers(new) == {"approve", "edit", "reject"}
    amounts = [field for field in form.all("input", value="9.20") if field.attributes.get("type") == "text"]
    assert [field.attributes.get("aria-invalid") for field in amounts] == ["true"]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (PauseStatus.SUPERSEDED, "Superseded"),
        (PauseStatus.WITHDRAWN, "Withdrawn"),
        (PauseStatus.EXPIRED, "Expired"),
    ],
)
def test_a_card_that_closed_undecided_says_that_nothing_ran(
    cast: Cast, look: Look, status: PauseStatus, word: str
) -> None:
    page = look(close(open_task(cast), status))

    assert word in page.text
    assert "othing was run from this card." in page.text
    assert offers(page) == set()
