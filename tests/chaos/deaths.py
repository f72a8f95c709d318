"""Single deaths: one run at a time, in forked processes that die at chosen points, the same for one seed.

Workers, web processes and sweepers are forks of the nursery, so that hundreds of deaths take a minute.
Messages are played by the schedule: they come, come twice at once, or do not come.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence

from django.db import connection

from agents_runtime import thread_lock
from agents_runtime.attempts import in_doubt
from agents_runtime.models import Run
from reviewer.models import Decision, ReviewTask
from tests.cast import make_cast
from tests.chaos import books
from tests.chaos.failpoints import OF_PART, Failpoint, Trigger
from tests.chaos.invariants import Told
from tests.chaos.nursery import Ended, Job, Nursery, nursery
from tests.chaos.people import AGENTS, ASYNC_AGENTS, Ask, People
from tests.chaos.report import Report
from tests.chaos.rigged import folder
from tests.chaos.stages import Play
from tests.chaos.world import World, wait_until

POINTS = OF_PART["deaths"]
DOUBTS = {"attempt.committed", "effect.before", "effect.after", "ending.written"}
"""Who dies there leaves an attempt in doubt."""
POINTS_EACH = 16
"""With more of them, the early ones of a step would leave the late ones few chances."""
MAX_ROUNDS = 80
MAX_DEATHS_IN_A_ROW = 3
MAX_ARMED = 3
ENDED = ("finished", "cancelled")


class Schedule:
    """One run from its start to its end, with everything that a seed lets go wrong.

    ``wanted`` are the points that were reached least so far, those first; without them the seed chooses.
    """

    def __init__(
        self, seed: int, wanted: Sequence[str], *, crew: Nursery, trigger: Trigger, report: Report
    ) -> None:
        self._chance = random.Random(seed)
        self._crew, self._trigger, self._report = crew, trigger, report
        self._people = People(make_cast(), self._chance)
        self._agent, self._points = self._sample(seed, wanted)
        self._told: list[Told] = []
        self._deaths_in_a_row = 0

    def play(self) -> list[str]:
        """Let the run go wrong until it ends all the same; return what does not balance."""
        told = self._ask(self._people.start(self._agent, itertools.count()))
        run = Run.objects.get(pk=told.reply["id"])
        for _ in range(MAX_ROUNDS):
            self._work(run)
            run.refresh_from_db()
            if run.status in ENDED:
                break
            self._decide(run)
        self._work(run, quietly=True)
        run.refresh_from_db()
        if run.status not in ENDED:
            return [f"the run does not end: {run.status} {run.error}"]
        self._report.runs += 1
        self._report.decisions += Decision.objects.count()
        return books.check(self._told, reader=self._people.token())

    def _sample(self, seed: int, wanted: Sequence[str]) -> tuple[str, list[Failpoint]]:
        """Return an agent, and points that it passes."""
        rank = {name: place for place, name in enumerate(wanted)}
        for agent in AGENTS[seed % len(AGENTS) :] + AGENTS:
            passed = passed_by(agent)
            points = [point for point in passed if point.name in rank]
            if points or not wanted:
                break
        points = sorted(points, key=lambda point: rank[point.name])[:POINTS_EACH]
        points = points or self._chance.sample(passed, POINTS_EACH)
        if any(point.name == "settlement.written" for point in points):
            points += [point for point in passed if point.name in DOUBTS and point not in points]
        return agent, points

    def _work(self, run: Run, *, quietly: bool = False) -> None:
        """Let a message come, come twice at once, or be lost and found by the sweep."""
        job: Job = {"do": "advance", "run": str(run.pk)}
        jobs, choice = [job], self._chance.random()
        lost = 0.4 if any(point.who == "sweeper" for point in self._points) else 0.15
        if quietly:
            self._die_at([], jobs)
            return
        if choice < 0.2:
            jobs = [job, job]
            self._report.faults["doubled message"] += 1
        elif choice < 0.2 + lost:
            self._report.faults["lost message"] += 1
            self._let_time_pass(run)
            self._die_at(self._choose("sweeper", "sender"), [{"do": "sweep"}])
        elif choice < 0.3 + lost:
            jobs = [{**job, "seconds": self._chance.uniform(0.001, 0.3)}]
        self._die_at(self._choose("worker"), jobs)
        free = thread_lock.lock_key(run.pk)
        wait_until(lambda: free not in thread_lock.held_keys(), "the server knows that the worker is dead")

    def _decide(self, run: Run) -> None:
        if self._chance.random() < (
            0.2 if any(point.name == "cancel.written" for point in self._points) else 0.01
        ):
            self._ask(self._people.cancel(run))
            return
        if run.status == "failed":
            self._ask(self._people.retry(run))
        for attempt in in_doubt(run) if run.status == "in_doubt" else ():
            self._ask(self._people.settle(attempt))
        for task in ReviewTask.objects.filter(run=run, status="open").order_by("created_at", "position"):
            if self._chance.random() < 0.7:
                self._ask(*self._people.decide(task))

    def _ask(self, *asks: Ask) -> Told:
        """Ask at once, and each again with the same key for as long as the process that was asked dies."""
        points = self._choose("person", "sender")
        for ask, first in zip(asks, self._die_at(points, [ask.job() for ask in asks]), strict=True):
            self._told.append(ask.told(self._crew.insist(ask.job(), first)))
        return self._told[-1]

    def _choose(self, *who: str) -> list[Failpoint]:
        """Return some points that such a process may pass and that this schedule has not reached yet.

        They are few: whoever dies early leaves the later points no chance.
        """
        if self._deaths_in_a_row >= MAX_DEATHS_IN_A_ROW or self._chance.random() < 0.1:
            return []
        fitting = [point for point in self._points if point.who in who]
        return self._chance.sample(fitting, min(len(fitting), self._chance.randint(1, MAX_ARMED)))

    def _die_at(self, points: list[Failpoint], jobs: list[Job]) -> list[Ended]:
        """Do jobs with points armed; a point that was reached does not come again in this schedule."""
        if points:
            self._trigger.arm(points)
        ended = self._crew.work(*jobs)
        died = sum(one.was_killed for one in ended)
        self._deaths_in_a_row = self._deaths_in_a_row + 1 if died else 0
        fired = self._trigger.fired()
        self._trigger.disarm()
        if fired is not None:
            self._report.deaths[fired.name] += 1
            self._points = [point for point in self._points if point.name != fired.name]
        if died > (fired is not None):
            self._report.faults["death anywhere"] += died - (fired is not None)
        return ended

    def _let_time_pass(self, run: Run) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE agents_runtime_run SET updated_at = now() - interval '1 minute', nudged_at = NULL"
                " WHERE id = %s",
                [run.pk],
            )


def passed_by(agent: str) -> list[Failpoint]:
    """Return the points that a run of this agent may pass."""
    kind = "async" if agent in ASYNC_AGENTS else "sync"
    return [point for point in POINTS if point.agents in {"", kind}]


@contextlib.contextmanager
def stage(world: World) -> Iterator[Play]:
    """Be ready to play schedules."""
    trigger = Trigger(folder())
    with nursery() as crew:

        def play(seed: int, wanted: Sequence[str], report: Report) -> list[str]:
            return Schedule(seed, wanted, crew=crew, trigger=trigger, report=report).play()

        yield play
