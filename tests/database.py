"""Fixtures of the test database: made once, and either rolled back or wiped after each test."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
import redis
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from pytest_django import DjangoDbBlocker

from tests.cast import Cast, make_cast
from tests.servers import PROJECT, servers

# What a wipe leaves alone: made by migrations or once for the whole session.
KEPT_TABLES = frozenset(
    {"django_migrations", "django_content_type", "auth_permission", "checkpoint_migrations"}
)
REGISTRY_TABLES = ("agents_runtime_agentspec", "agents_runtime_registrationproblem")
WIPE_ATTEMPTS = 20
MANAGE_SECONDS = 600.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse Django's own way to real commits: its flush needs TRUNCATE, which the audit trail forbids."""
    for item in items:
        marker = item.get_closest_marker("django_db")
        if marker and marker.kwargs.get("transaction"):
            raise pytest.UsageError(
                f"{item.nodeid}: use the fixture committed_db instead of transaction=True."
            )


@pytest.fixture(scope="session", autouse=True)
def settings_of_tests() -> None:
    """What differs inside this process: static files need not be collected, and hashing is quick."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": plain}
    settings.PASSWORD_HASHERS = ["tests.cast.QuickHasher"]


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Migrate the empty test database as its owner; afterwards everything runs as the application."""
    with django_db_blocker.unblock(), _as_owner():
        call_command("migrate", verbosity=0, interactive=False)
    keep_registry()
    yield
    with django_db_blocker.unblock():
        connections.close_all()
        connection.close_pool()  # type: ignore[attr-defined]


@contextlib.contextmanager
def _as_owner() -> Iterator[None]:
    """Let Django's connection be the owner's for a moment."""
    app = dict(connection.settings_dict)
    owner = conninfo_to_dict(servers().owner_url)
    options = {**app["OPTIONS"], "pool": False}
    connection.settings_dict.update(USER=owner["user"], PASSWORD=owner["password"], OPTIONS=options)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(app)


@pytest.fixture
def committed_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Real commits that other threads and processes see; everything is wiped after the test."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()
        wipe()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> None:
    """The database in the test's own way: ``committed_db`` where it asks for that, else rolled back."""
    committed = "committed_db" in request.fixturenames
    request.getfixturevalue("committed_db" if committed else "db")


@pytest.fixture
def cast(database: None) -> Cast:
    """The fixed cast: people, queues, memberships and policies."""
    return make_cast()


@pytest.fixture(scope="session")
def registered_agents(django_db_setup: None) -> None:
    """The checkpoint tables, and the shipped and the tests' agents as a worker registers them."""
    manage("setup_checkpoints", DATABASE_URL=servers().owner_url)
    manage("register_agents")
    keep_registry()


def manage(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py`` in a process of its own on the test servers; raise if it fails."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=servers().child_environment(**changes),
        capture_output=True,
        text=True,
        timeout=MANAGE_SECONDS,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"manage.py {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
    return done


def wipe() -> None:
    """Empty every table and the broker, behind the triggers' back; registered agents stay as registered."""
    empty_broker()
    for attempts_left in reversed(range(WIPE_ATTEMPTS)):
        try:
            _empty_tables()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if not attempts_left:
                raise
        else:
            return


def empty_broker() -> None:
    """Remove messages, caches and channel groups, but not the bindings that a running worker relies on."""
    with redis.Redis.from_url(servers().redis_url) as client:
        keys = [key for key in client.scan_iter(count=1000) if not key.startswith(b"_kombu.binding.")]
        if keys:
            client.delete(*keys)


def _empty_tables() -> None:
    with psycopg.connect(servers().superuser_url) as link:
        link.execute("SET LOCAL session_replication_role = replica")
        link.execute("SET LOCAL lock_timeout = '500ms'")
        for table in _tables(link):
            link.execute(sql.SQL("DELETE FROM {}").format(table))
        for name in REGISTRY_TABLES:
            kept = sql.Identifier("kept", name)
            link.execute(sql.SQL("INSERT INTO {} SELECT * FROM {}").format(sql.Identifier(name), kept))


def _tables(link: psycopg.Connection) -> list[sql.Identifier]:
    found = link.execute(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', %s)",
        [settings.COUNTERSIGN_CHECKPOINT_SCHEMA],
    )
    return [sql.Identifier(schema, table) for schema, table in found if table not in KEPT_TABLES]


def keep_registry() -> None:
    """Remember the registered agents, so that a wipe can put them back."""
    with psycopg.connect(servers().superuser_url) as link:
        link.execute("CREATE SCHEMA IF NOT EXISTS kept")
        for name in REGISTRY_TABLES:
            kept, table = sql.Identifier("kept", name), sql.Identifier(name)
            link.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(kept))
            link.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(kept, table))
