"""The embedded servers: wherever the home lies, whoever starts them, and whatever happened before."""

import json
import os
import pwd
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from reviewer.launch import places
from reviewer.launch.errors import LaunchError
from reviewer.launch.home import open_home
from reviewer.launch.postgres import VERSION, start_postgres
from reviewer.launch.services import embedded_services, running_services
from tests.launch.machines import AS_NOBODY, clean_environment, family, launch, remove_home, survivors

is_root = os.geteuid() == 0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home that the test starts more than once."""
    folder = tmp_path / "home"
    yield folder
    if folder.exists():
        remove_home(folder)


def modes_above(path: Path) -> dict[Path, tuple[int, int, int]]:
    found = {parent: parent.stat() for parent in path.parents}
    return {parent: (stat.S_IMODE(one.st_mode), one.st_uid, one.st_gid) for parent, one in found.items()}


def answers(env: dict[str, str]) -> None:
    with psycopg.connect(env["DATABASE_URL"]) as connection:
        assert connection.info.server_version // 10_000 == int(VERSION)
    with redis.Redis.from_url(env["REDIS_URL"]) as client:
        assert client.ping()


@pytest.mark.parametrize(
    "name",
    ["with a space", 'ünï\'codé "quoted"', "deep/" + "/".join(["a" * 40] * 5)],
    ids=["space", "odd", "long"],
)
def test_the_servers_start_wherever_the_home_lies(tmp_path: Path, name: str) -> None:
    with embedded_services(tmp_path / name / "home", durable=False, keep=False) as env:
        answers(env)


def test_two_homes_run_side_by_side_and_do_not_share_anything(tmp_path: Path) -> None:
    with (
        embedded_services(tmp_path / "one", durable=False, keep=False) as one,
        embedded_services(tmp_path / "two", durable=False, keep=False) as two,
    ):
        answers(one)
        answers(two)
        assert set(one.values()).isdisjoint(two.values())
        with psycopg.connect(one["DATABASE_OWNER_URL"], autocommit=True) as connection:
            connection.execute("CREATE TABLE only_here ()")
        with psycopg.connect(two["DATABASE_OWNER_URL"]) as connection:
            assert connection.execute("SELECT to_regclass('only_here')").fetchone() == (None,)


def test_a_second_start_of_one_home_names_the_process_that_has_it(tmp_path: Path) -> None:
    with (
        embedded_services(tmp_path / "home", durable=False, keep=False),
        pytest.raises(LaunchError, match=f"already in use by process {os.getpid()}"),
        embedded_services(tmp_path / "home"),
    ):
        pytest.fail("two launchers had one home")


def test_a_copied_home_cannot_take_the_servers_of_the_first(tmp_path: Path) -> None:
    with embedded_services(tmp_path / "home", durable=False, keep=False) as env:
        subprocess.run(["cp", "-a", tmp_path / "home", tmp_path / "copy"], check=True)
        if is_root:
            with pytest.raises(LaunchError, match="already in use"), embedded_services(tmp_path / "copy"):
                pytest.fail("two launchers had one set of data")
        answers(env)


def test_no_folder_that_was_there_before_changes_its_permissions(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    home = private / "home"
    home.mkdir(mode=0o750)
    watched = [home / "x", Path(psycopg.__file__), places.ROOT_FOLDER / "x", *places.SOCKET_PARENTS]
    existing = [path for path in watched if path.parent.exists()]
    before = [modes_above(path) for path in existing]
    with embedded_services(home, durable=False, keep=False) as env:
        answers(env)
    assert [modes_above(path) for path in existing] == before


def test_secrets_are_readable_by_the_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with embedded_services(home, durable=False, keep=False) as env:
        for name in ("owner.dsn", "superuser.dsn", "passwords.json"):
            assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
        assert (home / "owner.dsn").read_text().strip() == env["DATABASE_OWNER_URL"]
        socket_folder = Path(env["DATABASE_URL"].partition("?host=")[2])
        assert stat.S_IMODE(socket_folder.stat().st_mode) == 0o700


def test_passwords_are_asked_for_and_no_port_is_open(tmp_path: Path) -> None:
    others = {process.pid for process in psutil.Process().children(recursive=True)}
    with embedded_services(tmp_path / "home", durable=False, keep=False) as env:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(env["DATABASE_URL"], password="wrong", connect_timeout=5)
        stranger = env["REDIS_URL"].replace("unix://:", "unix://:not")
        with redis.Redis.from_url(stranger) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
        servers = [one for one in psutil.Process().children(recursive=True) if one.pid not in others]
        assert servers
        for process in servers:
            assert [one for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN] == []


def test_the_application_uses_tables_and_the_owner_makes_them(tmp_path: Path) -> None:
    with embedded_services(tmp_path / "home", durable=False, keep=False) as env:
        with psycopg.connect(env["DATABASE_OWNER_URL"], autocommit=True) as owner:
            owner.execute("CREATE TABLE task (id bigint GENERATED ALWAYS AS IDENTITY, name text)")
            owner.execute("CREATE TABLE langgraph.checkpoint (id bigserial)")
            rights = owner.execute("SELECT rolsuper, rolcreatedb FROM pg_roles WHERE rolname = current_user")
            assert rights.fetchone() == (False, True)
        with psycopg.connect(env["DATABASE_URL"], autocommit=True) as app:
            app.execute("INSERT INTO task (name) VALUES ('ä')")
            app.execute("INSERT INTO langgraph.checkpoint DEFAULT VALUES")
            for statement in (
                "CREATE TABLE other ()",
                "DROP TABLE task",
                "TRUNCATE task",
                "ALTER TABLE task ADD x int",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    app.execute(statement)


def test_a_second_start_finds_the_data_of_the_first(home: Path) -> None:
    with embedded_services(home) as first, psycopg.connect(first["DATABASE_OWNER_URL"]) as connection:
        connection.execute("CREATE TABLE kept ()")
    with embedded_services(home) as second, psycopg.connect(second["DATABASE_URL"]) as connection:
        assert second == first
        assert connection.execute("SELECT to_regclass('kept')").fetchone() == ("kept",)


def test_servers_end_with_a_launcher_that_is_killed(home: Path, tmp_path: Path) -> None:
    launcher = launch(tmp_path, "services", "--home", str(home), env=clean_environment())
    launcher.variables()
    everything = family(launcher.pid)
    assert len(everything) > 2
    launcher.end(signal.SIGKILL)
    assert survivors(everything) == []
    with embedded_services(home) as env:
        answers(env)


def test_a_server_that_outlived_its_launcher_is_replaced(home: Path) -> None:
    folder = open_home(home)
    with running_services(folder) as services:
        assert services.postgres
        passwords = services.postgres.passwords
    # No lock is held: what runs now is what a killed launcher leaves behind on a system without leashes.
    found = places.prepare_places(folder)
    with places.socket_folder(folder, found.account) as sockets:
        leftover = start_postgres(folder, found, sockets, passwords)
    with embedded_services(home) as env:
        assert leftover.process.wait(5) == 0
        answers(env)


def test_data_of_another_version_is_refused_in_one_line(home: Path) -> None:
    folder = open_home(home)
    with running_services(folder, valkey=False):
        pass
    mark = places.prepare_places(folder).data / "postgres" / "PG_VERSION"
    mark.write_text("17\n")
    with (
        pytest.raises(LaunchError, match="is of PostgreSQL 17 and this is PostgreSQL 18"),
        embedded_services(home),
    ):
        pytest.fail("started on data of another version")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_services_print_their_addresses_and_stop_when_asked(
    home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    launcher = launch(tmp_path, "services", "--home", str(home), env=clean_environment())
    answers(launcher.variables())
    everything = family(launcher.pid)
    assert launcher.end(number) == 0
    assert survivors(everything) == []


def test_scratch_data_of_a_killed_session_is_removed_later_unless_in_use(tmp_path: Path) -> None:
    if not is_root:
        return  # an ordinary user's data lies in the home itself
    abandoned = places.ROOT_FOLDER / f"{places.SCRATCH}-of-a-killed-session"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    with embedded_services(tmp_path / "used", durable=False, keep=False) as env:
        long_ago = time.time() - 2 * places.SCRATCH_SECONDS
        used = Path(json.loads((tmp_path / "used" / "servers.json").read_text())["data"])
        for folder in (abandoned, used):
            os.utime(folder, (long_ago, long_ago))
        with embedded_services(tmp_path / "next", durable=False, keep=False):
            assert not abandoned.exists()
            answers(env)
            assert used.exists()


def test_a_scratch_command_finds_servers_and_decides_the_exit_code(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['DATABASE_URL']); sys.exit(3)"
    launcher = launch(tmp_path, "scratch", "--", sys.executable, "-c", code, env=clean_environment())
    assert launcher.process.wait(30) == 3
    assert launcher.said().startswith("postgresql://countersign_app:")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any account can reach; pytest's own is closed to all but the caller."""
    with tempfile.TemporaryDirectory(prefix="of nobody ") as folder:
        yield Path(folder)


def test_an_ordinary_user_keeps_everything_at_home(tmp_path: Path, open_folder: Path) -> None:
    home = open_folder / "home"
    prefix: tuple[str, ...] = ()
    if is_root:
        nobody = pwd.getpwnam("nobody")
        os.chown(open_folder, nobody.pw_uid, nobody.pw_gid)
        prefix = AS_NOBODY
    launcher = launch(tmp_path, "services", "--home", str(home), env=clean_environment(), prefix=prefix)
    answers(launcher.variables())
    everything = family(launcher.pid)
    assert all(process.uids().effective != 0 for process in everything)
    assert (home / "servers" / "postgres" / "PG_VERSION").exists()
    assert launcher.end() == 0
    assert survivors(everything) == []
