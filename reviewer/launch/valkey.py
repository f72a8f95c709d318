"""The embedded Valkey: broker and channel layer. Keeps nothing on disk, since losing it loses nothing."""

import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import redis

from reviewer.launch import processes
from reviewer.launch.errors import LaunchError
from reviewer.launch.home import Home
from reviewer.launch.places import Places

SERVER_ENV = {"LC_ALL": "C", "TZ": "UTC"}
START_SECONDS = 15.0
STOP_SECONDS = 10.0


@dataclass(frozen=True)
class Valkey:
    """A running server."""

    process: subprocess.Popen[bytes]
    socket: Path
    password: str

    @property
    def url(self) -> str:
        return f"unix://:{self.password}@{self.socket}?db=0"

    def stop(self) -> None:
        processes.stop(self.process, signal.SIGTERM, grace=STOP_SECONDS)


def start_valkey(home: Home, places: Places, sockets: Path, password: str) -> Valkey:
    socket, pid_file = sockets / "valkey.sock", sockets / "valkey.pid"
    _stop_leftover(pid_file)
    # On standard input: the password shows neither in the process list nor in a file.
    configuration = "\n".join(
        (
            "port 0",
            f"unixsocket {socket}",
            "unixsocketperm 700",
            f"requirepass {password}",
            'save ""',
            "appendonly no",
            f"dir {sockets}",
            f"pidfile {pid_file}",
            "maxmemory-policy noeviction",
            "",
        )
    )
    with home.open_log("valkey") as log:
        process = processes.start(
            [places.valkey, "-"], env=SERVER_ENV, log=log, account=places.account, stdin=subprocess.PIPE
        )
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(configuration.encode())
    server = Valkey(process, socket, password)
    try:
        _wait_until_ready(server, home)
    except BaseException:
        server.stop()
        raise
    return server


def _wait_until_ready(server: Valkey, home: Home) -> None:
    deadline = time.monotonic() + START_SECONDS
    with redis.Redis.from_url(server.url) as client:
        while time.monotonic() < deadline:
            if server.process.poll() is not None:
                break
            try:
                client.ping()
            except redis.ConnectionError:
                time.sleep(0.02)
                continue
            return
    raise LaunchError(f"The embedded Valkey did not start; see {home.logs / 'valkey.log'}.")


def _stop_leftover(pid_file: Path) -> None:
    """End a server whose launcher was killed. The caller holds the lock, so no living launcher owns it."""
    try:
        pid = int(pid_file.read_text())
    except (FileNotFoundError, ValueError):
        return
    if not processes.stop_stranger(pid, signal.SIGTERM, grace=STOP_SECONDS, program="valkey-server"):
        raise LaunchError(f"An older Valkey (process {pid}) does not stop.")
