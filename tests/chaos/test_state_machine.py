"""Every order of verbs: run, pause, task and decision keep to their tables, and the books balance after each.

Hypothesis chooses who does what next: start, bring forward, die, claim, release, decide (also late, twice and
on an old card), let time run out, cancel, retry, settle, sweep. What the tables do not allow must be refused
with the error that says so; whatever was allowed must leave every invariant true.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Mapping
from typing import Any, cast

import psycopg
import pytest
from django.db.models.functions import Now
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agents_runtime import recovery, runs, states
from agents_runtime.attempts import in_doubt
from agents_runtime.canonical import decode
from agents_runtime.errors import WrongState
from agents_runtime.models import Pause, Run, ToolExecution
from reviewer import claims, decisions
from reviewer.accounts.models import User
from reviewer.errors import Conflict, NotAllowed, NotFound
from reviewer.expiry import expire_due
from reviewer.models import ReviewTask
from reviewer.models.tasks import TASK_TRANSITIONS
from tests.agents import effects
from tests.cast import make_cast
from tests.chaos import invariants
from tests.chaos.invariants import Told
from tests.database import wipe
from tests.runtime.crashing import KILLED, advance_in_child
from tests.runtime.driving import advance, call, script
from tests.servers import servers

pytestmark = pytest.mark.usefixtures("runtime", "workers_that_die")
EXAMPLES, STEPS = 8, 20
MAX_RUNS, MAX_ROUNDS = 2, 30
AGENTS = ("t-per-call", "t-batched")
ENDED = ("finished", "cancelled", "failed")
ONLY_AT_REST = ("I-5 no run is left", "I-7 every decision and every run", "I-8")
ANSWERS: tuple[Any, ...] = ({"type": "approve"}, {"type": "reject", "message": "no"}, {"type": "approve"})
DEATHS = (
    ("agents_runtime.engine:Engine:step", "", "before"),
    ("agents_runtime.engine:Engine:step", "", "after"),
    ("agents_runtime.checkpointer:FencedSaver:put_writes", "", "after"),
    ("reviewer.intake:Desk:delivery_started", "", "after"),
    ("reviewer.intake:Desk:tool_started", "", "after"),
)
TABLES: tuple[tuple[type[Any], Mapping[str, frozenset[str]]], ...] = (
    (Run, states.RUN_TRANSITIONS),
    (Pause, states.PAUSE_TRANSITIONS),
    (ToolExecution, states.EXECUTION_TRANSITIONS),
    (ReviewTask, TASK_TRANSITIONS),
)
which = st.integers(min_value=0, max_value=20)
somebody = st.sampled_from(["reviewer", "reviewer2", "developer", "outsider"])


def reachable(model: Any, old: str) -> frozenset[str]:
    """Return every status that may follow ``old`` sooner or later, itself included."""
    table = dict(TABLES)[model]
    found, open_ends = {old}, [old]
    while open_ends:
        new = table[open_ends.pop()] - found
        found |= new
        open_ends += new
    return frozenset(found)


class Lifetime(RuleBasedStateMachine):
    """A few runs, and everybody who has to do with them; ``link`` sees what the product does not show."""

    def __init__(self, link: psycopg.Connection[Any]) -> None:
        super().__init__()
        self._link = link

    def _balance(self) -> list[str]:
        """Return the counter-examples of every invariant."""
        invariants.load(self._link, effects=effects.all_effects(), told=self.told, listed=())
        found = invariants.violations(self._link)
        self._link.commit()
        return found

    @initialize()
    def nothing_yet(self) -> None:
        """Begin with people and no runs."""
        wipe()
        effects.clear()
        self.people = make_cast().people
        self.told: list[Told] = []
        self.numbers = itertools.count()
        self.seen: dict[tuple[type[Any], Any], str] = {}

    @precondition(lambda _: Run.objects.count() < MAX_RUNS)
    @rule(agent=st.sampled_from(AGENTS), calls=st.integers(min_value=1, max_value=2))
    def start(self, agent: str, calls: int) -> None:
        """Start a run."""
        developer = self.people["developer"]
        turn = [call("pay", to="a", amount=next(self.numbers)) for _ in range(calls)]
        run = runs.start(agent, input=script(turn), requested_by=developer.reference)
        reply = {"id": str(run.pk)}
        self.told.append(Told(f"start {run.pk}", "runs", developer.pk, None, 201, reply))

    @precondition(lambda _: Run.objects.exclude(status__in=ENDED).exists())
    @rule(number=which)
    def work(self, number: int) -> None:
        """Let a worker bring a run forward."""
        if run := pick(Run.objects.exclude(status__in=ENDED), number):
            assert advance(run).status not in {"queued", "running"}

    @precondition(lambda _: recovery.with_work().exists())
    @rule(number=which, point=st.sampled_from(DEATHS))
    def die(self, number: int, point: tuple[str, str, str]) -> None:
        """Let a worker die while it brings a run forward."""
        if run := pick(recovery.with_work(), number):
            assert advance_in_child(run, *point) in {0, KILLED}

    @precondition(lambda _: recovery.with_work().exists())
    @rule(number=which)
    def tear_down(self, number: int) -> None:
        """End a worker in the middle of a tool: what the tool did, nobody knows."""
        effects.flag("exit_after_pay" if number % 2 else "exit_pay").touch()
        try:
            if run := pick(recovery.with_work(), number):
                advance(run)
        finally:
            for name in ("exit_after_pay", "exit_pay"):
                effects.flag(name).unlink(missing_ok=True)

    @precondition(lambda _: ReviewTask.objects.exists())
    @rule(number=which, who=somebody)
    def claim(self, number: int, who: str) -> None:
        """Claim a task."""
        task, person = pick(ReviewTask.objects, number), self.people[who]
        assert task is not None
        may = task.is_open and who.startswith("reviewer") and is_held_by_none_but(task, person)
        assert attempt(lambda: claims.claim(task.pk, by=person)) == may

    @precondition(lambda _: ReviewTask.objects.open().exclude(claimed_by=None).exists())
    @rule(number=which)
    def let_go(self, number: int) -> None:
        """Give a claimed task back."""
        task = pick(ReviewTask.objects.open().exclude(claimed_by=None), number)
        assert task is not None
        assert task.claimed_by is not None
        assert attempt(lambda: claims.release(task.pk, by=task.claimed_by))

    @precondition(lambda _: ReviewTask.objects.exists())
    @rule(number=which, who=somebody, answer=st.sampled_from(ANSWERS), is_stale=st.integers(0, 9))
    def decide(self, number: int, who: str, answer: Any, is_stale: int) -> None:
        """Decide a task, open or not, on the card as it is or on an older one."""
        task, person = pick(ReviewTask.objects, number), self.people[who]
        assert task is not None
        may = (
            task.is_open and who.startswith("reviewer") and is_held_by_none_but(task, person) and is_stale > 0
        )
        digest = task.digest if is_stale else "0" * 64
        done = attempt(lambda: decisions.decide(task.pk, by=person, answer=answer, digest=digest, via="api"))
        assert done == may
        status = 200 if done else 409
        key = f"decide {len(self.told)}"
        self.told.append(Told(key, f"tasks/{task.pk}/decision", person.pk, answer, status, {"id": key}))

    @precondition(lambda _: ReviewTask.objects.open().filter(due_at=None).exists())
    @rule(number=which, on_expiry=st.sampled_from(["hold", "reject"]))
    def run_out_of_time(self, number: int, on_expiry: str) -> None:
        """Let the time of a task run out: it is held or rejected, and never approved."""
        task = pick(ReviewTask.objects.open().filter(due_at=None), number)
        assert task is not None
        ReviewTask.objects.filter(pk=task.pk).update(due_at=Now(), on_expiry=on_expiry, expiry_label="a rule")
        expire_due()
        task.refresh_from_db()
        assert task.status in {"open", "expired"}

    @precondition(lambda _: Run.objects.exists())
    @rule(number=which, is_meant=st.integers(0, 3))
    def cancel(self, number: int, is_meant: int) -> None:
        """Cancel a run, whatever it does; seldom, because little can follow."""
        run = pick(Run.objects, number)
        assert run is not None
        if is_meant == 0:
            assert attempt(lambda: runs.cancel(run.pk)) == (run.status not in {"finished", "cancelled"})

    @precondition(lambda _: Run.objects.exists())
    @rule(number=which)
    def retry(self, number: int) -> None:
        """Ask for one more try; refused unless something failed."""
        run = pick(Run.objects.filter(status="failed"), number) or pick(Run.objects, number)
        assert run is not None
        done = attempt(lambda: runs.retry(run.pk))
        assert done or run.status != "failed"

    @precondition(lambda _: Run.objects.exists())
    @rule(number=which)
    def settle(self, number: int) -> None:
        """Say what became of an attempt in doubt, by its traces; refused where nothing is in doubt."""
        run = pick(Run.objects.filter(status="in_doubt"), number) or pick(Run.objects, number)
        assert run is not None
        assert attempt(lambda: tell_the_truth(run)) == (run.status == "in_doubt")

    @precondition(lambda _: recovery.with_work().exists())
    @rule()
    def sweep(self) -> None:
        """Sweep twice: what is found the second time was found the first time."""
        long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
        Run.objects.filter(pk__in=recovery.with_work()).update(updated_at=long_ago, nudged_at=None)
        assert recovery.sweep() == recovery.with_work().count()
        assert recovery.sweep() == 0

    @invariant()
    def every_change_is_in_the_tables(self) -> None:
        """Each status came from the one before by the table's changes."""
        for model, _ in TABLES:
            for key, status in model.objects.values_list("pk", "status"):
                old = self.seen.setdefault((model, key), status)
                assert status in reachable(model, old), (model.__name__, old, status)
                self.seen[model, key] = status

    @invariant()
    def the_books_balance(self) -> None:
        """No invariant has a counter-example, but for those that speak of a product at rest."""
        found = [one for one in self._balance() if not one.startswith(ONLY_AT_REST)]
        assert not found, found

    def teardown(self) -> None:
        """Let everybody finish: nothing is stuck, and everything balances."""
        for _ in range(MAX_ROUNDS):
            left = Run.objects.exclude(status__in=["finished", "cancelled"])
            if not left:
                break
            for run in left:
                self._finish(run)
        assert not Run.objects.exclude(status__in=["finished", "cancelled"])
        self.every_change_is_in_the_tables()
        found = [one for one in self._balance() if not one.startswith("I-8")]
        assert not found, found

    def _finish(self, run: Run) -> None:
        run = advance(run)
        if run.status == "failed":
            runs.retry(run.pk)
        if run.status == "in_doubt":
            tell_the_truth(run)
        for task in ReviewTask.objects.filter(run=run, status="open"):
            person = task.claimed_by or self.people["reviewer"]
            decisions.decide(task.pk, by=person, answer=ANSWERS[0], digest=task.digest, via="api")
            path = f"tasks/{task.pk}/decision"
            self.told.append(Told(f"end {task.pk}", path, person.pk, ANSWERS[0], 200, {"id": "end"}))


def pick(found: Any, number: int) -> Any:
    """Return one of what was found, in a fixed order; None of nothing."""
    rows = list(found.order_by("created_at", "pk"))
    return rows[number % len(rows)] if rows else None


def is_held_by_none_but(task: ReviewTask, person: User) -> bool:
    """Say whether nobody else holds the task now, by the database's clock."""
    return (
        not ReviewTask.objects.open().filter(pk=task.pk, claimed_until__gt=Now()).exclude(claimed_by=person)
    )


def attempt(verb: Callable[[], object]) -> bool:
    """Say whether a verb did it, or was refused with the error that says so."""
    try:
        verb()
    except (Conflict, NotAllowed, NotFound, WrongState):
        return False
    return True


def tell_the_truth(run: Run) -> None:
    """Settle an attempt by what its tool's traces say."""
    doubted = in_doubt(run).first()
    happened = doubted is not None and effects.count(doubted.tool, **decode(doubted.arguments)) > 0
    execution = doubted.pk if doubted else None
    runs.settle(run.pk, outcome="happened" if happened else "run_again", execution_id=execution)


def test_every_order_of_verbs_keeps_the_tables_and_the_books() -> None:
    with psycopg.connect(servers().superuser_url) as link:
        invariants.prepare(link)
        _play(link)


def _play(link: psycopg.Connection[Any]) -> None:
    run_state_machine_as_test(
        cast(Any, lambda: Lifetime(link)),  # it takes any factory
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],  # a failure is told as it is found: shrinking it would take many minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
