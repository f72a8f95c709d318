"""The embedded servers of one home, together: for `make run`, for developers, for the tests."""

import contextlib
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reviewer.launch.home import Home, held, open_home
from reviewer.launch.places import Places, discard, prepare_places, socket_folder
from reviewer.launch.postgres import Passwords, Postgres, start_postgres
from reviewer.launch.valkey import Valkey, start_valkey

PASSWORDS = "passwords.json"


@dataclass(frozen=True)
class Services:
    """The running servers; a None is one that this installation brings itself."""

    postgres: Postgres | None
    valkey: Valkey | None

    def env(self) -> dict[str, str]:
        """What a process of the product may know: the application's role only."""
        env: dict[str, str] = {}
        if self.postgres:
            env["DATABASE_URL"] = self.postgres.app_url
        if self.valkey:
            env["REDIS_URL"] = self.valkey.url
        return env

    def owner_env(self) -> dict[str, str]:
        """What migrations need besides."""
        return {"DATABASE_OWNER_URL": self.postgres.owner_url} if self.postgres else {}

    def processes(self) -> dict[str, subprocess.Popen[bytes]]:
        """The children whose death ends all, by name."""
        running: dict[str, subprocess.Popen[bytes]] = {}
        if self.postgres:
            running["PostgreSQL"] = self.postgres.process
        if self.valkey:
            running["Valkey"] = self.valkey.process
        return running


@contextlib.contextmanager
def running_services(
    home: Home, *, postgres: bool = True, valkey: bool = True, durable: bool = True, keep: bool = True
) -> Iterator[Services]:
    """Start the asked servers of `home`, whose lock the caller holds; stop them when the body ends."""
    if not (postgres or valkey):
        yield Services(postgres=None, valkey=None)
        return
    places = prepare_places(home, keep=keep)
    with contextlib.ExitStack() as stack:
        # A copied home may point to the same data; its own lock would not keep it out.
        stack.enter_context(held(places.data / "lock", what=f"The data of COUNTERSIGN_HOME {home.path}"))
        if not keep:
            stack.callback(discard, home, places)
        sockets = stack.enter_context(socket_folder(home, places.account))
        passwords = _passwords(home)
        yield Services(
            postgres=_postgres(stack, home, places, sockets, passwords, durable=durable)
            if postgres
            else None,
            valkey=_valkey(stack, home, places, sockets, passwords) if valkey else None,
        )


@contextlib.contextmanager
def embedded_services(home: Path, *, durable: bool = True, keep: bool = True) -> Iterator[dict[str, str]]:
    """Both servers for `home`, as environment variables; the tests' door.

    `durable=False` trades safety against a power cut for speed; `keep=False` removes the data at the end.
    DATABASE_SUPERUSER_URL is there for tests that must look behind the triggers; the product never reads it.
    """
    folder = open_home(home)
    with folder.held(), running_services(folder, durable=durable, keep=keep) as services:
        assert services.postgres is not None
        superuser = {"DATABASE_SUPERUSER_URL": services.postgres.superuser_url()}
        yield services.env() | services.owner_env() | superuser


def _postgres(
    stack: contextlib.ExitStack,
    home: Home,
    places: Places,
    sockets: Path,
    passwords: dict[str, str],
    *,
    durable: bool,
) -> Postgres:
    roles = Passwords(passwords["superuser"], passwords["owner"], passwords["app"])
    server = start_postgres(home, places, sockets, roles, durable=durable)
    stack.callback(server.stop)
    home.write_private("owner.dsn", server.owner_url + "\n")
    home.write_private("superuser.dsn", server.superuser_url() + "\n")
    return server


def _valkey(
    stack: contextlib.ExitStack, home: Home, places: Places, sockets: Path, passwords: dict[str, str]
) -> Valkey:
    server = start_valkey(home, places, sockets, passwords["valkey"])
    stack.callback(server.stop)
    return server


def _passwords(home: Home) -> dict[str, str]:
    passwords = home.read_record(PASSWORDS)
    if not passwords:
        passwords = {name: secrets.token_hex(24) for name in ("superuser", "owner", "app", "valkey")}
        home.write_record(PASSWORDS, passwords)
    return passwords
