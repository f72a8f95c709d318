"""Child processes: started on a leash, in a group of their own, and stopped with everything they started.

What to start, and what a death means, is decided by the callers.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LEASH = Path(__file__).with_name("leash.py")
PROC = Path("/proc")
KILL_GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Account:
    """The system account a server runs as, when that is not the caller's own."""

    name: str
    uid: int
    gid: int


def leashed(
    command: Sequence[str | Path],
    *,
    account: Account | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
) -> list[str]:
    """The command line that runs `command` so that it cannot outlive this process."""
    identity = f"{account.uid}:{account.gid}" if account else "-"
    leash = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), str(int(death_signal)), identity]
    return leash + [str(part) for part in command]


def start(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    log: IO[bytes],
    cwd: str | Path = "/",
    account: Account | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own: Ctrl-C in the terminal reaches only us, and we stop it."""
    return subprocess.Popen(
        leashed(command, account=account, death_signal=death_signal),
        env=dict(env),
        cwd=cwd,
        stdin=stdin,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def group_is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def stop(process: subprocess.Popen[bytes], number: signal.Signals, *, grace: float) -> None:
    """Ask the child to end, wait `grace` seconds, then end its whole group, grandchildren included."""
    if process.poll() is None:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of the child's group running."""
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + KILL_GRACE_SECONDS
    while group_is_alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.02)


def stop_stranger(pid: int, number: signal.Signals, *, grace: float, program: str) -> bool:
    """Stop a process that is not our child, if it still is that program. False when it would not end."""
    if program_of(pid) != program:
        return True
    os.kill(pid, number)
    deadline = time.monotonic() + grace
    while program_of(pid) == program:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def program_of(pid: int) -> str | None:
    """The program's name, or None when there is no such living process: a pid is soon given to another."""
    if (PROC / "self" / "stat").exists():
        return _program_from_proc(pid)
    command = ["/bin/ps", "-o", "stat=,comm=", "-p", str(pid)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    state, _, program = found.stdout.strip().partition(" ")
    if not state or state.startswith("Z"):
        return None
    return Path(program.strip()).name


def _program_from_proc(pid: int) -> str | None:
    """Slim images have no ps."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # "pid (name) state ...": the name itself may hold blanks and brackets.
    before, _, after = text.rpartition(")")
    return None if after.split()[0] == "Z" else before.partition("(")[2]
