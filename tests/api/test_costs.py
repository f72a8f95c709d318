"""What a start, a card and a decision through the API send to PostgreSQL. Times differ, counts do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from agents_runtime import enqueue
from agents_runtime.canonical import encode
from agents_runtime.models import AgentSpec
from reviewer.models import ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund
from tests.doors import ApiClient, json_of
from tests.runtime import test_costs

pytestmark = pytest.mark.usefixtures("committed_db", "unheard")
Programs = Callable[..., ApiClient]
Spent = Callable[[Callable[[], object]], dict[str, int]]
sent = test_costs.sent


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No worker hears of anything."""
    monkeypatch.setattr(enqueue, "publish", lambda *_: None)
    yield
    enqueue.flush()


@pytest.fixture
def spent(sent: Counter[str]) -> Callable[[Callable[[], object]], dict[str, int]]:
    """Ask twice, for the first time has statements made; return what the second time sends."""

    def of(ask: Callable[[], object]) -> dict[str, int]:
        ask()
        sent.clear()
        ask()
        return dict(+sent)

    return of


def opened(cast: Cast) -> ReviewTask:
    return open_refund(by=cast.developer)


def test_a_start_asks_who_it_is_and_what_is_started(cast: Cast, api_client: Programs, spent: Spent) -> None:
    AgentSpec.objects.create(name="idler", source="tests", entry="idler", input_schema=encode({}))
    developer = api_client(cast.developer)
    assert spent(lambda: json_of(developer.post("runs", {"agent": "idler", "input": {}}))) == {
        "statements": 5,  # token, agent, run, person, event
        "COMMIT": 1,
        "waits": 5,
    }


def test_a_look_at_a_run_that_waits(cast: Cast, api_client: Programs, spent: Spent) -> None:
    developer, run = api_client(cast.developer), opened(cast).run_id
    assert spent(lambda: json_of(developer.get(f"runs/{run}", wait=30))) == {
        "statements": 3,  # token, run, pauses with their tasks
        "waits": 3,
    }


def test_a_card_is_read_once_and_its_opening_kept(cast: Cast, api_client: Programs, spent: Spent) -> None:
    reviewer, tasks = api_client(cast.reviewer), iter([opened(cast), opened(cast)])
    assert spent(lambda: json_of(reviewer.get(f"tasks/{next(tasks).pk}"))) == {
        "statements": 3,  # token, task with membership, opening with event
        "waits": 3,
    }


def test_a_decision_takes_a_statement_for_each_thing_it_keeps(
    cast: Cast, api_client: Programs, spent: Spent
) -> None:
    reviewer, tasks = api_client(cast.reviewer), iter([opened(cast), opened(cast)])

    def decide() -> None:
        task = next(tasks)
        json_of(reviewer.post(f"tasks/{task.pk}/decision", {"answer": APPROVE, "digest": task.digest}))

    assert spent(decide) == {
        "statements": 5,  # token, task, membership, decision, and what follows from it
        "COMMIT": 1,
        "waits": 4,
    }


def test_a_look_at_what_became_of_a_decision(cast: Cast, api_client: Programs, spent: Spent) -> None:
    reviewer, task = api_client(cast.reviewer), opened(cast)
    json_of(reviewer.post(f"tasks/{task.pk}/decision", {"answer": APPROVE, "digest": task.digest}))
    assert spent(lambda: json_of(reviewer.get(f"tasks/{task.pk}/decision"))) == {
        "statements": 2,  # token, decision with its task and membership
        "waits": 2,
    }
