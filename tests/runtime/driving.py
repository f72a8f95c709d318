"""Driving runs in a test, without a worker: start, answer, advance, look."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import current_app
from django.db import connection, transaction

from agents_runtime import checkpointer, enqueue, runs, steps, thread_lock
from agents_runtime.canonical import Json, decode
from agents_runtime.models import Pause, Run, ToolExecution
from tests.agents import effects

APPROVE: Json = {"type": "approve"}
REJECT: Json = {"type": "reject", "message": "not today"}


def edit(name: str, **args: Json) -> Json:
    """Return the answer that changes a call's arguments."""
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def call(name: str, **args: Json) -> dict[str, Json]:
    """Return one scripted tool call."""
    return {"name": name, "args": args}


def script(*turns: list[dict[str, Json]], say: str = "Let me do that.") -> Json:
    """Return the input that makes an assistant play these turns of calls."""
    played = [{"say": say, "calls": calls} for calls in turns]
    return {"messages": [{"role": "user", "content": json.dumps(played)}]}


def start(agent: str, input: Json) -> Run:
    """Start a run and bring it to its first rest."""
    run = runs.start(agent, input=input, requested_by="tests")
    return advance(run)


def advance(run: Run) -> Run:
    """Bring a run forward and return it as it is now."""
    steps.advance(run.pk)
    return fresh(run)


def fresh(run: Run) -> Run:
    """Return the run as it is now."""
    return Run.objects.get(pk=run.pk)


def pauses(run: Run, **filters: Any) -> list[Pause]:
    """Return the pauses of a run in order."""
    return list(Pause.objects.filter(run=run, **filters).order_by("created_at", "place", "pk"))


def pending(run: Run, tool: str | None = None) -> Pause:
    """Return the one pause that waits, of a tool if named."""
    (found,) = pauses(run, status="pending", **({"tool": tool} if tool else {}))
    return found


def give(pause: Pause, *answers: Json) -> None:
    """Answer a pause, without bringing its run forward."""
    with transaction.atomic():
        runs.answer(runs.lock_pause(pause.pk), list(answers))


def answer(pause: Pause, *answers: Json) -> Run:
    """Answer a pause and bring its run to its next rest."""
    give(pause, *answers)
    return advance(pause.run)


def at_once(*jobs: Callable[[], object]) -> None:
    """Do things in threads of their own, each with its own connections, and wait for all of them."""
    raised: list[BaseException] = []

    def run(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001  told to the test's own thread
            raised.append(error)
        finally:
            connection.close()
            thread_lock.close()

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not raised, raised


def attempts(run: Run) -> list[ToolExecution]:
    """Return the ledger rows of a run, oldest first."""
    return list(ToolExecution.objects.filter(run=run).order_by("pk"))


def last_words(run: Run) -> str:
    """Return the text of the last message of a finished run."""
    return str(decode(run.output)["messages"][-1]["content"])


@pytest.fixture
def runtime(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    committed_db: None,
    registered_agents: None,
) -> Iterator[None]:
    """Registered agents on committed data, no traces of earlier tests, and no worker unless asked for.

    A test takes a patch of its own back by ``monkeypatch.context()``: ``undo`` would take this one back, too.
    """
    if "worker" not in request.fixturenames:
        monkeypatch.setattr(current_app, "send_task", lambda *_, **__: None)
        monkeypatch.setattr(enqueue, "publish", lambda *_: None)
    effects.clear()
    yield
    enqueue.flush()
    effects.clear()
    checkpointer.close()
    thread_lock.close()
