"""Runs that are stuck: why each is, who sees it, and the ways out that are safe."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils.timezone import now

from agents_runtime import runs, thread_lock
from agents_runtime.models import AgentSpec, Pause, Run, ToolExecution
from agents_runtime.runs import Way, Why
from reviewer import decisions
from reviewer.accounts.models import User
from reviewer.models import AuditEvent, QueueMembership, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund, pause_run, refund

ClientOf = Callable[[User], Client]
LONG_AGO = timedelta(hours=1)


def stuck_run(cast: Cast, **changes: Any) -> Run:
    """Store a run with one open card, and change it behind everybody's back."""
    run = open_refund(by=cast.developer).run
    Run.objects.filter(pk=run.pk).update(updated_at=now() - LONG_AGO, **changes)
    return Run.objects.get(pk=run.pk)


def answered(run: Run) -> None:
    """Let the run's card be decided, without anybody to deliver it."""
    Pause.objects.filter(run=run).update(
        status="answered", answers='[{"type":"reject"}]', answered_at=now() - LONG_AGO
    )


def failed_pause(run: Run) -> None:
    """Let the run's tool fail after it was approved."""
    answered(run)
    for status in ("delivering", "failed"):
        Pause.objects.filter(run=run).update(status=status, delivery_epoch=1, error="the bank is closed")


def why(run: Run) -> tuple[Why, list[Way]] | None:
    """Return the reason and the ways of a run, as the page finds them."""
    found = runs.diagnose(list(runs.find_stuck(Run.objects.filter(pk=run.pk))))
    return (found[0].why, list(found[0].ways)) if found else None


def text_of(client: Client, path: str = "/stuck/") -> str:
    """Return the main part of a page."""
    response = client.get(path)
    assert response.status_code == 200, response.content[:500]
    return response.content.decode().split('id="main"')[1].split("</main>")[0]


def test_runs_that_wait_work_or_are_over_are_not_stuck(cast: Cast) -> None:
    waiting = stuck_run(cast)
    finished = stuck_run(cast, status="finished", finished_at=now())
    running = open_refund(by=cast.developer).run
    Run.objects.filter(pk=running.pk).update(status="running", updated_at=now())
    assert [why(run) for run in (waiting, finished, running)] == [None, None, None]


@pytest.mark.parametrize(
    ("trouble", "ways"),
    [
        ("tool", [Way.RETRY, Way.CANCEL]),
        ("step", [Way.RETRY, Way.CANCEL]),
        ("deaths", [Way.RETRY, Way.CANCEL]),
        ("batch", [Way.CANCEL]),
        ("checkpoint", [Way.CANCEL]),
        ("build", [Way.RETRY, Way.CANCEL]),  # it was let go on already
        ("agent", [Way.RETRY, Way.CANCEL]),  # it has come back since
    ],
)
def test_a_failed_run_offers_the_ways_that_its_trouble_leaves(
    cast: Cast, trouble: str, ways: list[Way]
) -> None:
    run = stuck_run(cast, status="failed", error="it failed", trouble=trouble)
    assert why(run) == (Why(trouble), ways)


def test_a_run_in_doubt_is_to_be_settled(cast: Cast) -> None:
    run = stuck_run(cast, status="in_doubt")
    assert why(run) == (Why.IN_DOUBT, [Way.SETTLE, Way.CANCEL])


def test_a_tool_that_failed_beside_open_cards_is_to_be_retried(cast: Cast) -> None:
    pause = pause_run(refund(), by=cast.developer)
    failed_pause(pause.run)
    assert why(pause.run) == (Why.TOOL, [Way.RETRY, Way.CANCEL])


def test_work_that_nobody_does_wakes_a_worker(cast: Cast) -> None:
    run = stuck_run(cast)
    ReviewTask.objects.filter(run=run).update(status="superseded", closed_at=now())
    Pause.objects.filter(run=run).update(status="superseded")
    Run.objects.filter(pk=run.pk).update(status="running")
    assert why(run) == (Why.UNWORKED, [Way.WAKE, Way.CANCEL])


def test_a_decision_that_lies_undelivered_is_delivered_again(cast: Cast) -> None:
    run = stuck_run(cast)
    answered(run)
    assert why(run) == (Why.UNDELIVERED, [Way.WAKE, Way.CANCEL])
    Run.objects.filter(pk=run.pk).update(updated_at=now())
    assert why(run) is None  # its message is on the way


def test_a_thread_that_is_held_for_long_says_so_and_one_at_work_does_not(
    committed_db: None, cast: Cast
) -> None:
    run = stuck_run(cast)
    answered(run)
    with thread_lock.hold(run.pk):
        assert why(run) == (Why.LOCKED, [Way.CANCEL])
        Run.objects.filter(pk=run.pk).update(updated_at=now() - timedelta(minutes=1))
        assert why(run) is None
    thread_lock.close()


def test_a_run_that_waits_and_asks_nobody_is_looked_at_again(cast: Cast) -> None:
    run = stuck_run(cast)
    Pause.objects.filter(run=run).update(status="superseded")
    assert why(run) == (Why.NO_TASK, [Way.WAKE, Way.CANCEL])


def test_a_waiting_run_of_another_build_is_told_before_it_stops(cast: Cast) -> None:
    run = stuck_run(cast, fingerprint="1" * 64, state='{"checkpoint_id":"c"}')
    AgentSpec.objects.filter(pk=run.agent_id).update(fingerprint="2" * 64)
    assert why(run) == (Why.BUILD, [Way.ACCEPT_BUILD, Way.CANCEL])


def test_a_waiting_run_whose_agent_is_gone_is_told(cast: Cast) -> None:
    run = stuck_run(cast)
    AgentSpec.objects.filter(pk=run.agent_id).update(is_listed=False)
    assert why(run) == (Why.AGENT, [Way.CANCEL])


def test_the_page_says_why_and_offers_each_way_as_a_button(cast: Cast, client_of: ClientOf) -> None:
    run = stuck_run(cast, status="failed", error="ValueError: no such order", trouble="step")
    page = text_of(client_of(cast.lead))
    assert run.short_id in page
    assert "A step of the agent failed" in page
    assert "no such order" in page
    assert f"/runs/{run.pk}/retry/" in page
    assert f"/runs/{run.pk}/cancel/" in page


def test_an_agents_error_cannot_pose_as_our_interface(cast: Cast, client_of: ClientOf) -> None:
    stuck_run(cast, status="failed", error="<b>safe</b>\u202e", trouble="step")
    page = text_of(client_of(cast.admin))
    assert "<b>safe</b>" not in page
    assert "\u202e" not in page


def test_admins_see_all_leads_those_of_their_queues_and_reviewers_nothing(
    cast: Cast, client_of: ClientOf
) -> None:
    run = stuck_run(cast, status="in_doubt")
    assert run.short_id in text_of(client_of(cast.admin))
    assert run.short_id in text_of(client_of(cast.lead))
    auditors = text_of(client_of(cast.auditor))
    assert run.short_id in auditors
    assert "Only to read" in auditors
    assert "<form" not in auditors
    for person in (cast.reviewer, cast.developer, cast.outsider):
        assert client_of(person).get("/stuck/").status_code == 403
    QueueMembership.objects.filter(user=cast.lead, queue=cast.payments).update(leads=False)
    assert run.short_id not in text_of(client_of(cast.lead))


def test_the_navigation_leads_there_for_those_who_may_see_it(cast: Cast, client_of: ClientOf) -> None:
    for person, sees in ((cast.admin, 1), (cast.lead, 1), (cast.auditor, 1), (cast.reviewer, 0)):
        assert client_of(person).get("/").content.decode().count('href="/stuck/"') == sees, person


def test_no_stuck_run_says_what_is_true(cast: Cast, client_of: ClientOf) -> None:
    stuck_run(cast)
    assert "No run is stuck" in text_of(client_of(cast.admin))


def test_waking_is_recorded_and_comes_back_to_the_page(cast: Cast, client_of: ClientOf) -> None:
    run = stuck_run(cast)
    answered(run)
    response = client_of(cast.lead).post(f"/runs/{run.pk}/wake/", {"next": "/stuck/?page=1"})
    assert response.headers["Location"] == "/stuck/?page=1"
    (told,) = AuditEvent.objects.filter(run_id=run.pk, type="run.woken")
    assert told.actor == cast.lead


def test_going_on_with_this_build_is_recorded_once(cast: Cast, client_of: ClientOf) -> None:
    run = stuck_run(cast, fingerprint="1" * 64, state='{"checkpoint_id":"c"}')
    AgentSpec.objects.filter(pk=run.agent_id).update(fingerprint="2" * 64)
    client = client_of(cast.lead)
    assert "Continue on this build" in text_of(client, f"/runs/{run.pk}/")
    assert client.post(f"/runs/{run.pk}/build/").status_code == 302
    assert Run.objects.get(pk=run.pk).fingerprint == "2" * 64
    assert client.post(f"/runs/{run.pk}/build/").status_code == 409
    assert AuditEvent.objects.filter(run_id=run.pk, type="run.build_accepted").count() == 1
    assert why(run) is None


@pytest.mark.parametrize("way", ["wake", "build", "retry", "cancel"])
def test_who_may_not_steer_goes_no_way(cast: Cast, client_of: ClientOf, way: str) -> None:
    run = stuck_run(cast, status="failed", error="it failed", trouble="step")
    assert client_of(cast.auditor).post(f"/runs/{run.pk}/{way}/").status_code == 403
    assert client_of(cast.outsider).post(f"/runs/{run.pk}/{way}/").status_code == 404
    assert Run.objects.get(pk=run.pk).status == "failed"


def test_cancelling_says_when_a_tool_had_already_started(cast: Cast, client_of: ClientOf) -> None:
    run = stuck_run(cast)
    task = run.tasks.get()
    decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    Run.objects.filter(pk=run.pk).update(status="running")
    pause = Pause.objects.get(run=run)
    Pause.objects.filter(run=run).update(status="delivering", delivery_epoch=1, delivery_started_at=now())
    ToolExecution.objects.create(
        run=run,
        pause=pause,
        call_key="k:0",
        tool="issue_refund",
        arguments="{}",
        arguments_digest="0" * 64,
        grant="decision",
        epoch=1,
    )
    page = client_of(cast.lead).post(f"/runs/{run.pk}/cancel/", follow=True).content.decode()
    assert "Already started, and not undone: issue_refund" in page
    assert Pause.objects.get(pk=pause.pk).error.endswith("its tool had already started.")
    assert "Cancelled after its tool had started" in text_of(client_of(cast.reviewer), f"/tasks/{task.pk}/")
