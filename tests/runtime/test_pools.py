"""The pools of a worker: threads as well as processes, one event loop for each, connections that die."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import psycopg
import pytest
from django.db import connection
from django.test import Client

from agents_runtime import checkpointer, runs, tasks, thread_lock
from agents_runtime.models import Run
from tests.agents import effects
from tests.processes import Process, Worker, threads_worker_command
from tests.runtime.crashing import wait_until
from tests.runtime.driving import APPROVE, REJECT, call, edit, fresh, give, pauses, pending, script
from tests.servers import servers

pytestmark = pytest.mark.usefixtures("runtime")
PATIENCE = 60.0
PAY = call("pay", to="a", amount=1)


def end_idle_sessions() -> int:
    """End the idle sessions of this process, as a restart of the server does; return how many."""
    connection.close()
    held = [*connection.pool._pool, thread_lock.connection()]  # type: ignore[attr-defined]
    numbers = [link.info.backend_pid for link in held]
    with psycopg.connect(servers().superuser_url, autocommit=True) as link:
        link.execute("SELECT pg_terminate_backend(pid, 10_000) FROM unnest(%s::int[]) AS pid", [numbers])
    return len(numbers)


def test_a_restart_of_the_database_breaks_one_request_at_most(client: Client) -> None:
    client.raise_request_exception = False
    connection.ensure_connection()
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(connection.pool.connection())  # type: ignore[attr-defined]
    assert end_idle_sessions() >= 3
    asked = []
    for _ in range(5):
        asked.append(client.get("/api/v1/tasks", headers={"Authorization": "Bearer nobodys"}).status_code)
        connection.close()  # as a server does after each request
    assert asked == [500, 401, 401, 401, 401]


@pytest.mark.parametrize("agent", ["t-per-call", "t-async"])
def test_a_worker_whose_idle_connections_died_goes_on_at_once(agent: str) -> None:
    name = "apay" if agent == "t-async" else "pay"
    run = runs.start(agent, input=script([call(name, to="a", amount=1)]), requested_by="tests")
    tasks.start_run(str(run.pk))
    give(pending(run), APPROVE)
    assert end_idle_sessions() > 1
    tasks.start_run(str(run.pk))
    assert fresh(run).status == "finished"
    assert effects.count(name) == 1


def test_async_agents_of_one_process_share_one_loop_thread() -> None:
    first = runs.start("t-async", input=script([call("apay", to="a", amount=1)]), requested_by="tests")
    second = runs.start("t-async", input=script([call("apay", to="a", amount=2)]), requested_by="tests")
    for run in (first, second):
        tasks.start_run(str(run.pk))
        give(pending(run), APPROVE)
        tasks.start_run(str(run.pk))
    assert [fresh(run).status for run in (first, second)] == ["finished"] * 2
    process = checkpointer._current()
    assert process.loop_thread is not None
    assert process.loop_thread.name == "agents-loop"


@pytest.fixture(scope="module")
def _threads_process(django_db_setup: None) -> Iterator[Worker]:
    process = Worker(
        "worker-threads",
        threads_worker_command(),
        ready=" ready.",
        COUNTERSIGN_WORKERS="4",
        COUNTERSIGN_LOG_LEVEL="INFO",
    )
    yield process
    process.stop()


@pytest.fixture
def worker(
    committed_db: None, registered_agents: None, _worker_process: Worker, _threads_process: Worker
) -> Iterator[Worker]:
    """Instead of the usual worker: one whose pool is threads."""
    _worker_process.kill()
    _threads_process.ensure()
    yield _threads_process
    _threads_process.come_to_rest()


@pytest.mark.worker
def test_a_pool_of_threads_brings_every_kind_of_run_to_its_end(worker: Worker) -> None:
    agents = ["t-per-call", "t-batched", "t-boss", "t-async"] * 2
    started = [_start(agent, number) for number, agent in enumerate(agents)]
    for number, run in enumerate(started):
        wait_until(lambda run=run: fresh(run).status == "waiting", seconds=PATIENCE)  # type: ignore[misc]
        for pause in pauses(run):
            give(pause, *[_answer(number, told["tool"]) for told in pause.call_list])
    for run in started:
        wait_until(lambda run=run: fresh(run).status == "finished", seconds=PATIENCE)  # type: ignore[misc]
    amounts = [
        effects.count("pay", amount=number) + effects.count("apay", amount=number) for number in range(8)
    ]
    assert amounts == [0 if number % 3 == 2 else 1 for number in range(8)]
    edited = effects.count("pay", to="edited") + effects.count("apay", to="edited")
    assert edited == len([number for number in range(8) if number % 3 == 1])
    assert not psutil.Process(worker.pid).children(), "it runs its agents in itself"


@pytest.mark.worker
def test_a_pool_of_threads_that_is_killed_leaves_a_doubt_and_not_a_second_run(
    worker: Worker, scheduler: Process
) -> None:
    run = runs.start("t-per-call", input=script([PAY]), requested_by="tests")
    wait_until(lambda: fresh(run).status == "waiting", seconds=PATIENCE)
    effects.flag("wait_pay").touch()
    give(pending(run), APPROVE)
    wait_until(lambda: effects.count("pay_began") > 0, seconds=PATIENCE)
    worker.kill()
    effects.flag("wait_pay").unlink()
    worker.start()
    wait_until(lambda: fresh(run).status == "in_doubt", seconds=PATIENCE)
    assert effects.count("pay") == 0


@pytest.mark.worker
def test_a_pool_of_threads_ends_on_a_signal(worker: Worker) -> None:
    run = _start("t-per-call", 1)
    wait_until(lambda: fresh(run).status == "waiting", seconds=PATIENCE)
    psutil.Process(worker.pid).terminate()
    wait_until(lambda: not worker.is_running, seconds=PATIENCE)


def _start(agent: str, number: int) -> Run:
    name = "apay" if agent == "t-async" else "pay"
    input_of_worker = script([call(name, to="a", amount=number)])
    if agent == "t-boss":
        input_of_worker = script([call("delegate", task=input_of_worker["messages"][0]["content"])])
    return runs.start(agent, input=input_of_worker, requested_by="tests")


def _answer(number: int, tool: str) -> object:
    if number % 3 == 2:
        return REJECT
    return edit(tool, to="edited", amount=number) if number % 3 == 1 else APPROVE
