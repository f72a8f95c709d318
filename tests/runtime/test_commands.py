"""The commands of the agents' side."""

from __future__ import annotations

import io
import signal
import subprocess
import sys

import psycopg
import pytest
from django.core.management import CommandError, call_command
from psycopg import sql

from agents_runtime import runs
from agents_runtime.models import Run
from tests.runtime.driving import call, script, start
from tests.servers import PROJECT, servers

SCHEMA = "langgraph"


def command(*arguments: str, **changes: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=servers().child_environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_checkpoint_tables_are_made_once_however_many_processes_start(django_db_setup: None) -> None:
    name = "countersign_setup"
    url = servers().owner_url.replace("/countersign_test?", f"/{name}?")
    assert url != servers().owner_url
    with psycopg.connect(servers().owner_url, autocommit=True) as link:
        link.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        link.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    starts = [command("setup_checkpoints", "--skip-checks", DATABASE_URL=url) for _ in range(3)]
    outputs = [process.communicate(timeout=60)[0] for process in starts]
    assert [process.returncode for process in starts] == [0, 0, 0], outputs
    with psycopg.connect(servers().app_url.replace("/countersign_test?", f"/{name}?")) as link:
        assert link.execute(f"SELECT count(*) FROM {SCHEMA}.checkpoints").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            link.execute(f"DROP TABLE {SCHEMA}.checkpoints")


def test_the_scheduler_ends_when_asked(committed_db: None) -> None:
    with command("scheduler", "--seconds", "0.1") as process:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


@pytest.mark.usefixtures("runtime")
def test_runs_that_a_new_build_cannot_take_up_are_listed() -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    call_command("check_agents")
    Run.objects.filter(pk=run.pk).update(fingerprint="0" * 64)
    told = io.StringIO()
    with pytest.raises(CommandError, match="1 run"):
        call_command("check_agents", stdout=told)
    assert run.short_id in told.getvalue()
    runs.cancel(run.pk)
    call_command("check_agents")
