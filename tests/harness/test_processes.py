"""The product's processes on the test servers: they start, die, come back, and see committed data."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from uuid import UUID

import pytest
from playwright.sync_api import Page

from agents_runtime import runs
from agents_runtime.canonical import decode
from agents_runtime.models import AgentSpec, Run
from agents_runtime.states import RunStatus
from tests.cast import Cast
from tests.database import wipe
from tests.processes import Process, Site, Worker


@pytest.mark.worker
def test_a_worker_runs_an_agent_and_comes_back_after_a_kill(cast: Cast, worker: Worker) -> None:
    first = worker.pid
    worker.restart()
    assert worker.pid != first
    run = runs.start("refunds", input=_example("refunds"), requested_by=cast.developer.reference)
    _wait_for(run.pk, RunStatus.WAITING)


@pytest.mark.worker
def test_the_scheduler_sweeps(scheduler: Process) -> None:
    assert scheduler.is_running


def test_registered_agents_survive_a_wipe(registered_agents: None, committed_db: None) -> None:
    before = set(AgentSpec.objects.values_list("name", "fingerprint"))
    wipe()
    assert {"refunds", "t-per-call"} <= {name for name, _ in before}
    assert set(AgentSpec.objects.values_list("name", "fingerprint")) == before


def test_the_site_answers(live_server_process: Site) -> None:
    with urllib.request.urlopen(f"{live_server_process.url}/healthz") as response:
        assert response.status == 200


@pytest.mark.browser
def test_a_browser_opens_a_page_of_a_signed_in_person(cast: Cast, page_of: Callable[..., Page]) -> None:
    page = page_of(cast.reviewer)
    page.goto("/")
    assert page.url.endswith("/")
    assert page.get_by_role("main").is_visible()


def _example(agent: str) -> object:
    return decode(AgentSpec.objects.get(name=agent).example_input)


def _wait_for(run_id: UUID, status: RunStatus) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if Run.objects.get(pk=run_id).status == status:
            return
        time.sleep(0.1)
    raise AssertionError(f"The run is {Run.objects.get(pk=run_id).status}, not {status}.")
