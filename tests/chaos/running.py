"""Running a part of the chaos suite from a test, on servers of its own."""

from __future__ import annotations

import subprocess
import sys

from tests.servers import PROJECT

MAX_SECONDS = 900


def play(part: str, *, seeds: int) -> str:
    """Play the first schedules of a part in a process of its own; return its report, or fail with it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", part, f"--seeds={seeds}"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-20_000:]}"
    return done.stdout
