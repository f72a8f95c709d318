"""What a task wrote is stored with the checkpoint it leads to, and nobody's fate hangs on the other's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint

from agents_runtime import fence, gathering
from agents_runtime.checkpointer import fenced_saver
from agents_runtime.errors import StaleEpoch
from agents_runtime.fence import Fence
from agents_runtime.models import Run
from tests.runtime.crashing import wait_until
from tests.runtime.driving import call, script, start
from tests.runtime.storing import at, stored

pytestmark = pytest.mark.usefixtures("runtime")
FOR_EVER = 60.0
AT_ALL = 0.0


@pytest.fixture
def saver() -> Any:
    """A saver of a run that goes on, which gathers."""
    run = start("t-per-call", script([call("pay", to="Ada", amount=5)]))
    return fenced_saver(Fence(run.pk, run.epoch), set(), gathers=True)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many parts each statement stored, in order."""
    parts: list[int] = []
    store = fence.store

    def noted(cursor: Any, fence_of_run: Fence, several: Any) -> None:
        parts.append(len(several))
        store(cursor, fence_of_run, several)

    with monkeypatch.context() as patch:
        patch.setattr(gathering, "store", noted)
        yield parts


class Writing(threading.Thread):
    """Stores what a task wrote in a thread, as the library does."""

    def __init__(self, saver: Any, task: str, value: str = "hello") -> None:
        super().__init__()
        self.error: BaseException | None = None
        self._write: Callable[[], None] = lambda: saver.put_writes(
            at("elsewhere", "1"), [("messages", value)], task
        )
        self.start()

    def run(self) -> None:
        try:
            self._write()
        except BaseException as error:  # noqa: BLE001  told to the test's own thread
            self.error = error

    def ended(self) -> BaseException | None:
        """Wait for its end, and return what it raised."""
        self.join(timeout=60)
        assert not self.is_alive()
        return self.error


def put(saver: Any) -> None:
    """Store a checkpoint."""
    saver.put(at("elsewhere", ""), empty_checkpoint(), {}, {})


def be_patient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let whoever waits for company wait so long."""
    monkeypatch.setattr(gathering, "SECONDS_OF_PATIENCE", seconds)


def patient_writing(saver: Any, monkeypatch: pytest.MonkeyPatch, *, task: str = "task") -> Writing:
    """Return a task's writes that wait for company, and would for ever."""
    be_patient(monkeypatch, FOR_EVER)
    writing = Writing(saver, task)
    wait_until(lambda: bool(saver._gathering._waiting))
    return writing


def test_what_a_task_wrote_is_stored_in_one_statement_with_the_checkpoint_that_follows(
    saver: Any, statements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = patient_writing(saver, monkeypatch)
    assert stored("elsewhere") == []
    put(saver)
    assert writing.ended() is None
    assert len(stored("elsewhere")) == 2
    assert statements == [2]


def test_without_a_checkpoint_it_is_stored_alone_before_its_writer_is_let_go(
    saver: Any, statements: list[int]
) -> None:
    assert Writing(saver, "task").ended() is None
    assert stored("elsewhere") == ["1"]
    assert statements == [1]


def test_tasks_side_by_side_wait_for_no_checkpoint(
    saver: Any, statements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = patient_writing(saver, monkeypatch, task="one")
    second = Writing(saver, "two")
    assert (first.ended(), second.ended()) == (None, None)
    assert stored("elsewhere") == ["1", "1"]
    assert statements == [2]


@pytest.mark.parametrize("channel", ["__interrupt__", "__error__"])
def test_what_ends_a_step_waits_for_nobody(saver: Any, channel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch, FOR_EVER)
    saver.put_writes(at("elsewhere", "1"), [(channel, "why")], "task")
    assert stored("elsewhere") == ["1"]


def test_writes_that_cannot_be_stored_keep_no_checkpoint_from_it(
    saver: Any, statements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = patient_writing(saver, monkeypatch, task="a task with a zero \0 in its name")
    put(saver)
    assert isinstance(writing.ended(), psycopg.DataError)
    assert len(stored("elsewhere")) == 1
    assert statements == [2, 1, 1]


def test_a_checkpoint_that_cannot_be_stored_keeps_no_writes_from_it(
    saver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = patient_writing(saver, monkeypatch)
    with pytest.raises(psycopg.DataError):
        saver.put(at("else\0where", ""), empty_checkpoint(), {}, {})
    assert writing.ended() is None
    assert stored("elsewhere") == ["1"]


def test_behind_a_fence_that_is_down_nobody_is_told_that_it_was_stored(
    saver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = patient_writing(saver, monkeypatch)
    Run.objects.update(epoch=99)
    with pytest.raises(StaleEpoch):
        put(saver)
    assert isinstance(writing.ended(), StaleEpoch)
    assert stored("elsewhere") == []


@pytest.mark.parametrize("patience", [AT_ALL, 0.0005, 0.005])
def test_many_tasks_at_once_are_each_stored_once(
    saver: Any, patience: float, statements: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_patient(monkeypatch, patience)
    for _ in range(10):
        writers = [Writing(saver, f"task {number}", value=f"{number}") for number in range(12)]
        put(saver)
        assert [one.ended() for one in writers] == [None] * 12
    assert stored("elsewhere").count("1") == 12
    assert sum(statements) == 10 * (12 + 1)
