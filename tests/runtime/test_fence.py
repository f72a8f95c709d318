"""The fence round the checkpoints: what a worker without its lock writes goes nowhere, and it is told so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver

from agents_runtime import checkpointer, thread_lock
from agents_runtime.checkpointer import fenced_saver, on_loop
from agents_runtime.errors import StaleEpoch
from agents_runtime.fence import Fence
from agents_runtime.models import Run
from agents_runtime.states import RunStatus
from tests.runtime.driving import at_once, call, script, start
from tests.runtime.locking import no_checkpoint_is_stored, wait_for_whoever_stores
from tests.runtime.storing import WRITES, Write, at, delete_thread, outside, stored

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


def test_a_step_goes_on_from_what_was_just_read_and_the_next_one_reads_anew() -> None:
    run = start("t-per-call", script([call("pay", to="Ada", amount=5)]))
    saver = fenced_saver(Fence(run.pk, run.epoch), set())
    here = at(run.thread_id, "")
    read = saver.get_tuple(here)
    read.checkpoint["channel_versions"].clear()  # the library changes what it was given
    delete_thread(run)
    with saver.going_on_from_what_was_read():
        again, anew = saver.get_tuple(here), saver.get_tuple(here)
    assert again.checkpoint["id"] == read.checkpoint["id"]
    assert again.checkpoint["channel_versions"]
    assert anew is None
    with saver.going_on_from_what_was_read():
        assert saver.get_tuple(here) is None


def test_a_checkpoint_that_is_asked_for_by_its_id_is_read_whatever_was_read_before() -> None:
    run = start("t-per-call", script([call("pay", to="Ada", amount=5)]))
    saver = fenced_saver(Fence(run.pk, run.epoch), set())
    latest = saver.get_tuple(at(run.thread_id, ""))
    earlier = latest.parent_config
    saver.get_tuple(at(run.thread_id, ""))
    with saver.going_on_from_what_was_read():
        assert saver.get_tuple(earlier).checkpoint["id"] != latest.checkpoint["id"]


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


CHANNELS = st.sampled_from(["messages", "todo", "__error__", "__interrupt__", "__resume__", "__no_writes__"])
VALUES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text("ab\u00e9\U0001f600", max_size=3)
SOME_WRITES = st.lists(st.tuples(CHANNELS, VALUES), max_size=12)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(several=st.lists(SOME_WRITES, min_size=1, max_size=3))
def test_a_task_has_written_what_the_library_alone_would_have_stored(
    several: list[list[tuple[str, Any]]],
) -> None:
    alone, fenced = _two_savers()
    here, there = at(str(uuid4()), "1"), at(str(uuid4()), "1")
    for writes in several:
        alone.put_writes(here, writes, "task", "path")
        fenced.put_writes(there, writes, "task", "path")
    assert _writes(here) == _writes(there)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.dictionaries(CHANNELS, VALUES | st.lists(VALUES, max_size=3), max_size=12))
def test_a_checkpoint_is_what_the_library_alone_would_have_stored(values: dict[str, Any]) -> None:
    alone, fenced = _two_savers()
    here, there = at(str(uuid4()), ""), at(str(uuid4()), "")
    versions: Any = {channel: f"{number:032}.1" for number, channel in enumerate(values)}
    checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": versions}
    for _ in range(2):
        alone.put(here, checkpoint, {"source": "loop"}, versions)
        fenced.put(there, checkpoint, {"source": "loop"}, versions)
    one, other = alone.get_tuple(here), fenced.get_tuple(there)
    assert one is not None
    assert (one.checkpoint, one.metadata) == (other.checkpoint, other.metadata)
    assert one.checkpoint["channel_values"] == values


def test_many_thousand_writes_of_a_task_are_stored_together_or_not_at_all() -> None:
    _, fenced = _two_savers()
    there = at(str(uuid4()), "1")
    writes = [("messages", number) for number in range(2_500)]
    fenced.put_writes(there, writes, "task")
    assert [row[1] for row in _writes(there)] == list(range(2_500))
    refused = at(str(uuid4()), "1")
    fenced.fence.epoch += 1
    with pytest.raises(StaleEpoch):
        fenced.put_writes(refused, writes, "task")
    assert _writes(refused) == []


def test_what_the_library_would_write_in_a_new_way_is_refused_and_not_written_without_the_fence() -> None:
    _, fenced = _two_savers()
    with pytest.raises(NotImplementedError, match="no fence"):
        fenced.delete_thread("elsewhere")


def _two_savers() -> tuple[PostgresSaver, Any]:
    """The library's saver, and ours for a run that goes on."""
    run = Run.objects.first() or start("t-per-call", script([call("pay", to="Ada", amount=5)]))
    alone = PostgresSaver(thread_lock.connection(), serde=checkpointer.serializer())
    return alone, fenced_saver(Fence(run.pk, run.epoch), set())


def _writes(config: Any) -> list[tuple[Any, ...]]:
    columns = "task_id, idx, task_path, channel, type, blob"
    with outside() as link:
        rows = link.execute(
            f"SELECT {columns} FROM checkpoint_writes WHERE thread_id = %s ORDER BY idx",
            [config["configurable"]["thread_id"]],
        )
        return [tuple(row.values()) for row in rows]


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
