"""The harness keeps its own promises: isolation, real commits, a clean slate afterwards."""

from __future__ import annotations

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from reviewer.accounts.models import User
from reviewer.models import AuditEvent
from tests.cast import PASSWORD, Cast
from tests.database import wipe
from tests.servers import servers


def test_the_cast_can_sign_in(cast: Cast) -> None:
    assert all(person.check_password(PASSWORD) for person in (cast.reviewer, cast.outsider))


@pytest.mark.parametrize("turn", [1, 2])
def test_committed_data_is_seen_outside_and_gone_afterwards(
    committed_db: None, cast: Cast, turn: int
) -> None:
    AuditEvent.objects.create(type="test", payload="{}", actor=cast.admin, actor_name="admin")
    with psycopg.connect(servers().app_url) as link:
        row = link.execute("SELECT count(*) FROM reviewer_auditevent").fetchone()
    assert row == (1,)


def test_a_wipe_removes_what_the_triggers_protect(committed_db: None, cast: Cast) -> None:
    AuditEvent.objects.create(type="test", payload="{}", actor=cast.admin, actor_name="admin")
    wipe()
    assert not AuditEvent.objects.exists()
    assert not User.objects.exists()


@pytest.mark.parametrize("statement", ["CREATE TABLE mine (id int)", "TRUNCATE reviewer_auditevent"])
def test_tests_run_as_the_application_which_may_not_change_tables(db: None, statement: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
