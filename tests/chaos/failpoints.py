"""The table of failpoints: every place where a process may be made to die, by name.

They stand on each side of every commit, publish, side effect and checkpoint. A point is a function or method
of the product and a side; ``install`` wraps them from outside, in processes of the tests only. Which point is
armed is said by a file: whoever reaches it first takes the file away and dies by SIGKILL, alone or with its
whole worker, or only stands still there until a door is opened.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Who = Literal["worker", "parent", "person", "sweeper", "sender"]
GATED_EFFECTS = ("('pay',", "('drop',", "('apay',")
STARTED = ("Started(",)
DECISION, START = ("/decision'",), ("/api/v1/runs'",)
DOORS = ("reached", "lock-lost", "taken-over")
MAX_STANDING = 20.0


@dataclass(frozen=True)
class Failpoint:
    """A place (``module:name`` or ``module:class.name``), a side, and whose process passes there.

    ``only``: it counts only where one of these words stands in the call, or in its result.
    ``agents``: the kind of agent that passes there; empty for any.
    """

    name: str
    place: str
    side: Literal["before", "after"]
    who: Who
    only: tuple[str, ...] = ()
    agents: Literal["", "async"] = ""


def _both(name: str, place: str, who: Who, **more: Any) -> tuple[Failpoint, Failpoint]:
    return (
        Failpoint(f"{name}.before", place, "before", who, **more),
        Failpoint(f"{name}.after", place, "after", who, **more),
    )


FAILPOINTS = (
    # A worker: taking a run
    Failpoint("message.received", "agents_runtime.tasks:_advance", "before", "worker"),
    Failpoint("lock.taken", "agents_runtime.thread_lock:_take", "after", "worker"),
    Failpoint("thread.read", "agents_runtime.engine:Engine.read", "after", "worker"),
    # A worker: the transaction that settles a step and begins the next delivery
    Failpoint("turn.begins", "agents_runtime.steps:turn", "before", "worker"),
    Failpoint("pauses.written", "reviewer.intake:Desk.run_paused", "after", "worker"),
    Failpoint("delivery.written", "reviewer.intake:Desk.delivery_started", "after", "worker"),
    Failpoint("turn.written", "agents_runtime.steps:save_changes", "after", "worker"),
    Failpoint("turn.committed", "agents_runtime.steps:turn", "after", "worker"),
    *_both("hint", "reviewer.live:_send_all", "worker"),
    # A worker: the step itself
    *_both("step", "agents_runtime.engine:Engine.step", "worker"),
    *_both("checkpoint", "agents_runtime.checkpointer:FencedSaver.put", "worker"),
    *_both("writes", "agents_runtime.checkpointer:FencedSaver.put_writes", "worker"),
    *_both("async-checkpoint", "agents_runtime.checkpointer:FencedSaver.aput", "worker", agents="async"),
    *_both("async-writes", "agents_runtime.checkpointer:FencedSaver.aput_writes", "worker", agents="async"),
    *_both("progress", "agents_runtime.streams:insert_new", "worker"),
    # A worker: one gated tool
    Failpoint("attempt.begins", "agents_runtime.ledger:open_call", "before", "worker"),
    Failpoint("attempt.written", "agents_runtime.ledger:_start", "after", "worker"),
    Failpoint("attempt.committed", "agents_runtime.ledger:open_call", "after", "worker", only=STARTED),
    *_both("effect", "tests.agents.effects:happened", "worker", only=GATED_EFFECTS),
    Failpoint("ending.begins", "agents_runtime.ledger:close_call", "before", "worker"),
    Failpoint("ending.written", "reviewer.intake:Desk.tool_finished", "after", "worker"),
    Failpoint("ending.committed", "agents_runtime.ledger:close_call", "after", "worker"),
    # A worker: leaving a run
    *_both("unlock", "agents_runtime.thread_lock:_unlock", "worker"),
    Failpoint("look-again", "agents_runtime.recovery:has_work", "before", "worker"),
    *_both("acknowledge", "celery.worker.request:Request.acknowledge", "parent"),
    # A web process that answers a person's request
    Failpoint("start.begins", "agents_runtime.runs:start", "before", "person"),
    Failpoint("start.written", "agents_runtime.runs:start", "after", "person"),
    Failpoint("start.committed", "reviewer.api.idempotency:_once", "after", "person", only=START),
    Failpoint("decision.begins", "reviewer.decisions:_decide", "before", "person"),
    Failpoint("decision.written", "reviewer.decisions:_conclude", "after", "person"),
    Failpoint("answer.written", "agents_runtime.runs:answer", "after", "person"),
    Failpoint("reply.kept", "reviewer.api.idempotency:_keep", "after", "person"),
    Failpoint("decision.committed", "reviewer.api.idempotency:_once", "after", "person", only=DECISION),
    Failpoint("settlement.written", "agents_runtime.runs:settle", "after", "person"),
    Failpoint("cancel.written", "agents_runtime.runs:cancel", "after", "person"),
    # Whoever sends a message, web process or sweeper
    *_both("handover", "agents_runtime.enqueue:send", "sender"),
    *_both("publish", "agents_runtime.enqueue:_send", "sender"),
    # A sweeper
    Failpoint("sweep.begins", "agents_runtime.recovery:sweep", "before", "sweeper"),
    Failpoint("sweep.chosen", "agents_runtime.recovery:_left", "after", "sweeper"),
    Failpoint("sweep.committed", "agents_runtime.recovery:sweep", "after", "sweeper"),
)


OF_PART = {
    "deaths": [point for point in FAILPOINTS if point.who != "parent"],
    "crowds": [],
    "product": [point for point in FAILPOINTS if point.who == "parent"],
}
"""Which part of the suite sees to it that a point is reached often enough."""


@dataclass(frozen=True)
class Fired:
    """A death: which point, whose process, at what time (seconds since 1970), bringing which run forward."""

    name: str
    pid: int
    at: float
    run: str


class Trigger:
    """The file that arms points: the first one reached kills, and disarms the others."""

    def __init__(self, folder: Path) -> None:
        self._armed, self._taken, self._fired = (folder / name for name in ("armed", "taken", "fired"))

    def arm(self, points: Iterable[Failpoint], *, whole: bool = False, stands: bool = False) -> None:
        """Let whoever passes one of the points first die there, ``whole``: with its worker.

        ``stands``: it opens the door "reached" and stands still until "taken-over" is open.
        """
        self.disarm()
        names = [point.name for point in points]
        draft = self._armed.with_suffix(".draft")
        draft.write_text(json.dumps({"names": names, "whole": whole, "stands": stands}))
        draft.rename(self._armed)

    def disarm(self) -> None:
        """Let nobody die, and close the doors."""
        for path in (self._armed, self._taken, self._fired, *(self._door(name) for name in DOORS)):
            path.unlink(missing_ok=True)

    def open(self, door: str) -> None:
        """Let those who wait at a door go on."""
        self._door(door).touch()

    def wait_at(self, door: str) -> None:
        """Wait until a door is open, but not for ever."""
        end = time.monotonic() + MAX_STANDING
        while not self._door(door).exists() and time.monotonic() < end:
            time.sleep(0.005)

    def _door(self, name: str) -> Path:
        return self._armed.with_name(f"door-{name}")

    @property
    def is_armed(self) -> bool:
        """Say whether a point is armed that nobody has reached."""
        return self._armed.exists()

    def fired(self) -> Fired | None:
        """Return the death, if there was one since arming."""
        return Fired(**json.loads(self._fired.read_text())) if self._fired.exists() else None

    def armed(self) -> dict[str, Any] | None:
        """Return what is armed."""
        try:
            return dict(json.loads(self._armed.read_text()))
        except FileNotFoundError:
            return None

    def take(self, fired: Fired) -> bool:
        """Take the armed point; only one process can."""
        try:
            self._armed.rename(self._taken)
        except FileNotFoundError:
            return False
        draft = self._fired.with_suffix(".writing")
        draft.write_text(json.dumps(fired.__dict__))
        draft.rename(self._fired)
        return True


class Rig:
    """What this process does at its points: it dies where one is armed."""

    def __init__(self, trigger: Trigger, now: Callable[[], float]) -> None:
        self.run = ""
        self.group = 0
        self._trigger = trigger
        self._now = now

    def passes(self, point: Failpoint, call: Callable[[], str]) -> None:
        """Die here if this point is armed; ``call`` tells what is called, with its result."""
        armed = self._trigger.armed()
        if armed is None or point.name not in armed["names"]:
            return
        if point.only and not any(word in call() for word in point.only):
            return
        if not self._trigger.take(Fired(point.name, os.getpid(), self._now(), self.run)):
            return
        if armed["stands"]:
            self._trigger.open("reached")
            self._trigger.wait_at("taken-over")
        else:
            die(self.group if armed["whole"] else 0)


def die(group: int = 0) -> None:
    """Kill this process, or its whole group."""
    if group:
        os.killpg(group, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def install(rig: Rig, *, with_people: bool = True) -> None:
    """Wrap the place of every failpoint in this process, or of those that no web process alone passes."""
    for point in FAILPOINTS:
        if point.who == "person" and not with_people:
            continue
        holder, name = find(point.place)
        setattr(holder, name, _wrapped(getattr(holder, name), point, rig))


def find(place: str) -> tuple[Any, str]:
    """Return what holds the function of a place, and its name; raise if there is none."""
    module, _, path = place.partition(":")
    holder: Any = importlib.import_module(module)
    *owners, name = path.split(".")
    for owner in owners:
        holder = getattr(holder, owner)
    if not callable(getattr(holder, name)):
        raise TypeError(f"{place} is no function.")
    return holder, name


def _wrapped(original: Callable[..., Any], point: Failpoint, rig: Rig) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def waits(*args: Any, **kwargs: Any) -> Any:
            if point.side == "before":
                rig.passes(point, lambda: repr((args, kwargs)))
            result = await original(*args, **kwargs)
            if point.side == "after":
                rig.passes(point, lambda: repr((args, kwargs, result)))
            return result

        return waits

    @functools.wraps(original)
    def calls(*args: Any, **kwargs: Any) -> Any:
        if point.side == "before":
            rig.passes(point, lambda: repr((args, kwargs)))
        result = original(*args, **kwargs)
        if point.side == "after":
            rig.passes(point, lambda: repr((args, kwargs, result)))
        return result

    return calls
