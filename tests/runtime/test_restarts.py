"""Workers that are told to end: what runs comes to its end, and the next worker takes up the rest."""

from __future__ import annotations

import os
import signal

import pytest

from agents_runtime import runs
from agents_runtime.canonical import Json
from agents_runtime.models import Run
from tests.agents import effects
from tests.processes import Process, Worker
from tests.runtime.crashing import wait_until
from tests.runtime.driving import APPROVE, attempts, call, fresh, give, pauses, pending, script

pytestmark = [pytest.mark.usefixtures("runtime"), pytest.mark.worker]
PAY = call("pay", to="a", amount=1)
LOOK = call("look", what="x")
DROP = call("drop", path="/a")
PATIENCE = 60.0


def tell_to_end(worker: Worker) -> None:
    """Send what a deployment sends, and come back at once."""
    os.kill(worker.pid, signal.SIGTERM)


def test_a_worker_that_is_told_to_end_loses_nothing_and_the_next_one_doubles_nothing(
    worker: Worker, scheduler: Process
) -> None:
    asked, decided = (started(PAY) for _ in range(2))
    wait_until(lambda: fresh(asked).status == fresh(decided).status == "waiting", seconds=PATIENCE)
    effects.flag("wait_look").touch()
    effects.flag("wait_pay").touch()
    in_a_step = runs.start("t-per-call", input=script([LOOK], [DROP]), requested_by="tests")
    give(pending(decided), APPROVE)
    wait_until(lambda: effects.count("look_began") > 0, seconds=PATIENCE)
    wait_until(lambda: effects.count("pay_began") > 0, seconds=PATIENCE)

    tell_to_end(worker)
    give(pending(asked), APPROVE)
    queued = started(DROP)
    effects.flag("wait_look").unlink()
    effects.flag("wait_pay").unlink()
    wait_until(lambda: not worker.is_running, seconds=PATIENCE)
    assert fresh(decided).status == "finished"  # its tool was let come to its end, and is in no doubt
    assert fresh(in_a_step).status == "waiting"  # so was its step
    assert [(attempt.status, attempt.attempt) for attempt in attempts(decided)] == [("succeeded", 1)]

    worker.start()
    wait_until(lambda: fresh(asked).status == "finished", seconds=PATIENCE)
    wait_until(lambda: fresh(queued).status == "waiting", seconds=PATIENCE)
    give(pending(in_a_step), APPROVE)
    wait_until(lambda: fresh(in_a_step).status == "finished", seconds=PATIENCE)
    assert effects.count("look_began") == effects.count("look") == effects.count("drop") == 1
    assert effects.count("pay_began") == effects.count("pay") == 2
    assert len(pauses(queued)) == 1
    assert all(len(attempts(run)) == 1 for run in (asked, decided, in_a_step))


def started(tool_call: dict[str, Json]) -> Run:
    """Start a run that makes one call."""
    return runs.start("t-per-call", input=script([tool_call]), requested_by="tests")
