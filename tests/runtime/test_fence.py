"""The fence round the checkpoints: what a worker without its lock writes goes nowhere, and it is told so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F
from langgraph.checkpoint.base import empty_checkpoint

from agents_runtime import checkpointer
from agents_runtime.checkpointer import Fence, fenced_saver, on_loop
from agents_runtime.errors import StaleEpoch
from agents_runtime.models import Run
from agents_runtime.states import RunStatus
from tests.runtime.driving import at_once, call, script, start
from tests.runtime.locking import no_checkpoint_is_stored, wait_for_whoever_stores
from tests.runtime.storing import WRITES, Write, at, stored

pytestmark = pytest.mark.usefixtures("runtime")


def _lose_the_lock(run: Run, fence: Fence) -> None:
    Run.objects.filter(pk=run.pk).update(epoch=F("epoch") + 1)


def _cancel(run: Run, fence: Fence) -> None:
    Run.objects.filter(pk=run.pk).update(status=RunStatus.CANCELLED, finished_at=F("created_at"))


def _end_the_step(run: Run, fence: Fence) -> None:
    fence.broken.set()


@pytest.mark.parametrize("take_down", [_lose_the_lock, _cancel, _end_the_step])
@WRITES
def test_nothing_is_written_behind_a_fence_that_is_down(
    write: Write, take_down: Callable[[Run, Fence], None]
) -> None:
    run = start("t-per-call", script([call("pay", to="Ada", amount=5)]))
    fence = Fence(run.pk, run.epoch)
    saver = fenced_saver(fence, set())
    write(saver, at("elsewhere", "1"))
    before = stored("elsewhere")
    assert len(before) == 1
    take_down(run, fence)
    with pytest.raises(StaleEpoch):
        write(saver, at("elsewhere", "2"))
    assert stored("elsewhere") == before


@WRITES
def test_a_write_that_waited_for_its_saver_finds_the_step_ended(write: Write) -> None:
    run = start("t-per-call", script([call("pay", to="Ada", amount=5)]))
    saver = fenced_saver(Fence(run.pk, run.epoch), set())
    saver.lock = waited_for = _WaitedFor()
    refused: list[BaseException] = []
    writing = threading.Thread(target=_refused, args=(write, saver, refused))
    with waited_for.lock:
        writing.start()
        assert waited_for.by_somebody.wait(timeout=60)
        saver.fence.broken.set()
    writing.join()
    assert [type(error) for error in refused] == [StaleEpoch]
    assert stored("elsewhere") == []


def test_tasks_that_read_at_once_get_each_their_own_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    run = start("t-per-call", script([call("pay", to="Ada", amount=5)]))
    saver = fenced_saver(Fence(run.pk, run.epoch), set())
    here, nowhere = at(run.thread_id, ""), at("nowhere", "")

    def read_another(_: str) -> None:
        at_once(lambda: saver.get_tuple(nowhere))

    monkeypatch.setattr(checkpointer, "_let_ids_follow", read_another)
    found = saver.get_tuple(here)
    at_once(lambda: saver.get_tuple(nowhere))
    assert found is not None
    assert saver.latest is found


def test_whoever_is_cancelled_while_storing_reads_only_what_was_stored() -> None:
    run = start("t-async", script([call("apay", to="Ada", amount=5)]))
    saver = fenced_saver(Fence(run.pk, run.epoch), set())
    read: list[Any] = []
    reading = threading.Thread(target=lambda: read.append(saver.get_tuple(at("elsewhere", ""))))
    with no_checkpoint_is_stored():
        storing = on_loop(saver.aput(at("elsewhere", ""), empty_checkpoint(), {}, {}))
        wait_for_whoever_stores()
        saver.fence.broken.set()
        assert storing.cancel()
        reading.start()
    reading.join()
    assert [found.checkpoint["id"] for found in read] == stored("elsewhere")


class _WaitedFor:
    """A lock that tells when somebody comes for it."""

    def __init__(self) -> None:
        self.lock, self.by_somebody = threading.Lock(), threading.Event()

    def __enter__(self) -> None:
        self.by_somebody.set()
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def _refused(write: Write, saver: Any, refused: list[BaseException]) -> None:
    try:
        write(saver, at("elsewhere", "1"))
    except StaleEpoch as error:
        refused.append(error)
