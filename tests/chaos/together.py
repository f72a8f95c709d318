"""All parts side by side, each in a process and on servers of its own; what they did is added up at the end.

The single deaths are most of the work and are shared by two processes, at a low priority: the whole product
must keep the processor time that it needs to show how soon it recovers.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reviewer.launch import processes
from tests.chaos import stages
from tests.chaos.report import Report, say
from tests.servers import PROJECT

KEPT = PROJECT / ".countersign" / "chaos"
LATEST = 45 * 60.0
"""After so long a process is ended; what it did by then is reported, and can be gone on with."""


@dataclass(frozen=True)
class Share:
    """A part, or one of several shares of it."""

    part: str
    first: int = 0
    every: int = 1
    niceness: int = 0
    seeds: int = 0

    @property
    def name(self) -> str:
        """Name it."""
        return f"{self.part}-{self.first}"

    @property
    def kept(self) -> Path:
        """Where its report is kept."""
        return KEPT / f"{self.name}.json"

    def command(self, each: int) -> list[str]:
        """Return what plays it."""
        numbers = [f"--first={self.first}", f"--every={self.every}", f"--keep={self.kept}"]
        much = f"--seeds={self.seeds}" if self.seeds else f"--each={-(-each // self.every)}"
        rest = ["-m", "tests.chaos", self.part, *numbers, much]
        return ["nice", "-n", str(self.niceness), sys.executable, *rest]


SHARES = (
    Share("product"),
    Share("deaths", first=0, every=2, niceness=10),
    Share("deaths", first=1, every=2, niceness=10),
    Share("crowds", niceness=10, seeds=20),
)


def play(parts: Sequence[str], *, each: int, resume: bool) -> int:
    """Return 1 if anything is not well."""
    KEPT.mkdir(parents=True, exist_ok=True)
    chosen = [share for share in SHARES if share.part in parts]
    for share in chosen:
        if not resume:
            share.kept.unlink(missing_ok=True)
    workers = [threading.Thread(target=_run, args=(share, each), daemon=True) for share in chosen]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    code = 0
    for part in parts:
        report = Report()
        for share in chosen:
            if share.part == part and share.kept.exists():
                report.add(Report.kept(share.kept))
        code = max(code, stages.tell(part, report, each), 0 if report.seeds else 1)
    return code


def _run(share: Share, each: int) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
    with subprocess.Popen(
        processes.leashed(share.command(each)),  # it ends with us, however we end
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        _stand_back(process.pid, share.niceness)
        alarm = threading.Timer(LATEST, process.terminate)
        alarm.daemon = True
        alarm.start()
        assert process.stdout is not None
        with (KEPT / f"{share.name}.log").open("a") as log:
            for line in process.stdout:
                log.write(line)
                if line.startswith("seed ") or "died at" in line or "broke down" in line:
                    say(f"{share.name}: {line.rstrip()}")
        alarm.cancel()


def _stand_back(session: int, niceness: int) -> None:
    """Lower the priority of a whole session where the kernel shares out time by sessions (autogroups)."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{session}/autogroup").write_text(str(niceness))
