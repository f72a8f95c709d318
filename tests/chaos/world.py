"""Servers of a chaos run's own, which it may kill, and the product's tables, agents and people on them."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import django
import psycopg
import redis
from django.conf import settings

from reviewer.launch import processes
from reviewer.launch.home import Home, open_home
from reviewer.launch.places import prepare_places
from reviewer.launch.postgres import Postgres, start_postgres
from reviewer.launch.services import running_services
from reviewer.launch.valkey import Valkey, start_valkey
from tests.servers import servers

PATIENCE = 300.0


class World:
    """The two servers, at the same addresses after every restart."""

    def __init__(self, home: Home, postgres: Postgres, valkey: Valkey) -> None:
        self._home = home
        self._places = prepare_places(home, keep=False)
        self.postgres = postgres
        self.valkey = valkey

    def restart_postgres(self) -> None:
        """Let it die without a word to anybody, and start it again.

        Call this in a thread that lives as long as the world: a server ends with the thread that started it.
        """
        os.kill(self.postgres.process.pid, signal.SIGQUIT)
        self.postgres.process.wait()
        old = self.postgres
        self.postgres = start_postgres(self._home, self._places, old.sockets, old.passwords)

    def end_backends(self, only: str = "%") -> int:
        """End the sessions of the application whose name is like ``only``."""
        with psycopg.connect(servers().superuser_url, autocommit=True) as link:
            row = link.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE usename = %s AND application_name LIKE %s",
                ["countersign_app", only],
            ).fetchone()
        assert row is not None
        return int(row[0])

    def empty_valkey(self) -> None:
        """Remove everything it holds."""
        with redis.Redis.from_url(self.valkey.url) as client:
            client.flushall()

    def restart_valkey(self) -> None:
        """Kill it with all it holds, and start it again."""
        processes.end_group(self.valkey.process)
        old = self.valkey
        self.valkey = start_valkey(self._home, self._places, old.socket.parent, old.password)

    def pause_valkey(self) -> None:
        """Stop it in its tracks."""
        os.kill(self.valkey.process.pid, signal.SIGSTOP)

    def go_on_valkey(self) -> None:
        """Let it go on."""
        os.kill(self.valkey.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Stop those that run now."""
        self.valkey.stop()
        self.postgres.stop()


@contextlib.contextmanager
def own_world() -> Iterator[World]:
    """Start servers of one's own and make this process and its children work on them.

    Unlike the other tests' they are durable: what was confirmed must outlive their death.
    """
    with tempfile.TemporaryDirectory(prefix="countersign-chaos-") as folder:
        home = open_home(Path(folder) / "servers")
        with home.held(), running_services(home, keep=False) as services:
            assert services.postgres is not None
            assert services.valkey is not None
            given = services.env() | services.owner_env()
            given["DATABASE_SUPERUSER_URL"] = services.postgres.superuser_url()
            os.environ.update(given, COUNTERSIGN_TEST_SERVERS="given")
            os.environ.update(servers().environment())
            django.setup()
            settings.PASSWORD_HASHERS = ["tests.cast.QuickHasher"]
            world = World(home, services.postgres, services.valkey)
            try:
                yield world
            finally:
                world.stop()
                servers().stop()


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Wait until something is so; raise if it never is."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"In {seconds:.0f} s it did not come to this: {what}")
        time.sleep(0.02)
