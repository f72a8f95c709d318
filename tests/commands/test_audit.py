"""``audit verify`` and ``audit export``: what they find, and what they say they cannot find."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command

from reviewer import decisions
from reviewer.audit.verify import verify
from reviewer.models import AuditEvent
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund
from tests.servers import servers


def decide_one(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)


def tamper(statement: str) -> None:
    """Change the stored trail as somebody with the owner's rights could, past the triggers."""
    with psycopg.connect(servers().superuser_url) as link:
        link.execute("SET LOCAL session_replication_role = replica")
        link.execute(statement)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("audit", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_an_honest_trail_is_sound_and_the_limits_are_told(cast: Cast) -> None:
    decide_one(cast)
    said = run("verify")
    assert "1 decisions compared" in said
    assert "No fault found" in said
    assert "no seal outside the database exists yet" in said


def test_an_empty_trail_is_sound(db: None) -> None:
    assert verify().is_sound


TAMPERINGS: dict[str, tuple[str, str]] = {
    "a column": (
        "UPDATE reviewer_auditevent SET outcome = 'reject' WHERE type = 'decision.made'",
        "the outcome is 'reject' in its column and 'approve' in its payload",
    ),
    "an actor": (
        "UPDATE reviewer_auditevent SET actor_name = 'Somebody' WHERE type = 'decision.made'",
        "the actor's name is 'Somebody'",
    ),
    "a payload": (
        "UPDATE reviewer_auditevent SET payload = replace(payload, '\"approve\"', '\"reject\"')",
        "in its payload",
    ),
    "blanks in a payload": (
        "UPDATE reviewer_auditevent SET payload = payload || ' '",
        "not in its canonical form",
    ),
    "no json": ("UPDATE reviewer_auditevent SET payload = '{'", "the payload is not JSON"),
    "a decision": ("UPDATE reviewer_decision SET verdict = 'reject'", "its verdict differs"),
    "an answer": ('UPDATE reviewer_decision SET answer = \'{"type":"reject"}\'', "its answer differs"),
    "a removed event": (
        "DELETE FROM reviewer_auditevent WHERE type = 'decision.made'",
        "no event tells of it",
    ),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found(committed_db: None, cast: Cast, name: str) -> None:
    decide_one(cast)
    statement, fault = TAMPERINGS[name]
    tamper(statement)
    with pytest.raises(CommandError, match="does not agree"):
        run("verify")
    assert any(fault in found for found in verify().faults)


def test_a_trigger_that_is_switched_off_is_found(committed_db: None, cast: Cast) -> None:
    trigger = "SELECT tgname FROM pg_trigger WHERE tgname LIKE 'pgtrigger_audit_is_append_only%'"
    with psycopg.connect(servers().owner_url, autocommit=True) as link:
        row = link.execute(trigger).fetchone()
        assert row is not None
        link.execute(f"ALTER TABLE reviewer_auditevent DISABLE TRIGGER {row[0]}".encode())
        try:
            assert verify().faults == (
                "table reviewer_auditevent: the trigger audit_is_append_only is missing or switched off",
            )
        finally:
            link.execute(f"ALTER TABLE reviewer_auditevent ENABLE TRIGGER {row[0]}".encode())


def test_a_gap_is_told_and_not_called_a_fault(committed_db: None, cast: Cast) -> None:
    decide_one(cast)
    decide_one(cast)
    tamper(
        "DELETE FROM reviewer_auditevent WHERE type = 'task.opened'"
        " AND id > (SELECT min(id) FROM reviewer_auditevent)"
    )
    assert "cannot tell the two apart" in run("verify")


def test_the_export_holds_every_event_oldest_first_to_the_byte(cast: Cast) -> None:
    decide_one(cast)
    lines = [json.loads(line) for line in run("export").splitlines()]
    stored = list(AuditEvent.objects.order_by("pk"))
    assert [line["id"] for line in lines] == [event.pk for event in stored]
    assert [line["payload"] for line in lines] == [event.payload for event in stored]


def test_the_export_goes_to_a_new_file_and_never_over_an_old_one(cast: Cast, tmp_path: Path) -> None:
    decide_one(cast)
    target = tmp_path / "trail.jsonl"
    run("export", "--output", str(target))
    assert len(target.read_text().splitlines()) == AuditEvent.objects.count()
    with pytest.raises(CommandError, match="cannot be written"):
        run("export", "--output", str(target))
