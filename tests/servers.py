"""The real PostgreSQL and Valkey that a test session runs on, and the environment of all its processes.

The servers are its own and are thrown away. With ``COUNTERSIGN_TEST_SERVERS=given`` the four variables
``DATABASE_URL``, ``DATABASE_OWNER_URL``, ``DATABASE_SUPERUSER_URL`` and ``REDIS_URL`` name servers that
nobody else uses meanwhile. Nothing here imports Django: it runs before the settings are read.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from reviewer.launch.services import embedded_services

PROJECT = Path(__file__).resolve().parents[1]
DATABASE = "countersign_test"
SECRET_KEY = "only-for-tests-7f0c1d6f2b8e4a53a9d4c6e1b0f27c98d3a5"
SERVER_VARIABLES = ("DATABASE_URL", "DATABASE_OWNER_URL", "DATABASE_SUPERUSER_URL", "REDIS_URL")

NO_SERVERS = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "DJANGO_SETTINGS_MODULE": "reviewer.config.settings",
    "LANGGRAPH_STRICT_MSGPACK": "true",
    "COUNTERSIGN_SECRET_KEY": SECRET_KEY,
}
"""Settings for a process that only reads code."""


@dataclass
class TestServers:
    """The running servers: addresses by role, all of the test database."""

    __test__ = False

    app_url: str
    owner_url: str
    superuser_url: str
    redis_url: str
    home: Path
    _stack: contextlib.ExitStack = field(repr=False)

    def environment(self) -> dict[str, str]:
        """Return the variables that every process of the product needs, this one included."""
        return {
            "DATABASE_URL": self.app_url,
            "DATABASE_OWNER_URL": self.owner_url,
            "REDIS_URL": self.redis_url,
            "DJANGO_SETTINGS_MODULE": "reviewer.config.settings",
            "LANGGRAPH_STRICT_MSGPACK": "true",
            "COUNTERSIGN_SECRET_KEY": SECRET_KEY,
            "COUNTERSIGN_DEMO": "true",
            "COUNTERSIGN_DEMO_PASSWORD": "countersign",
            "COUNTERSIGN_HOME": str(self.home),
            "COUNTERSIGN_AGENTS": str(PROJECT / "tests" / "agents" / "langgraph.json"),
            "COUNTERSIGN_LOG_LEVEL": "WARNING",
            "COUNTERSIGN_MODEL": "",
            "HOST": "127.0.0.1",
            "LANGSMITH_TRACING": "false",
            "PYTHONUNBUFFERED": "1",
        }

    def child_environment(self, **changes: str) -> dict[str, str]:
        """Return the whole environment of a process of the product on these servers."""
        return dict(os.environ) | self.environment() | changes

    def stop(self) -> None:
        """Stop what was started and remove its data."""
        self._stack.close()


@functools.cache
def servers() -> TestServers:
    """Start the servers, or take the given ones, and make an empty test database that the owner owns."""
    stack = contextlib.ExitStack()
    with contextlib.ExitStack() as undo:
        undo.enter_context(stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="countersign-test-")))
        found = _given() or stack.enter_context(
            embedded_services(folder / "servers", durable=False, keep=False)
        )
        home = folder / "home"
        (home / "static").mkdir(parents=True)  # the static middleware looks there and warns if it is missing
        _make_database(found["DATABASE_OWNER_URL"])
        undo.pop_all()
    return TestServers(
        app_url=_of_test_database(found["DATABASE_URL"]),
        owner_url=_of_test_database(found["DATABASE_OWNER_URL"]),
        superuser_url=_of_test_database(found["DATABASE_SUPERUSER_URL"]),
        redis_url=found["REDIS_URL"],
        home=home,
        _stack=stack,
    )


def _given() -> dict[str, str] | None:
    if os.environ.get("COUNTERSIGN_TEST_SERVERS") != "given":
        return None
    return {name: os.environ[name] for name in SERVER_VARIABLES}


def _make_database(owner_url: str) -> None:
    name = sql.Identifier(DATABASE)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))


def _of_test_database(url: str) -> str:
    """Return the address of the test database on the server of ``url``."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{DATABASE}"))
