"""What the journeys share: the demo's people on a product that is running."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from playwright.sync_api import Page, expect

from reviewer.accounts.models import User
from tests.agents import effects
from tests.cast import token_of
from tests.journeys.walking import PATIENCE, OpenPage, Program, ProgramOf, Say
from tests.processes import Process, Site, Worker

expect.set_options(timeout=PATIENCE * 1000)


@pytest.fixture
def people(committed_db: None) -> dict[str, User]:
    """The demo's people, queues and policies, as `make run` makes them at its first start."""
    call_command("seed_demo", verbosity=0)
    return {person.username: person for person in User.objects.all()}


@pytest.fixture
def page_for(people: dict[str, User], page_of: OpenPage) -> OpenPage:
    """Open a signed-in page of somebody in the demo: ``page_for("reviewer")``."""

    def opened(username: str, **options: object) -> Page:
        return page_of(people[username], **options)

    return opened


@pytest.fixture
def program_of(people: dict[str, User], live_server_process: Site) -> ProgramOf:
    """Make a program of somebody in the demo: ``program_of("reviewer").get("tasks")``."""
    return lambda username: Program(live_server_process.url, token_of(people[username]))


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    """Tell whoever runs the tests what was measured; a busy machine may be slow, so it is no assertion."""

    def said(text: str) -> None:
        with capfd.disabled():
            sys.stderr.write(f"\n{text}\n")

    return said


@pytest.fixture
def product(people: dict[str, User], worker: Worker, scheduler: Process) -> Iterator[Worker]:
    """Everything runs; the worker is returned, for those who want to kill it."""
    effects.clear()
    yield worker
    effects.clear()
