"""Makes .venv and installs a lock file into it: `install.py LOCK_FILE STAMP`.

Run as a file by any Python that may carry the product, before anything is installed: standard library only.
The stamp tells make that there is nothing to do. Two installs in one checkout wait for each other.
"""

import fcntl
import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
OLDEST, TOO_NEW = (3, 11), (3, 14)
LINES_EVERY = 20
ERROR_LINES = 12
# What pip says once for each line of the lock file.
PACKAGE_BEGINS = ("Collecting ", "Ignoring ", "Processing ", "Requirement already satisfied")
VERSION_CHECK = f"import pip, sys; sys.exit(not {OLDEST} <= sys.version_info[:2] < {TOO_NEW})"


def main(lock_file: Path, stamp: Path) -> int:
    with (PROJECT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_current(stamp, lock_file):
            return 0
        if not venv_is_usable():
            print(f"Making {VENV.name} with Python {sys.version.split()[0]}", flush=True)
            venv.create(VENV, clear=True, with_pip=True)
        if not install(lock_file):
            return 1
        stamp.touch()
    return 0


def is_current(stamp: Path, lock_file: Path) -> bool:
    return stamp.exists() and stamp.stat().st_mtime >= lock_file.stat().st_mtime


def venv_is_usable() -> bool:
    """Its interpreter may be gone or replaced since it was made."""
    if not PYTHON.exists():
        return False
    return subprocess.run([PYTHON, "-c", VERSION_CHECK], capture_output=True, check=False).returncode == 0


def install(lock_file: Path) -> bool:
    total = sum(
        "==" in line and not line.startswith((" ", "#")) for line in lock_file.read_text().splitlines()
    )
    print(f"Installing {total} packages of {lock_file.name}", flush=True)
    began = time.monotonic()
    command: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
    ]
    command += ["--require-hashes", "--requirement", lock_file]
    pip = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert pip.stdout is not None
    lines: list[str] = []
    with pip.stdout:
        show_progress(pip.stdout, total, lines)
    if pip.wait() != 0:
        print("\n".join(lines[-ERROR_LINES:]), file=sys.stderr)
        print(
            f"countersign: {lock_file.name} could not be installed; pip's words are above.", file=sys.stderr
        )
        return False
    print(f"Installed in {time.monotonic() - began:.0f} s", flush=True)
    return True


def show_progress(output: Iterable[str], total: int, lines: list[str]) -> None:
    """Count packages as pip names them: rewriting one line on a terminal, now and then elsewhere."""
    done = 0
    for text in output:
        line = text.rstrip()
        lines.append(line)
        if line.startswith(PACKAGE_BEGINS):
            done += 1
            if sys.stdout.isatty():
                print(f"\r  {done} of {total} ", end="", flush=True)
            elif done % LINES_EVERY == 0:
                print(f"  {done} of {total}", flush=True)
        elif line.startswith("Installing collected"):
            print("\r  unpacking ..." if sys.stdout.isatty() else "  unpacking ...", flush=True)


def as_paths(arguments: Sequence[str]) -> tuple[Path, Path]:
    lock_file, stamp = arguments
    return PROJECT / lock_file, PROJECT / stamp


if __name__ == "__main__":
    sys.exit(main(*as_paths(sys.argv[1:])))
