"""The whole product under fire: a real worker with its children, two schedulers, and servers that fail.

Whoever dies is started again at once, as ``make run`` does it. A seed fixes what is asked, how it is decided
and which faults come in which order; when each of them strikes depends on the machine.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import connection
from psycopg_pool import PoolTimeout

from agents_runtime.attempts import in_doubt
from agents_runtime.models import Run
from agents_runtime.recovery import with_work
from reviewer.models import Decision, ReviewTask
from tests.cast import make_cast
from tests.chaos import books
from tests.chaos.failpoints import FAILPOINTS, OF_PART, Failpoint, Fired, Trigger
from tests.chaos.invariants import Told
from tests.chaos.nursery import Nursery, nursery
from tests.chaos.people import AGENTS, Ask, People
from tests.chaos.report import Report, say
from tests.chaos.rigged import folder
from tests.chaos.stages import Play
from tests.chaos.world import PATIENCE, World
from tests.processes import Process

POINTS = OF_PART["product"]
"""Those that only the whole product passes; of the others ``deaths`` sees to it that each is reached."""
OF_WORKERS = [point for point in FAILPOINTS if point.who == "worker"]
PARENTS_DEATHS = 6
"""Of a schedule that shall reach the points of parents; else two."""
OF_SWEEPERS = [point for point in FAILPOINTS if point.who in {"sender", "sweeper"}]
RUNS_AT_ONCE = 4
ARMED_AT_ONCE = 6
MOMENT, GLANCE = 0.1, 0.05
HANG_SECONDS = 3.0
SCHEDULE_SECONDS = 600.0
UNREACHED_SECONDS = 15.0
SPOILT_SHARE = "0.3"
HOUR = 3600.0
ENDED = ("finished", "cancelled")
POOLS = ("prefork", "prefork", "threads")


class Company:
    """The processes of the product; those that die are started again."""

    def __init__(self, pool: str, report: Report) -> None:
        self.pool = pool
        self._report = report
        worker = ("worker", "--without-gossip", "--without-mingle", f"--pool={pool}", "--concurrency=2")
        self._processes = [
            self._process(f"worker-{pool}", *worker, "--loglevel=INFO", ready=" ready."),
            *(self._process(f"scheduler-{number}", "scheduler", ready="is ready") for number in (1, 2)),
        ]
        self._new = set(self._processes)
        self._is_over = threading.Event()
        self._keepers = [threading.Thread(target=self._keep, args=(process,)) for process in self._processes]

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep all of it running."""
        for keeper in self._keepers:
            keeper.start()
        try:
            yield
        finally:
            self._is_over.set()
            for keeper in self._keepers:
                keeper.join()
            for process in self._processes:
                process.kill()

    def _keep(self, process: Process) -> None:
        while not self._is_over.is_set():
            with contextlib.suppress(AssertionError):  # it died again before it was ready
                self._ensure(process)
            self._is_over.wait(MOMENT)

    def _ensure(self, process: Process) -> None:
        if process.is_running:
            return
        is_first, began = process in self._new, time.monotonic()
        process.ensure()
        self._new.discard(process)
        if not is_first and process is self._processes[0]:
            self._report.restarts.append(time.monotonic() - began)

    def _process(self, name: str, *command: str, ready: str) -> Process:
        rigged = [sys.executable, "-m", "tests.chaos.rigged", *command]
        return Process(
            name,
            rigged,
            ready=ready,
            COUNTERSIGN_LOG_LEVEL="INFO",
            CHAOS_SEED=name,
            PYTHONDONTWRITEBYTECODE="",  # where this is set, each start would compile the product anew
        )


class Watch(threading.Thread):
    """Looks many times a second whether something is so, while people go on; ``seen_at``: since when."""

    def __init__(self, is_so: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.seen_at = 0.0
        self._is_so, self._is_over = is_so, threading.Event()
        self.start()

    def run(self) -> None:
        """Look until it is so."""
        while not self.seen_at and not self._is_over.wait(GLANCE):
            try:
                if self._is_so():
                    self.seen_at = time.time()
            except (DatabaseError, PoolTimeout):
                connection.close()
        connection.close()

    def stop(self) -> None:
        """Stop looking."""
        self._is_over.set()


class Schedule:
    """Some runs at a time, and the faults of one seed, one after the other."""

    def __init__(
        self, seed: int, wanted: Sequence[str], *, pool: str, world: World, crew: Nursery, report: Report
    ) -> None:
        self._chance = random.Random(seed)
        self._pool, self._world, self._crew, self._report = pool, world, crew, report
        self._trigger = Trigger(folder())
        self._people = People(make_cast(), self._chance)
        self._numbers = itertools.count()
        self._agents = itertools.cycle(self._chance.sample(AGENTS, len(AGENTS)))
        self._told: list[Told] = []
        self._faults = self._plan(PARENTS_DEATHS if wanted else 2)
        self._end = time.monotonic() + SCHEDULE_SECONDS

    def play(self) -> list[str]:
        """Let everything go wrong, then let it come to its end; return what does not balance."""
        (folder() / "post").write_text(SPOILT_SHARE)
        for fault in self._faults:
            fault()
        for name in ("post", "clock"):
            (folder() / name).unlink(missing_ok=True)
        self._trigger.disarm()
        if not self._live_until(self._all_ended, wants_more=False, seconds=PATIENCE):
            return [f"I-5 a run does not end: {run.pk} {run.status} {run.error}" for run in _unfinished()]
        self._report.runs += Run.objects.count()
        self._report.decisions += Decision.objects.count()
        return books.check(self._told, reader=self._people.token())

    def _plan(self, parents_deaths: int) -> list[Callable[[], None]]:
        faults: list[Callable[[], None]] = [
            partial(self._kill, OF_WORKERS, whole=False),
            partial(self._kill, OF_WORKERS, whole=False),
            partial(self._kill, OF_WORKERS, whole=True),
            partial(self._kill, OF_SWEEPERS, whole=False),
            *(partial(self._kill_parent) for _ in range(parents_deaths)),
        ]
        faults += [
            partial(self._strike, name, blow)
            for name, blow in (
                ("valkey is emptied", self._world.empty_valkey),
                ("valkey is killed", self._world.restart_valkey),
                ("valkey hangs", self._pause_valkey),
                ("postgres is killed", self._world.restart_postgres),
                ("backends are ended", self._world.end_backends),
                ("locks are lost", partial(self._world.end_backends, "countersign thread")),
                ("clocks jump", partial(self._set_clock, self._chance.choice([HOUR, -HOUR]))),
            )
        ]
        self._chance.shuffle(faults)
        return faults

    def _kill_parent(self) -> None:
        """Let a worker die at the point of parents that was reached least: the first one hides the other."""
        least = min(POINTS, key=lambda point: (self._report.deaths[point.name], self._chance.random()))
        self._kill([least], whole=True)

    def _kill(self, points: list[Failpoint], *, whole: bool) -> None:
        """Let somebody die at one of the points, alone or with the whole worker; see the work go on."""
        self._trigger.arm(self._chance.sample(points, min(len(points), ARMED_AT_ONCE)), whole=whole)
        self._live_until(lambda: self._trigger.fired() is not None, seconds=UNREACHED_SECONDS)
        fired = self._trigger.fired()
        self._trigger.disarm()
        if fired is None:
            return
        who = "whole worker" if whole or self._pool == "threads" else "child"
        self._report.deaths[fired.name] += 1
        if points is OF_SWEEPERS:
            self._report.faults["death of a sweeper"] += 1
        else:
            self._report.faults[f"death of a {who}"] += 1
            self._recover(fired, f"{who}, {self._pool}")

    def _recover(self, fired: Fired, who: str) -> None:
        left = {UUID(fired.run)} if fired.run else set(with_work().values_list("pk", flat=True))
        settled = dict(Run.objects.filter(pk__in=left).values_list("pk", "settled_epoch"))

        def is_recovered() -> bool:
            waiting = with_work().filter(pk__in=settled).values_list("pk", "settled_epoch")
            return all(epoch > settled[run] for run, epoch in waiting)

        watch = Watch(is_recovered)
        if not self._live_until(lambda: watch.seen_at > 0):
            watch.stop()
            raise AssertionError(f"I-5 nobody took over after {fired}")
        seconds = watch.seen_at - fired.at
        self._report.recovered(who, seconds)
        say(f"  died at {fired.name} ({who}): work again after {seconds:.1f} s")

    def _strike(self, name: str, blow: Callable[[], object]) -> None:
        """Let a fault strike, and people and runs go on."""
        self._report.faults[name] += 1
        blow()
        self._live_for_decisions(3)

    def _pause_valkey(self) -> None:
        self._world.pause_valkey()
        threading.Timer(HANG_SECONDS, self._world.go_on_valkey).start()

    def _set_clock(self, seconds: float) -> None:
        (folder() / "clock").write_text(str(seconds))

    def _live_for_decisions(self, count: int) -> None:
        enough = len(self._told) + count
        self._live_until(lambda: len(self._told) >= enough)

    def _live_until(
        self, is_so: Callable[[], bool], *, wants_more: bool = True, seconds: float = PATIENCE
    ) -> bool:
        """Start runs and decide what is open until something is so; say whether it came to that."""
        end = min(time.monotonic() + seconds, self._end)
        while time.monotonic() < end:
            try:
                if is_so():
                    return True
                self._live(wants_more=wants_more)
            except (DatabaseError, PoolTimeout):
                connection.close()
            time.sleep(MOMENT)
        return False

    def _live(self, *, wants_more: bool) -> None:
        """Do one thing that people do: start a run, retry a failed one, settle a doubt, decide a task."""
        if wants_more and Run.objects.exclude(status__in=ENDED).count() < RUNS_AT_ONCE:
            self._ask(self._people.start(next(self._agents), self._numbers))
        elif failed := Run.objects.filter(status="failed").first():
            self._report.faults[f"retried: {failed.error[:60]}"] += 1
            self._ask(self._people.retry(failed))
        elif doubted := Run.objects.filter(status="in_doubt").first():
            for attempt in in_doubt(doubted):
                self._ask(self._people.settle(attempt))
        elif tasks := list(ReviewTask.objects.filter(status="open").order_by("created_at", "position")):
            self._ask(*self._people.decide(self._chance.choice(tasks)))

    def _ask(self, *asks: Ask) -> None:
        """Ask at once, and each again with the same key until there is an answer."""
        for ask, first in zip(asks, self._crew.work(*[ask.job() for ask in asks]), strict=True):
            self._told.append(ask.told(self._crew.insist(ask.job(), first)))

    def _all_ended(self) -> bool:
        return not _unfinished()


def _unfinished() -> list[Run]:
    return list(Run.objects.exclude(status__in=ENDED))


@contextlib.contextmanager
def stage(world: World) -> Iterator[Play]:
    """Be ready to play schedules."""
    with nursery() as crew:

        def play(seed: int, wanted: Sequence[str], report: Report) -> list[str]:
            pool = POOLS[seed % len(POOLS)]
            world.go_on_valkey()
            with Company(pool, report).at_work():
                schedule = Schedule(seed, wanted, pool=pool, world=world, crew=crew, report=report)
                return schedule.play()

        yield play
