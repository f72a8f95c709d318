"""Writing together: by fewer statements the same is stored, in the same order, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any
from uuid import uuid4

import pytest
from django.db import DataError, IntegrityError, ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_runtime.compiled import SOME_ID, Compiled
from agents_runtime.models import AgentSpec, Pause, Run, RunStep
from agents_runtime.states import PauseStatus
from agents_runtime.writing import Write, insert, insert_if_new, insert_new, together, update, write
from reviewer.audit.record import Subject, record, record_all
from reviewer.models import AuditEvent

pytestmark = pytest.mark.usefixtures("db")
_error_of = Compiled(lambda run_id: Run.objects.only("error").filter(pk=run_id), SOME_ID)


@pytest.fixture
def run() -> Run:
    return make_run()


def make_run() -> Run:
    spec = AgentSpec.objects.create(name=f"a-{uuid4().hex}", source="nowhere", entry="a:b")
    return insert(Run(agent=spec, input="{}", requested_by="tests"))


def step(run: Run, key: str) -> RunStep:
    return RunStep(run=run, key=key, kind=RunStep.Kind.NODE, text="%s %% $1")


def pause(run: Run, name: str) -> Pause:
    return Pause(run=run, interrupt_id=name, kind=Pause.Kind.QUESTION, value="1")


def event(run: Run, outcome: str) -> None:
    record("run.failed", subject=Subject(run_id=run.pk, outcome=outcome))


def set_error(run: Run, text: str) -> None:
    run.error = text
    update(run, "error", now=["updated_at"])


def close_pause(run: Run, name: str) -> None:
    for found in Pause.objects.filter(run=run, interrupt_id=name, status=PauseStatus.PENDING):
        found.status = PauseStatus.WITHDRAWN
        update(found, "status")


def change_within(run: Run, name: str) -> None:
    with together():
        event(run, name)
        set_error(run, name)


def change_in_vain(run: Run, name: str) -> None:
    with suppress(ZeroDivisionError):
        fail(together, run)


def collide(run: Run, name: str) -> None:
    with suppress(IntegrityError), transaction.atomic():
        event(run, name)
        for _ in range(2):
            insert(pause(run, f"{name}-twice"))


def save(run: Run, name: str) -> None:
    found = Run.objects.select_for_update().get(pk=run.pk)
    found.error += name
    found.save(update_fields=["error"])


def look_one_by_one(run: Run, name: str) -> None:
    for found in AuditEvent.objects.filter(run_id=run.pk).order_by("pk").iterator(chunk_size=2):
        event(run, f"{name} after {found.outcome[:5]}")
        return


CHANGES: dict[str, Callable[[Run, str], Any]] = {
    "changes within": change_within,
    "changes in vain": change_in_vain,
    "a collision": collide,
    "a row as Django saves it": save,
    "a look from the server's cursor": look_one_by_one,
    "a step": lambda run, name: insert_new([step(run, name)]),
    "three steps": lambda run, name: insert_new([step(run, f"{name}{place}") for place in range(3)]),
    "a step with its key": lambda run, name: insert_if_new(step(run, name)),
    "a pause": lambda run, name: insert(pause(run, f"{name}{Pause.objects.filter(run=run).count()}")),
    "two pauses": lambda run, name: [insert(pause(run, f"{name}-{uuid4()}")) for _ in range(2)],
    "an error": set_error,
    "a closed pause": close_pause,
    "an event": event,
    "many events": lambda run, name: record_all(
        [("run.failed", Subject(run_id=run.pk, outcome=f"{name}{place}")) for place in range(25)]
    ),
    "a look": lambda run, _: (_error_of.first(run.pk), Run.objects.get(pk=run.pk).error),
    "django's own way": lambda run, name: RunStep.objects.get_or_create(
        run=run, key=name, defaults={"kind": RunStep.Kind.NODE}
    ),
}


@contextmanager
def one_by_one() -> Iterator[None]:
    with transaction.atomic():
        yield


def stored(run: Run) -> tuple[Any, ...]:
    """Return what there is of a run, in its order, without keys and times."""
    events = AuditEvent.objects.filter(run_id=run.pk).order_by("pk").values_list("type", "outcome")
    pauses = sorted(
        (found.interrupt_id.split("-")[0], str(found.status)) for found in Pause.objects.filter(run=run)
    )
    steps = list(RunStep.objects.filter(run=run).order_by("pk").values_list("key", "text"))
    return Run.objects.get(pk=run.pk).error, pauses, steps, list(events)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.sampled_from("abc")), max_size=12))
def test_whatever_is_written_together_is_stored_as_if_written_one_by_one(
    changes: list[tuple[str, str]],
) -> None:
    def outcome(way: Callable[[], AbstractContextManager[None]]) -> tuple[Any, ...]:
        run = make_run()
        with way():
            for kind, name in changes:
                CHANGES[kind](run, name)
        return stored(run)

    assert outcome(together) == outcome(one_by_one)


def test_a_change_of_each_table_goes_by_one_statement(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries, together():
        insert_new([step(run, "a")])
        event(run, "one")
        insert(pause(run, "a"))
        set_error(run, "new")
        event(run, "two")
    assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) == 1
    assert stored(run)[3] == [("run.failed", "one"), ("run.failed", "two")]


def test_a_look_at_another_table_does_not_bring_them_apart(run: Run) -> None:
    with CaptureQueriesContext(connection) as queries, together():
        event(run, "one")
        assert _error_of.first(run.pk) == run
        event(run, "two")
    assert len([query for query in queries if "auditevent" in query["sql"]]) == 1


def test_who_reads_a_table_sees_what_was_written_in_it(run: Run) -> None:
    with together():
        set_error(run, "one")
        found = _error_of.first(run.pk)
        assert found
        assert found.error == "one"
        set_error(run, "two")
        assert Run.objects.get(pk=run.pk).error == "two"
        insert(pause(run, "a"))
        assert run.pauses.count() == 1


def test_what_the_database_fills_in_is_there_when_it_is_asked_for(run: Run) -> None:
    before = run.updated_at
    with together():
        made = insert(pause(run, "a"))
        set_error(run, "new")
        assert made.created_at == Pause.objects.get(pk=made.pk).created_at
    assert run.updated_at == Run.objects.get(pk=run.pk).updated_at >= before


def test_a_key_that_the_database_counts_is_there_at_once(run: Run) -> None:
    with together():
        event(run, "before it")
        made = insert(step(run, "a"))
        assert made.pk == RunStep.objects.get(run=run).pk
        assert insert_if_new(step(run, "a")) is None
        assert insert_if_new(step(run, "b")) is not None


def fail(way: Callable[[], AbstractContextManager[Any]], run: Run) -> None:
    with way():
        event(run, "in vain")
        insert(pause(run, "in vain"))
        raise ZeroDivisionError


def test_an_error_leaves_nothing_behind(run: Run) -> None:
    with pytest.raises(ZeroDivisionError):
        fail(together, run)
    with together():
        event(run, "two")
    assert stored(run) == ("", [], [], [("run.failed", "two")])


def test_what_a_part_wrote_that_was_taken_back_is_taken_back_alone(run: Run) -> None:
    with together():
        event(run, "before")
        with pytest.raises(ZeroDivisionError):
            fail(one_by_one, run)
        with pytest.raises(ZeroDivisionError):
            fail(together, run)
        with together():
            event(run, "kept")
        event(run, "after")
    assert [outcome for _, outcome in stored(run)[3]] == ["before", "kept", "after"]


def test_a_constraint_that_is_broken_is_an_error_and_stores_nothing(run: Run) -> None:
    insert(pause(run, "a"))
    with pytest.raises(IntegrityError):
        write_both(run, lambda: insert(pause(run, "a")))
    assert stored(run)[3] == []


def test_a_status_that_may_not_follow_is_refused_in_a_statement_with_others(run: Run) -> None:
    made = insert(pause(run, "a"))
    update_to(made, PauseStatus.WITHDRAWN)
    with pytest.raises(ProgrammingError, match="transition"):
        write_both(run, lambda: update_to(made, PauseStatus.PENDING))
    assert stored(run)[3] == []


def write_both(run: Run, work: Callable[[], object]) -> None:
    with together():
        event(run, "one")
        work()


def update_to(made: Pause, status: PauseStatus) -> None:
    made.status = status
    update(made, "status")


_SET_ERROR = Write(
    sql="UPDATE agents_runtime_run SET error = %s WHERE id = %s RETURNING id",
    tables=frozenset({"agents_runtime_run"}),
)


def test_who_is_told_what_a_write_returned_writes_nothing(run: Run) -> None:
    with pytest.raises(AssertionError), together():
        write(_SET_ERROR, "one", run.pk, then=lambda _: event(run, "told"))
    assert stored(run)[3] == []


def write_with(run: Run, wrong: Callable[[Run], object]) -> None:
    """Write, and take the error of a write that waited for one of something else."""
    with together():
        event(run, "before")
        wrong(run)
        with suppress(IntegrityError, DataError, ZeroDivisionError), transaction.atomic():
            event(run, "inside")
        with suppress(IntegrityError, DataError, ZeroDivisionError):
            fail(one_by_one, run)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda run: insert(pause(run, "a")), IntegrityError),
        (lambda run: insert(pause(run, "a\0")), DataError),
        (
            lambda run: write(_SET_ERROR, "", run.pk, then=lambda found: 1 // (len(found) - 1)),
            ZeroDivisionError,
        ),
    ],
    ids=["the database", "psycopg", "who is told"],
)
@pytest.mark.usefixtures("committed_db")
def test_a_write_that_failed_is_an_error_in_the_end_whoever_caught_it(
    wrong: Callable[[Run], object], error: type[Exception]
) -> None:
    run = make_run()
    insert(pause(run, "a"))
    with pytest.raises(error):
        write_with(run, wrong)
    assert stored(run)[3] == []


def test_a_write_that_failed_and_was_taken_back_is_no_error(run: Run) -> None:
    insert(pause(run, "a"))
    with together():
        event(run, "before")
        with suppress(IntegrityError), transaction.atomic():
            event(run, "in vain")
            insert(pause(run, "a"))
        event(run, "after")
    assert [outcome for _, outcome in stored(run)[3]] == ["before", "after"]


def test_another_thread_writes_for_itself(run: Run) -> None:
    seen: list[int] = []

    def look() -> None:
        with CaptureQueriesContext(connection) as queries:
            AuditEvent.objects.count()
        seen.append(len(queries))
        connection.close()

    with together():
        event(run, "one")
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [1]
    assert len(stored(run)[3]) == 1
