"""A program's way: token, start, task, decision, end; nothing but the API and one command."""

from __future__ import annotations

import pytest

from agents_runtime.models import Run
from reviewer.accounts.models import User
from tests.database import manage
from tests.journeys.walking import Program, ProgramOf, becomes, effects_of, task_for
from tests.processes import Site, Worker

pytestmark = pytest.mark.worker


def test_a_program_takes_a_run_from_its_start_through_a_changed_decision_to_its_end(
    product: Worker, people: dict[str, User], program_of: ProgramOf, live_server_process: Site
) -> None:
    dev = Program(live_server_process.url, manage("create_token", "developer").stdout.split()[-1])
    reviewer = program_of("reviewer")
    wrong = {"agent": "refunds", "input": {"order_id": 7}}
    status, told = dev.post("runs", wrong)
    assert status == 422
    assert {problem["pointer"] for problem in told["problems"]} >= {"/order_id"}

    asked = {"order_id": "A-1043", "complaint": "The brass desk lamp arrived with a broken switch."}
    status, started = dev.post("runs", {"agent": "refunds", "input": asked})
    assert status == 201
    run = Run.objects.get(pk=started["id"])
    task_for(run, "issue_refund")
    (row,) = reviewer.get(f"tasks?status=open&run={run.pk}")["items"]
    assert row["title"] == "Refund 49.90 EUR for order A-1043"
    card = reviewer.get(f"tasks/{row['id']}")
    assert card["allowed_decisions"] == ["approve", "edit", "reject"]

    arguments = {**card["args"], "amount": "20.00"}
    edited = {"type": "edit", "edited_action": {"name": "issue_refund", "args": arguments}}
    decision = {"answer": edited, "digest": card["digest"], "comment": "Half of it."}
    status, _ = dev.post(f"tasks/{row['id']}/decision", decision)
    assert status in {403, 404}
    status, told = reviewer.post(f"tasks/{row['id']}/decision", {**decision, "digest": "0" * 64})
    assert status == 409
    status, made = reviewer.post(f"tasks/{row['id']}/decision", decision)
    assert status == 200, made
    status, told = reviewer.post(f"tasks/{row['id']}/decision", decision)
    assert status == 409
    assert "Ines H." in told["message"]

    becomes(run, "finished")
    finished = dev.get(f"runs/{run.pk}")
    assert "20.00" in finished["output"]["messages"][-1]["content"]
    assert [pause["status"] for pause in finished["pauses"]] == ["delivered"]
    ((tool, ran),) = effects_of(run)
    assert (tool, ran["amount"]) == ("issue_refund", "20.00")
    trail = program_of("auditor").get(f"audit?run={run.pk}")["items"]
    types = [event["type"] for event in reversed(trail)]
    story = ["run.started", "run.paused", "task.opened", "decision.made", "tool.started", "run.finished"]
    assert [type for type in types if type in story] == story
