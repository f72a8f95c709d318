"""COUNTERSIGN_HOME: one installation's folder. Its files, its lock, its secrets.

What the servers keep, and where, is in `places`; this room never changes a folder that was there before.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from reviewer.launch.errors import LaunchError

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
LONG_LOG_BYTES = 20_000_000


@dataclass(frozen=True)
class Home:
    """The folder, as an absolute path that exists and that we may write."""

    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Only one start at a time."""
        return held(self.path / "lock", what=f"COUNTERSIGN_HOME {self.path}")

    def open_log(self, name: str) -> IO[bytes]:
        """For appending; a log that has grown long moves aside and replaces the one before it."""
        log = self.logs / f"{name}.log"
        if log.exists() and log.stat().st_size > LONG_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        return log.open("ab")

    def write_private(self, name: str, text: str) -> Path:
        """Write a file that is at no moment readable by others or half written."""
        target = self.path / name
        draft = self.path / f".{name}.{os.getpid()}"
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        draft.replace(target)
        return target

    def read(self, name: str) -> str | None:
        try:
            return (self.path / name).read_text()
        except FileNotFoundError:
            return None

    def read_record(self, name: str) -> dict[str, str]:
        text = self.read(name)
        if text is None:
            return {}
        try:
            record = json.loads(text)
        except ValueError:
            raise LaunchError(f"{self.path / name} is damaged; put it back from a backup.") from None
        return {str(key): str(value) for key, value in record.items()}

    def write_record(self, name: str, record: dict[str, str]) -> None:
        self.write_private(name, json.dumps(record, indent=2, sort_keys=True) + "\n")


def open_home(path: Path) -> Home:
    """Make the folder if it is missing; an existing one keeps the permissions it has."""
    path = path.expanduser().absolute()
    try:
        if not path.exists():
            path.mkdir(parents=True, mode=PRIVATE_FOLDER)
        (path / "logs").mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        next(path.iterdir())
    except OSError as error:
        raise LaunchError(f"COUNTERSIGN_HOME {path} cannot be used: {error.strerror}.") from None
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise LaunchError(f"COUNTERSIGN_HOME {path} cannot be used: it is not writable.")
    return Home(path)


@contextlib.contextmanager
def held(lock_file: Path, *, what: str) -> Iterator[None]:
    """Hold `lock_file` while the body runs. The kernel lets go when this process dies, however it dies."""
    with lock_file.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise LaunchError(f"{what} is already in use by process {holder}.") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
