"""The fence round the checkpoints: what a worker without its lock writes goes nowhere, and it is told so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F
from langgraph.checkpoint.base import empty_checkpoint

from agents_runtime import checkpointer
from agents_runtime.checkpointer import Fence
from agents_runtime.errors import StaleEpoch
from agents_runtime.models import Run
from agents_runtime.states import RunStatus
from tests.runtime.driving import call, script, start

pytestmark = pytest.mark.usefixtures("runtime")
Write = Callable[[Any, Any], None]


def _put(saver: Any, config: Any) -> None:
    saver.put(config, empty_checkpoint(), {}, {})


def _put_writes(saver: Any, config: Any) -> None:
    saver.put_writes(config, [("messages", "hello")], "task")


def _aput(saver: Any, config: Any) -> None:
    checkpointer.on_loop(saver.aput(config, empty_checkpoint(), {}, {})).result(timeout=60)


def _aput_writes(saver: Any, config: Any) -> None:
    checkpointer.on_loop(saver.aput_writes(config, [("messages", "hello")], "task")).result(timeout=60)


def _saver(write: Write, fence: Fence) -> Any:
    make = checkpointer.async_saver if write in (_aput, _aput_writes) else checkpointer.sync_saver
    return make(fence, set())


def _lose_the_lock(run: Run, fence: Fence) -> None:
    Run.objects.filter(pk=run.pk).update(epoch=F("epoch") + 1)


def _cancel(run: Run, fence: Fence) -> None:
    Run.objects.filter(pk=run.pk).update(status=RunStatus.CANCELLED, finished_at=F("created_at"))


def _end_the_step(run: Run, fence: Fence) -> None:
    fence.broken.set()


@pytest.mark.parametrize("take_down", [_lose_the_lock, _cancel, _end_the_step])
@pytest.mark.parametrize("write", [_put, _put_writes, _aput, _aput_writes])
def test_nothing_is_written_behind_a_fence_that_is_down(
    write: Write, take_down: Callable[[Run, Fence], None]
) -> None:
    run = start("t-per-call", script([call("pay", to="Ada", amount=5)]))
    fence = Fence(run.pk, run.epoch)
    saver = _saver(write, fence)
    config = {"configurable": {"thread_id": "elsewhere", "checkpoint_ns": "", "checkpoint_id": "1"}}
    write(saver, config)
    before = _stored()
    take_down(run, fence)
    with pytest.raises(StaleEpoch):
        write(saver, config | {"configurable": {**config["configurable"], "checkpoint_id": "2"}})
    assert _stored() == before


def _stored() -> list[Any]:
    with checkpointer._pool().connection() as link:
        rows = link.execute(
            "SELECT checkpoint_id FROM checkpoint_writes UNION ALL SELECT checkpoint_id FROM checkpoints"
        )
        return sorted(row["checkpoint_id"] for row in rows)
