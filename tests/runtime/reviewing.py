"""Runs as people meet them: every pause has its cards on pages, and only a reviewer's decision answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.test import Client

from agents_runtime.canonical import Json
from agents_runtime.models import Run
from reviewer import decisions
from reviewer.accounts.models import User
from reviewer.models import ReviewTask
from tests.cast import Cast
from tests.runtime.driving import advance


@dataclass(frozen=True)
class Reviewer:
    """One person at their desk."""

    person: User
    browser: Client

    def cards(self, run: Run) -> list[ReviewTask]:
        """Return the open cards of a run, in the order of the calls, each one opened on its page."""
        assert run.status == "waiting", (run.status, run.error)
        tasks = list(ReviewTask.objects.filter(run=run, status="open"))
        for task in tasks:
            self.page(task)
        return sorted(tasks, key=lambda task: (task.pause.created_at, task.pause.place, task.position))

    def card(self, run: Run) -> ReviewTask:
        """Return the one open card of a run."""
        (found,) = self.cards(run)
        return found

    def page(self, task: ReviewTask) -> str:
        """Return the page of a card."""
        response = self.browser.get(f"/tasks/{task.pk}/")
        assert response.status_code == 200
        return response.content.decode()

    def decide(self, task: ReviewTask, answer: Json) -> Run:
        """Decide a card, bring its run to its next rest, and return it."""
        decisions.decide(task.pk, by=self.person, answer=answer, digest=task.digest)
        return advance(task.run)

    def answer(self, run: Run, *answers: Json) -> Run:
        """Decide the one open card of a run, as often as there are answers."""
        for one in answers:
            run = self.decide(self.card(run), one)
        return run


@pytest.fixture
def ines(runtime: None, cast: Cast, client_of: Callable[[User], Client]) -> Reviewer:
    """A reviewer of every queue."""
    return Reviewer(cast.reviewer, client_of(cast.reviewer))
