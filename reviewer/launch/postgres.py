"""The embedded PostgreSQL: made once, started, given its roles and database, stopped.

An installation that brings its own database never comes here. Rights on single tables (the append-only ones)
belong to the migrations.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from reviewer.launch import processes
from reviewer.launch.errors import LaunchError
from reviewer.launch.home import PRIVATE_FILE, Home
from reviewer.launch.places import Places

VERSION = "18"
DATABASE = "countersign"
SUPERUSER = "postgres"
OWNER = "countersign_owner"
APP = "countersign_app"
CHECKPOINT_SCHEMA = "langgraph"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %u ",
}
# Only for installations that are thrown away, such as the tests'.
VOLATILE_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
# A caller's PGHOST, PGOPTIONS and the like must not reach the server.
SERVER_ENV = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True)
class Passwords:
    superuser: str
    owner: str
    app: str


@dataclass(frozen=True)
class Postgres:
    """A running server. Its connection strings are libpq URLs over the socket."""

    process: subprocess.Popen[bytes]
    sockets: Path
    passwords: Passwords

    @property
    def app_url(self) -> str:
        return self._url(APP, self.passwords.app, DATABASE)

    @property
    def owner_url(self) -> str:
        return self._url(OWNER, self.passwords.owner, DATABASE)

    def superuser_url(self, database: str = DATABASE) -> str:
        return self._url(SUPERUSER, self.passwords.superuser, database)

    def _url(self, role: str, password: str, database: str) -> str:
        return f"postgresql://{role}:{password}@/{database}?host={self.sockets}"

    def stop(self) -> None:
        """A fast shutdown: sessions end, data is written."""
        processes.stop(self.process, signal.SIGINT, grace=STOP_SECONDS)


def start_postgres(
    home: Home, places: Places, sockets: Path, passwords: Passwords, *, durable: bool = True
) -> Postgres:
    data = places.data / "postgres"
    _stop_leftover(data)
    if not (data / "PG_VERSION").exists():
        _initialise(home, places, sockets, passwords, data)
    _refuse_other_version(data)
    settings = SETTINGS | {"unix_socket_directories": str(sockets)}
    if not durable:
        settings |= VOLATILE_SETTINGS
    command: list[str | Path] = [places.postgres / "bin" / "postgres", "-D", data]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    with home.open_log("postgres") as log:
        process = processes.start(
            command, env=SERVER_ENV, log=log, account=places.account, death_signal=signal.SIGINT
        )
    server = Postgres(process, sockets, passwords)
    try:
        _wait_until_ready(server, home)
        _prepare_roles_and_database(server)
    except BaseException:
        server.stop()
        raise
    return server


def _initialise(home: Home, places: Places, sockets: Path, passwords: Passwords, data: Path) -> None:
    """Make the cluster: SCRAM, never trust; UTF-8 in PostgreSQL's own locale, which every machine has."""
    password_file = sockets / "initdb-password"
    password_file.unlink(missing_ok=True)
    descriptor = os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    with os.fdopen(descriptor, "w") as file:
        file.write(passwords.superuser + "\n")
    if places.account:
        os.chown(password_file, places.account.uid, places.account.gid)
    command: list[str | Path] = [places.postgres / "bin" / "initdb", "-D", data, "-U", SUPERUSER]
    command += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    command += ["--auth=scram-sha-256", f"--pwfile={password_file}"]
    try:
        with home.open_log("initdb") as log:
            done = processes.start(command, env=SERVER_ENV, log=log, account=places.account).wait()
    finally:
        password_file.unlink()
    if done != 0:
        raise LaunchError(f"The embedded PostgreSQL could not be set up; see {home.logs / 'initdb.log'}.")


def _refuse_other_version(data: Path) -> None:
    found = (data / "PG_VERSION").read_text().strip()
    if found != VERSION:
        raise LaunchError(
            f"The data in {data} is of PostgreSQL {found} and this is PostgreSQL {VERSION}: "
            "dump it with the old release and load it into a new COUNTERSIGN_HOME."
        )


def _wait_until_ready(server: Postgres, home: Home) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            break
        try:
            psycopg.connect(server.superuser_url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
            continue
        return
    raise LaunchError(f"The embedded PostgreSQL did not start; see {home.logs / 'postgres.log'}.")


def _prepare_roles_and_database(server: Postgres) -> None:
    """Safe to repeat: an interrupted first start is completed by the next one."""
    with psycopg.connect(server.superuser_url("postgres"), autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if found:
            return
        _ensure_role(connection, OWNER, server.passwords.owner, "LOGIN CREATEDB")
        _ensure_role(connection, APP, server.passwords.app, "LOGIN")
    # Rights laid into the template reach every database made from it, those that tests make included.
    with psycopg.connect(server.superuser_url("template1"), autocommit=True) as connection:
        _let_app_use_what_owner_makes(connection, owner=OWNER, app=APP)
    with psycopg.connect(server.superuser_url("postgres"), autocommit=True) as connection:
        name, owner = sql.Identifier(DATABASE), sql.Identifier(OWNER)
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, owner))


def _ensure_role(connection: psycopg.Connection, role: str, password: str, rights: str) -> None:
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
        connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
    statement = sql.SQL("ALTER ROLE {} " + rights + " PASSWORD {}")
    connection.execute(statement.format(sql.Identifier(role), sql.Literal(password)))


def prepare_given_database(owner_url: str, app_url: str) -> None:
    """The same rights in a database that the installation brings, when it has a second role for the owner."""
    app = psycopg.conninfo.conninfo_to_dict(app_url).get("user")
    with psycopg.connect(owner_url, autocommit=True) as connection:
        owner = connection.info.user
        if app and app != owner:
            _let_app_use_what_owner_makes(connection, owner=owner, app=str(app))


def _let_app_use_what_owner_makes(connection: psycopg.Connection, *, owner: str, app: str) -> None:
    names = {
        "app": sql.Identifier(app),
        "owner": sql.Identifier(owner),
        "schema": sql.Identifier(CHECKPOINT_SCHEMA),
    }
    for statement in (
        "CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {owner}",
        "GRANT USAGE ON SCHEMA {schema} TO {app}",
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {app}",
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT USAGE, SELECT ON SEQUENCES TO {app}",
    ):
        connection.execute(sql.SQL(statement).format(**names))


def _stop_leftover(data: Path) -> None:
    """End a server whose launcher was killed. The caller holds the lock, so no living launcher owns it."""
    try:
        pid_text, folder, *_ = (data / "postmaster.pid").read_text().splitlines()
        pid = int(pid_text)
    except (FileNotFoundError, ValueError):
        return
    # A copied home brings the pid file of the server it was copied from.
    if Path(folder) != data:
        (data / "postmaster.pid").unlink()
        return
    if not processes.stop_stranger(pid, signal.SIGINT, grace=STOP_SECONDS, program="postgres"):
        raise LaunchError(f"An older PostgreSQL (process {pid}) still uses {data} and does not stop.")
