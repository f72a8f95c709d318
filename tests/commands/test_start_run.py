"""``start_run``: a run from a shell, with or without waiting for what comes of it."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from agents_runtime.canonical import decode
from agents_runtime.models import AgentSpec, Run
from tests.cast import Cast
from tests.processes import Worker


def start(*arguments: str, **options: Any) -> list[str]:
    out = StringIO()
    call_command("start_run", *arguments, stdout=out, **options)
    return out.getvalue().splitlines()


@pytest.fixture
def agent(db: None) -> AgentSpec:
    schema = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
    return AgentSpec.objects.create(name="counter", source="tests", entry="counter", input_schema=schema)


def test_it_prints_the_id_of_a_run_in_somebodys_name(cast: Cast, agent: AgentSpec) -> None:
    (line,) = start("counter", "--input", '{"n": 12345678901234567890}')
    run = Run.objects.get(pk=UUID(line))
    assert run.requested_by == cast.developer.reference
    assert decode(run.input) == {"n": 12345678901234567890}
    (line,) = start("counter", "--input", '{"n": 1}', "--user", "lead")
    assert Run.objects.get(pk=UUID(line)).requested_by == cast.lead.reference


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("counter", "--input", "{"), "--input: The body is not JSON"),
        (("counter", "--input", '{"n": 1, "n": 2}'), "--input: The key"),
        (("counter", "--input", "{}"), "n"),
        (("counter", "--input", '{"n": "one"}'), "/n"),
        (("no-such", "--input", "{}"), "no-such"),
        (("counter", "--user", "nobody"), "no active user named nobody"),
        (("counter", "--input", '{"n": 1}', "--user", "reviewer"), "role does not start runs"),
    ],
)
def test_what_cannot_start_says_why(
    cast: Cast, agent: AgentSpec, arguments: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(CommandError, match=complaint):
        start(*arguments)
    assert not Run.objects.exists()


def test_waiting_without_a_worker_ends_with_a_hint(cast: Cast, agent: AgentSpec) -> None:
    with pytest.raises(CommandError, match="Is a worker running"):
        start("counter", "--input", '{"n": 1}', "--wait", "--timeout", "0.3")


@pytest.mark.worker
def test_waiting_shows_the_pause(cast: Cast, worker: Worker) -> None:
    example = AgentSpec.objects.get(name="refunds").example_input
    run_id, shown = start("refunds", "--input", example, "--user", "lead", "--wait", "--timeout", "60")
    run = json.loads(shown)
    assert (run["id"], run["status"]) == (run_id, "waiting")
    (pause,) = run["pauses"]
    assert (pause["tool"], pause["status"]) == ("issue_refund", "pending")
    assert pause["tasks"]
