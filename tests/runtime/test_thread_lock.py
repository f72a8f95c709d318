"""Taking a thread's lock: one statement that takes it, raises the epoch, and says which of both it did."""

from __future__ import annotations

import contextlib
import threading
import time
from uuid import uuid4

import psycopg
import pytest
from django.db import connection, transaction
from psycopg.rows import DictRow

from agents_runtime import checkpointer, runs, steps, thread_lock
from agents_runtime.direct import conninfo
from agents_runtime.engine import Engine
from agents_runtime.fence import Fence
from agents_runtime.models import Run
from agents_runtime.records import lock_run
from agents_runtime.thread_state import Delivery, Outcome
from tests.agents import effects
from tests.runtime.driving import at_once, call, fresh, give, pending, script, start
from tests.runtime.locking import (
    DIRECT,
    no_checkpoint_is_stored,
    wait_for_whoever_stores,
    wait_until_waiting_for_a_saver,
)
from tests.runtime.storing import WRITES, Write, at, stored
from tests.servers import servers

pytestmark = pytest.mark.usefixtures("runtime")
INPUT = script([call("pay", to="a", amount=1)])
WAITS_FOR_ROW = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"


def test_each_holder_has_an_epoch_of_its_own() -> None:
    run = runs.start("t-per-call", input=INPUT, requested_by="tests")
    epochs = []
    for _ in range(3):
        with thread_lock.hold(run.pk) as epoch:
            epochs.append(epoch)
    assert epochs == [1, 2, 3]
    assert fresh(run).epoch == 3


def test_whoever_comes_second_neither_waits_nor_raises_the_epoch() -> None:
    run = runs.start("t-per-call", input=INPUT, requested_by="tests")
    got: list[int | None] = []
    with thread_lock.hold(run.pk) as epoch, transaction.atomic():
        lock_run(run.pk, epoch)
        at_once(lambda: _take(run, got))
    assert got == [None]
    assert fresh(run).epoch == 1


def test_an_epoch_is_raised_on_the_row_as_whoever_had_it_locked_left_it() -> None:
    run = runs.start("t-per-call", input=INPUT, requested_by="tests")
    got: list[int | None] = []
    taking = threading.Thread(target=_take, args=(run, got))
    with psycopg.connect(conninfo(application="tests")) as other:
        other.execute("UPDATE agents_runtime_run SET epoch = 41 WHERE id = %s", [run.pk])
        taking.start()
        _wait_for_a_lock(other)
    taking.join()
    assert got == [42]
    assert fresh(run).epoch == 42
    assert thread_lock.lock_key(run.pk) not in thread_lock.held_keys()


@WRITES
def test_whoever_takes_over_waits_for_what_the_worker_before_is_just_storing(write: Write) -> None:
    run = start("t-per-call", INPUT)
    saver = checkpointer.fenced_saver(Fence(run.pk, run.epoch), set())
    got: list[int | None] = []
    storing = threading.Thread(target=write, args=(saver, at("elsewhere", "1")))
    taking = threading.Thread(target=_take_and_read, args=(run, got))
    with no_checkpoint_is_stored():
        storing.start()
        wait_for_whoever_stores()
        taking.start()
        wait_until_waiting_for_a_saver(DIRECT)
        assert fresh(run).epoch == run.epoch
    storing.join()
    taking.join()
    assert got == [run.epoch + 1, 1]


def test_a_worker_whose_lock_is_lost_before_a_step_delivers_nothing_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = start("t-asker", {"ask": "?"})
    give(pending(run), "a")
    step, is_first = Engine.step, iter([True])

    def step_of_a_worker_that_stood_still(engine: Engine, delivery: Delivery) -> Outcome:
        if next(is_first, False):
            _end_session(thread_lock.connection())
            at_once(lambda: steps.advance(run.pk))
        return step(engine, delivery)

    monkeypatch.setattr(Engine, "step", step_of_a_worker_that_stood_still)
    with contextlib.suppress(psycopg.OperationalError):
        steps.advance(run.pk)
    assert effects.count("asked", first="a") == 1
    assert fresh(run).status == "waiting"


def test_the_lock_is_taken_once_and_given_back_whole() -> None:
    run = runs.start("t-per-call", input=INPUT, requested_by="tests")
    with thread_lock.hold(run.pk):
        assert thread_lock.lock_key(run.pk) in thread_lock.held_keys()
    assert thread_lock.lock_key(run.pk) not in thread_lock.held_keys()


def test_a_run_that_is_gone_leaves_no_lock_behind() -> None:
    nobody = uuid4()
    with thread_lock.hold(nobody) as epoch:
        assert epoch is None
    assert thread_lock.lock_key(nobody) not in thread_lock.held_keys()


def _end_session(link: psycopg.Connection[DictRow]) -> None:
    with psycopg.connect(servers().superuser_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10_000)", [link.info.backend_pid])


def _take(run: Run, got: list[int | None]) -> None:
    """Take the lock in a thread of its own, and note the epoch that came with it."""
    with thread_lock.hold(run.pk) as epoch:
        got.append(epoch)
    thread_lock.close()


def _take_and_read(run: Run, got: list[int | None]) -> None:
    """Take the lock, and note the epoch that came with it and how much was stored then."""
    with thread_lock.hold(run.pk) as epoch:
        got += [epoch, len(stored("elsewhere"))]
    thread_lock.close()


def _wait_for_a_lock(watcher: psycopg.Connection[tuple[int]]) -> None:
    until = time.monotonic() + 60
    with connection.cursor() as cursor:
        while True:
            cursor.execute(WAITS_FOR_ROW, ["%pg_try_advisory_lock%"])
            if cursor.fetchone()[0]:
                return
            assert time.monotonic() < until, watcher.info.status
            time.sleep(0.02)
