"""What cannot start says so in one line, exits with 1 and leaves nothing behind."""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reviewer.launch.errors import LaunchError
from reviewer.launch.options import read_options
from tests.launch.machines import AS_NOBODY, refused
from tests.servers import servers


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@contextlib.contextmanager
def database_of_version(version: str) -> Iterator[str]:
    """A server that speaks just enough of PostgreSQL's protocol to greet a client with its version."""

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!i", len(body) + 4) + body

    def parameter(name: str, value: str) -> bytes:
        return message(b"S", name.encode() + b"\0" + value.encode() + b"\0")

    def greet(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(10_000)
            connection.sendall(
                message(b"R", struct.pack("!i", 0))
                + parameter("server_version", version)
                + parameter("client_encoding", "UTF8")
                + message(b"Z", b"I")
            )
            connection.recv(10_000)

    with listening() as listener:
        thread = threading.Thread(target=greet, args=[listener])
        thread.start()
        yield f"postgresql://someone@127.0.0.1:{listener.getsockname()[1]}/some?sslmode=disable&gssencmode=disable"
        thread.join(10)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with listening() as listener:
        port = listener.getsockname()[1]
        line = refused(tmp_path / "home", PORT=str(port))
    assert line == f"Cannot serve on 127.0.0.1:{port}: address already in use. Choose another with PORT=..."


def test_a_home_that_is_no_folder_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file")
    line = refused(home, PORT="0")
    assert line == f"COUNTERSIGN_HOME {home} cannot be used: Not a directory."


def test_a_home_that_may_not_be_used_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    prefix = AS_NOBODY if os.geteuid() == 0 else ()
    line = refused(home, prefix=prefix, PORT="0")
    assert line == f"COUNTERSIGN_HOME {home} cannot be used: Permission denied."


def test_a_database_that_is_too_old_is_named(tmp_path: Path) -> None:
    with database_of_version("13.14") as url:
        line = refused(tmp_path / "home", PORT="0", DATABASE_URL=url)
    assert line == "The database named by DATABASE_URL is PostgreSQL 13.14; 14 or newer is needed."


def test_a_database_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    line = refused(tmp_path / "home", PORT="0", DATABASE_URL="postgresql://me:hidden-word@127.0.0.1:1/mine")
    assert line.startswith("The database named by DATABASE_URL cannot be used: ")
    assert "hidden-word" not in line


def test_an_owner_that_may_not_log_in_is_named(tmp_path: Path) -> None:
    wrong = servers().app_url.replace("countersign_app:", "countersign_app:not")
    line = refused(tmp_path / "home", PORT="0", DATABASE_URL=servers().app_url, DATABASE_OWNER_URL=wrong)
    assert line.startswith("The database named by DATABASE_OWNER_URL cannot be used: ")
    assert "password authentication failed" in line


def test_a_missing_redis_is_named(tmp_path: Path) -> None:
    line = refused(tmp_path / "home", PORT="0", REDIS_URL="redis://127.0.0.1:1/0")
    assert line.startswith("The Redis named by REDIS_URL cannot be used: ")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "countersign.example"])
def test_demo_mode_stays_on_this_machine(host: str) -> None:
    with pytest.raises(LaunchError, match="Demo mode has known passwords"):
        read_options({"HOST": host})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_demo_mode_serves_loopback(host: str) -> None:
    assert read_options({"HOST": host}).demo


def test_without_demo_mode_no_secret_is_made() -> None:
    with pytest.raises(LaunchError, match="COUNTERSIGN_SECRET_KEY is not set"):
        read_options({"COUNTERSIGN_DEMO": "0"})


@pytest.mark.parametrize("port", ["70000", "-1", "http", "٣"])
def test_a_port_is_a_port(port: str) -> None:
    with pytest.raises(LaunchError, match="PORT must be a number"):
        read_options({"PORT": port})
