"""Crowds: everything is asked and sent twice at once, and a worker stands still on its way; nobody dies.

Even seeds: the second worker finds the thread held, whatever the first one is at; nobody may ever be asked
what became of a tool. Odd seeds: the worker that stands still loses its lock without noticing, another one
takes the thread over, and then the first goes on.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db import connection

from agents_runtime import thread_lock
from agents_runtime.models import Run, ToolExecution
from tests.chaos import deaths
from tests.chaos.failpoints import OF_PART, Trigger
from tests.chaos.invariants import Told
from tests.chaos.nursery import Job, Nursery, nursery
from tests.chaos.people import Ask
from tests.chaos.report import Report
from tests.chaos.rigged import folder
from tests.chaos.stages import Play
from tests.chaos.world import World, wait_until

POINTS = OF_PART["crowds"]
"""None dies, so none is counted."""
AT_A_TOOL = (
    "effect.before",
    "attempt.begins",
    "effect.after",
    "ending.begins",
    "attempt.committed",
    "ending.committed",
)
ELSEWHERE = (
    "lock.taken",
    "thread.read",
    "turn.begins",
    "turn.committed",
    "step.before",
    "step.after",
    "checkpoint.before",
    "async-checkpoint.before",
    "unlock.before",
)
"""Where a worker may stand still without holding rows that the other one needs."""
DOUBLED_SHARE, AT_A_TOOL_SHARE = 0.4, 0.8


class Schedule(deaths.Schedule):
    """One run that everybody is at at once."""

    def __init__(self, seed: int, *, world: World, crew: Nursery, trigger: Trigger, report: Report) -> None:
        super().__init__(seed, [], crew=crew, trigger=trigger, report=report)
        self._world = world
        self._is_peaceful = seed % 2 == 0
        self._points = []
        passed = {point.name: point for point in deaths.passed_by(self._agent)}
        self._at_a_tool = [passed[name] for name in AT_A_TOOL if name in passed]
        self._elsewhere = [passed[name] for name in ELSEWHERE if name in passed]
        self._chance.shuffle(self._elsewhere)

    def play(self) -> list[str]:
        """Let everything come twice; where no lock is lost, nothing may be in doubt."""
        found = super().play()
        doubted = ToolExecution.objects.filter(in_doubt_since__isnull=False)
        if self._is_peaceful and doubted.exists():
            found.append(f"I-1 an attempt is in doubt although its worker lived: {doubted.first()}")
        return found

    def _work(self, run: Run, *, quietly: bool = False) -> None:
        """Let a second worker come while the first one stands at some place."""
        if quietly:
            super()._work(run, quietly=True)
            return
        places = self._at_a_tool if self._may_run_a_tool(run) else self._elsewhere
        place = places[0]
        advance: Job = {"do": "advance", "run": str(run.pk)}
        if self._is_peaceful:
            second = [{**advance, "after": "reached", "opens": "taken-over"}]
        else:
            # Whoever brings the run forward does what the first one was about to do; whoever dies leaves it.
            is_about_to = place.name == "attempt.begins"
            do = "take_over" if is_about_to else self._chance.choice(["advance", "take_over"])
            second = [{**advance, "do": do, "after": "lock-lost", "opens": "taken-over"}]
        self._trigger.arm([place], stands=True)
        taker = threading.Thread(target=self._take_lock, args=(run.pk,))
        if not self._is_peaceful:
            taker.start()
        self._crew.work({**advance, "opens": "reached"}, *second)
        if not self._is_peaceful:
            taker.join()
        if self._trigger.fired() is not None:
            what = "doubled" if self._is_peaceful else "lock lost"
            self._report.faults[f"{what} at {place.name}"] += 1
        if self._trigger.fired() is not None or places is self._elsewhere:
            places.append(places.pop(0))
        self._trigger.disarm()

    def _may_run_a_tool(self, run: Run) -> bool:
        """Say whether a decision waits for its call, most of the time."""
        return self._chance.random() < AT_A_TOOL_SHARE and run.pauses.filter(status="answered").exists()

    def _take_lock(self, run_id: UUID) -> None:
        """Once the first worker stands still: end the session that holds its lock."""
        try:
            self._trigger.wait_at("reached")
            if self._trigger.fired() is not None:
                self._world.end_backends("countersign thread")
            key = thread_lock.lock_key(run_id)
            wait_until(lambda: key not in thread_lock.held_keys(), "the lock is free", seconds=10)
        finally:
            self._trigger.open("lock-lost")
            connection.close()

    def _ask(self, *asks: Ask) -> Told:
        """Ask, or ask twice at once with the same key."""
        if self._chance.random() < DOUBLED_SHARE:
            self._report.faults["doubled request"] += len(asks)
            asks = (*asks, *asks)
        return super()._ask(*asks)


@contextlib.contextmanager
def stage(world: World) -> Iterator[Play]:
    """Be ready to play schedules."""
    trigger = Trigger(folder())
    with nursery() as crew:

        def play(seed: int, _: Sequence[str], report: Report) -> list[str]:
            return Schedule(seed, world=world, crew=crew, trigger=trigger, report=report).play()

        yield play
