"""The guards behind the guards: what the database and the epochs refuse, even if all before them failed."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from agents_runtime import ledger, records, thread_lock
from agents_runtime.errors import StaleEpoch
from agents_runtime.models import Run, ToolExecution
from agents_runtime.thread_state import GateStop
from tests.chaos.mutants import MUTANTS, Mutant
from tests.runtime.driving import APPROVE, answer, attempts, call, pending, script, start
from tests.servers import PROJECT

pytestmark = pytest.mark.usefixtures("runtime")


@pytest.fixture
def paid(runtime: None) -> Run:
    """A run that has paid once."""
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    run = answer(pending(run), APPROVE)
    assert run.status == "finished", run.error
    return run


def again(attempt: ToolExecution, /, **changes: object) -> None:
    """Store a copy of an attempt, with changes, behind everybody's back."""
    fields = {field.attname: getattr(attempt, field.attname) for field in attempt._meta.concrete_fields}
    del fields["id"]
    with transaction.atomic():
        ToolExecution.objects.create(**fields | changes)


@pytest.mark.parametrize(
    ("changes", "guard"),
    [
        ({"status": "started"}, "execution_attempt_is_one"),
        ({"attempt": 2}, "execution_happens_once"),
        ({"attempt": 2, "status": "asserted"}, "execution_happens_once"),
    ],
)
def test_the_database_takes_a_call_once(paid: Run, changes: dict[str, object], guard: str) -> None:
    (attempt,) = attempts(paid)
    with pytest.raises(IntegrityError, match=guard):
        again(attempt, **changes)


def test_the_database_takes_one_attempt_at_a_time(paid: Run) -> None:
    (attempt,) = attempts(paid)
    again(attempt, call_key="another", status="started")
    with pytest.raises(IntegrityError, match="execution_one_attempt_at_a_time"):
        again(attempt, call_key="another", status="suspended", attempt=2)


def test_the_thread_of_a_run_is_held_by_one_worker_at_a_time(paid: Run) -> None:
    with thread_lock.hold(paid.pk) as first:
        assert first is not None
        other = thread_lock._own.connection
        thread_lock._own.connection = None  # as another worker would, over a connection of its own
        with thread_lock.hold(paid.pk) as second:
            assert second is None
        thread_lock.close()
        thread_lock._own.connection = other


def test_whoever_takes_the_thread_shuts_out_who_held_it_before(paid: Run) -> None:
    with thread_lock.hold(paid.pk) as epoch:
        assert epoch is not None
        with transaction.atomic():
            records.lock_run(paid.pk, epoch)
        with pytest.raises(StaleEpoch), transaction.atomic():
            records.lock_run(paid.pk, epoch - 1)


def test_a_worker_of_an_old_epoch_opens_no_call(runtime: None) -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    Run.objects.filter(pk=run.pk).update(status="running")
    stopped = ledger.open_call(
        ledger.Call(
            run_id=run.pk,
            epoch=run.epoch - 1,
            tool="pay",
            tool_call_id="call_0_0",
            namespace="",
            arguments={"to": "a", "amount": 1},
            interrupt_ids=(),
        )
    )
    assert isinstance(stopped, GateStop)
    assert stopped.kind == "stale"
    assert not attempts(run)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_the_guard_that_a_mutant_takes_out_stands_there_once(mutant: Mutant) -> None:
    assert (PROJECT / mutant.file).read_text().count(mutant.old) == 1
