"""One run in one process: through the runtime, beside the same agent on bare LangGraph

The runtime runs once with a desk that does nothing, and once with the real one: tasks, evidence, hints.
"""

from typing import Any

from django.conf import settings
from django.db import connection, transaction

from agents_runtime import runs, steps
from agents_runtime.desk import get_desk
from agents_runtime.models import Pause, Run
from agents_runtime.states import RunStatus
from reviewer import decisions
from reviewer.accounts.models import User
from reviewer.models import ReviewTask
from tests.bench.bare import Bare, make_tables
from tests.bench.figures import Times, beside, in_turn
from tests.bench.product import AGENT, APPROVE, INPUT, Product

ROUNDS = 40
REAL_DESK = settings.COUNTERSIGN_DESK


class EmptyDesk:
    """Hears everything and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return _nothing


def _nothing(*_: Any) -> None:
    pass


def measure(product: Product) -> None:
    owner_url = (product.home.read("owner.dsn") or "").strip()
    make_tables(owner_url)
    bare = Bare(owner_url)
    decider = User.objects.get(username="reviewer")
    starter = User.objects.get(username="developer")

    def with_empty_desk(times: Times) -> None:
        _use_desk(f"{__name__}.EmptyDesk")
        with times.taking("start to pause"):
            run = _start(starter)
        pause = Pause.objects.get(run=run)
        with times.taking("answer to finish"):
            with transaction.atomic():
                runs.answer(runs.lock_pause(pause.pk), [APPROVE])
            steps.advance(run.pk)
        _check_end(run)

    def with_real_desk(times: Times) -> None:
        _use_desk(REAL_DESK)
        with times.taking("start to pause"):
            run = _start(starter)
        task = ReviewTask.objects.get(run=run)
        with times.taking("answer to finish"):
            decisions.decide(task.pk, by=decider, answer=APPROVE, digest=task.digest)
            steps.advance(run.pk)
        _check_end(run)

    contenders = {"bare": bare.cycle, "runtime, empty desk": with_empty_desk, "the product": with_real_desk}
    beside(in_turn(contenders, rounds=ROUNDS), baseline="bare")
    connection.close()


def _use_desk(name: str) -> None:
    settings.COUNTERSIGN_DESK = name
    get_desk.cache_clear()


def _start(starter: User) -> Run:
    run = runs.start(AGENT, input=INPUT, requested_by=f"user:{starter.pk}")
    steps.advance(run.pk)
    return run


def _check_end(run: Run) -> None:
    run.refresh_from_db(fields=["status"])
    assert run.status == RunStatus.FINISHED
