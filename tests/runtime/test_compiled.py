"""Compiled statements: the same rows and the same writes as Django's own, without making the SQL anew."""

from __future__ import annotations

import datetime as dt
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Value
from django.test.utils import CaptureQueriesContext

from agents_runtime.compiled import SOME_ID, Compiled, ask
from agents_runtime.models import AgentSpec, Pause, Run, RunStep
from agents_runtime.states import PauseStatus
from agents_runtime.writing import insert, update

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def run() -> Run:
    spec = AgentSpec.objects.create(name=f"a-{uuid4().hex}", source="nowhere", entry="a:b")
    return insert(Run(agent=spec, input="{}", requested_by="tests"))


def _field_values(row: Run | Pause | RunStep) -> dict[str, object]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_an_inserted_row_is_what_django_reads_back(run: Run) -> None:
    assert _field_values(run) == _field_values(Run.objects.get(pk=run.pk))
    assert run.created_at is not None


def test_a_row_with_a_counted_key_gets_its_key(run: Run) -> None:
    step = insert(RunStep(run=run, key="a", kind=RunStep.Kind.NODE))
    assert _field_values(step) == _field_values(RunStep.objects.get(run=run))


def test_an_inserted_row_is_no_new_one_any_more(run: Run) -> None:
    run.error = "changed"
    run.save()
    assert Run.objects.get(pk=run.pk).error == "changed"


def test_constraints_hold_for_inserted_rows(run: Run) -> None:
    insert(RunStep(run=run, key="a", kind=RunStep.Kind.NODE))
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(RunStep(run=run, key="a", kind=RunStep.Kind.NODE))


def test_an_update_writes_the_named_columns_alone(run: Run) -> None:
    before = Run.objects.get(pk=run.pk)
    run.error, run.trouble, run.output = "new", "step", "not named"
    update(run, "error", "trouble", now=["updated_at"])
    after = Run.objects.get(pk=run.pk)
    assert (after.error, after.trouble, after.output) == ("new", "step", "")
    assert after.updated_at > before.updated_at
    assert after.status == before.status


def test_a_query_by_other_values_gives_other_rows_with_what_is_joined(run: Run) -> None:
    runs = Compiled(
        lambda run_id, name: Run.objects.select_related("agent").filter(pk=run_id, agent__name=name),
        SOME_ID,
        "any name",
    )
    assert runs.first(uuid4(), run.agent.name) is None
    assert runs.first(run.pk, "another name") is None
    found = runs.first(run.pk, run.agent.name)
    assert found == run
    assert _field_values(found) == _field_values(run)
    with CaptureQueriesContext(connection) as queries:
        assert found.agent == run.agent
    assert not queries


def test_rows_keep_the_order_and_the_conditions_of_the_query(run: Run) -> None:
    for place, status in ((2, PauseStatus.PENDING), (1, PauseStatus.PENDING), (0, PauseStatus.EXPIRED)):
        Pause.objects.create(
            run=run, interrupt_id=str(place), kind="question", value="1", place=place, status=status
        )
    pending = Compiled(
        lambda run_id: Pause.objects.filter(run=run_id, status=PauseStatus.PENDING).order_by("place"), SOME_ID
    )
    assert [pause.place for pause in pending.rows(run.pk)] == [1, 2]


def test_postgresql_plans_a_statement_once_in_a_session(run: Run) -> None:
    with transaction.atomic():
        for _ in range(3):
            update(run, "error", now=["updated_at"])
        (plans,) = ask(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements "
            'WHERE statement LIKE \'UPDATE "agents_runtime_run" SET "error" = $1, "updated_at"%%\'',
            [],
        )
    assert plans[0] >= 3
    assert plans[1] == 0


def test_what_is_the_same_in_every_run_of_a_query_stands_in_its_text(run: Run) -> None:
    for place, status in enumerate((PauseStatus.PENDING, PauseStatus.EXPIRED)):
        kept = Pause.objects.create(
            run=run, interrupt_id=f"50% {place}", kind="question", value="1", status=status
        )
    odd = Compiled(
        lambda run_id, status: (
            Pause.objects.filter(run=run_id, interrupt_id__startswith="50% ", status=status)
            .exclude(value="it's %s odd")
            .annotate(told=Value("100 %"))
        ),
        SOME_ID,
        "some status",
    )
    with transaction.atomic():
        (found,) = odd.rows(run.pk, PauseStatus.EXPIRED)
        (statement,) = ask(
            "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE strpos(statement, %s) > 0",
            ["it''s %s odd"],
        )
    assert found == kept
    assert vars(found)["told"] == "100 %"
    assert statement == (2,)


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
        None,
    ],
)
def test_times_are_those_that_django_reads(run: Run, value: dt.datetime | None) -> None:
    run.finished_at = value
    update(run, "finished_at")
    (found,) = Compiled(lambda run_id: Run.objects.filter(pk=run_id), SOME_ID).rows(run.pk)
    assert found.finished_at == Run.objects.get(pk=run.pk).finished_at == value
    assert not found.finished_at or found.finished_at.utcoffset() == dt.timedelta(0)
