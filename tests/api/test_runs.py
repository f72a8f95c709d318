"""Runs through the API: start, read, steer; and, with a worker, from the start to the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from agents_runtime.canonical import decode, encode
from agents_runtime.models import AgentSpec, Run
from reviewer.models import AuditEvent
from tests.cast import Cast
from tests.deciding.making import open_refund
from tests.doors import ApiClient, json_of
from tests.processes import Worker

Programs = Callable[..., ApiClient]
ONE_NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}


@pytest.fixture
def agent(cast: Cast) -> AgentSpec:
    return AgentSpec.objects.create(
        name="counter", source="tests", entry="counter", input_schema=encode(ONE_NUMBER)
    )


def test_a_developer_starts_a_run(cast: Cast, api_client: Programs, agent: AgentSpec) -> None:
    response = api_client(cast.developer).post("runs", {"agent": "counter", "input": {"n": 1.0}})
    assert response.status_code == 201
    shown = json_of(response)
    assert (shown["status"], shown["agent"], shown["requested_by"]) == ("queued", "counter", "Dev I.")
    assert Run.objects.get(pk=shown["id"]).input == '{"n":1.0}'
    assert AuditEvent.objects.get(type="run.started").actor == cast.developer


@pytest.mark.parametrize("name", ["reviewer", "auditor", "outsider"])
def test_a_role_that_starts_no_runs_is_told(
    cast: Cast, api_client: Programs, agent: AgentSpec, name: str
) -> None:
    response = api_client(cast.people[name]).post("runs", {"agent": "counter", "input": {"n": 1}})
    assert (response.status_code, json_of(response)["error"]) == (403, "not_allowed")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({"agent": "no-such", "input": {}}, 404, "not_found"),
        ({"agent": "counter", "input": {}}, 422, "invalid"),
        ({"agent": "counter", "input": {"n": "1"}}, 422, "invalid"),
        ({"agent": "counter"}, 422, "invalid"),
        ({"input": {}}, 422, "invalid"),
        ({"agent": "a\x00b", "input": {}}, 422, "invalid"),
        ({"agent": "x" * 101, "input": {}}, 422, "invalid"),
        ({"agent": ["counter"], "input": {"n": 1}}, 422, "invalid"),
        ({"agent": "counter", "input": {"n": 1}, "requested_by": "user:1"}, 422, "invalid"),
    ],
)
def test_what_cannot_start_says_why(
    cast: Cast, api_client: Programs, agent: AgentSpec, body: Any, status: int, error: str
) -> None:
    response = api_client(cast.developer).post("runs", body)
    assert (response.status_code, json_of(response)["error"]) == (status, error)
    assert not Run.objects.exists()


def test_an_input_that_does_not_fit_is_pointed_at(cast: Cast, api_client: Programs, agent: AgentSpec) -> None:
    response = api_client(cast.developer).post("runs", {"agent": "counter", "input": {"n": "1"}})
    assert [problem["pointer"] for problem in json_of(response)["problems"]] == ["/n"]


def test_an_agent_whose_code_does_not_load_is_unavailable(
    cast: Cast, api_client: Programs, agent: AgentSpec
) -> None:
    AgentSpec.objects.update(import_error="ModuleNotFoundError: No module named 'shop'")
    response = api_client(cast.developer).post("runs", {"agent": "counter", "input": {"n": 1}})
    assert (response.status_code, json_of(response)["error"]) == (409, "agent_unavailable")


def test_a_keyed_start_starts_once(cast: Cast, api_client: Programs, agent: AgentSpec) -> None:
    program = api_client(cast.developer)
    body = {"agent": "counter", "input": {"n": 1}}
    answers = [program.post("runs", body, key="start-1") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content
    assert Run.objects.count() == 1


def test_cancelling_withdraws_the_open_tasks(cast: Cast, api_client: Programs) -> None:
    task = open_refund(by=cast.developer)
    shown = json_of(api_client(cast.developer).post(f"runs/{task.run_id}/cancel"))
    assert (shown["status"], shown["pauses"][0]["status"]) == ("cancelled", "withdrawn")
    task.refresh_from_db()
    assert task.status == "withdrawn"


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("retry", None),
        ("build", None),
        ("settle", {"outcome": "stop"}),
        ("input", {"input": {}}),
        ("cancel", None),
    ],
)
def test_what_a_run_cannot_do_now_is_a_conflict(
    cast: Cast, api_client: Programs, verb: str, body: Any
) -> None:
    run_id = open_refund(by=cast.developer).run_id
    if verb == "cancel":
        api_client(cast.developer).post(f"runs/{run_id}/cancel")
    response = api_client(cast.developer).post(f"runs/{run_id}/{verb}", body)
    code = "open_reviews" if verb == "input" else "wrong_state"
    assert (response.status_code, json_of(response)["error"]) == (409, code)
    assert json_of(response)["message"]


@pytest.mark.parametrize("outcome", ["", "maybe", "happened ", None, 1])
def test_a_settlement_is_one_of_three(cast: Cast, api_client: Programs, outcome: Any) -> None:
    run_id = open_refund(by=cast.developer).run_id
    response = api_client(cast.developer).post(f"runs/{run_id}/settle", {"outcome": outcome})
    assert response.status_code == 422
    assert [problem["pointer"] for problem in json_of(response)["problems"]] == ["/outcome"]


@pytest.mark.worker
def test_a_refund_goes_from_start_to_result_through_the_api(
    cast: Cast, api_client: Programs, worker: Worker
) -> None:
    developer, reviewer = api_client(cast.developer), api_client(cast.reviewer)
    example = decode(AgentSpec.objects.get(name="refunds").example_input)
    run_id = json_of(developer.post("runs", {"agent": "refunds", "input": example}))["id"]
    waiting = _wait(developer, run_id, "waiting")
    (pause,) = waiting["pauses"]
    assert pause["tool"] == "issue_refund"

    card = json_of(reviewer.post("queues/payments/claim-next"))
    assert card["run"] == run_id
    assert developer.post(f"tasks/{card['id']}/decision", _approval(card)).status_code == 403
    assert reviewer.post(f"tasks/{card['id']}/decision", _approval(card)).status_code == 200

    finished = _wait(developer, run_id, "finished")
    assert finished["output"] is not None
    assert [pause["status"] for pause in finished["pauses"]] == ["delivered"]


def _approval(card: Any) -> dict[str, Any]:
    return {"answer": {"type": "approve"}, "digest": card["digest"], "claim_version": card["claim_version"]}


def _wait(program: ApiClient, run_id: str, status: str) -> Any:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        run = json_of(program.get(f"runs/{run_id}"))
        if run["status"] == status:
            return run
        time.sleep(0.1)
    raise AssertionError(run)


def test_input_for_a_run_that_asks_people_is_refused_and_names_the_open_tasks(
    cast: Cast, api_client: Programs
) -> None:
    task = open_refund(by=cast.developer)
    program = api_client(cast.developer)
    response = program.post(f"runs/{task.run_id}/input", {"input": {}})
    problem = json_of(response)
    assert (response.status_code, problem["error"]) == (409, "open_reviews")
    assert problem["tasks"] == [str(task.pk)]
    task.refresh_from_db()
    assert task.is_open


def test_input_closes_the_open_tasks_when_asked_to(cast: Cast, api_client: Programs) -> None:
    task = open_refund(by=cast.developer)
    AgentSpec.objects.filter(pk=task.run.agent_id).update(input_schema="{}")
    program = api_client(cast.developer)
    response = program.post(f"runs/{task.run_id}/input", {"input": {}, "close_open_reviews": True})
    assert (response.status_code, json_of(response)["status"]) == (200, "running")
    task.refresh_from_db()
    assert task.status == "superseded"
    assert AuditEvent.objects.get(type="run.reviews_closed").actor == cast.developer
    assert program.post(f"runs/{task.run_id}/input", {"input": {}}).status_code == 409


def test_a_deadline_and_what_happens_then_stand_on_the_task(cast: Cast, api_client: Programs) -> None:
    cast.payments.minutes_to_decide, cast.payments.on_expiry = 30, "reject"
    cast.payments.save()
    task = open_refund(by=cast.developer)
    shown = json_of(api_client(cast.reviewer).get(f"tasks/{task.pk}"))
    assert shown["expires_at"] == shown["due_at"] is not None
    assert (shown["on_expiry"], shown["overdue_at"]) == ("reject", None)
    Run.objects.filter(pk=task.run_id).update(trouble="step")
    assert json_of(api_client(cast.developer).get(f"runs/{task.run_id}"))["trouble"] == "step"
