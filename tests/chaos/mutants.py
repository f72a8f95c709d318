"""``make mutants``: take one guard after another out of a copy of the tree, and see that tests fail for it.

A guard that can go without a test noticing guards nothing. Each mutant replaces one text in one file,
so it fails loudly when the code it names has moved, and names what must notice: the chaos schedules for the
guards that everything rests on, the quick suite for the others.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.report import say
from tests.servers import PROJECT

MAX_SECONDS = 900
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".countersign*", "__pycache__", ".*_cache", ".hypothesis")
TESTS_FAILED = 1


@dataclass(frozen=True)
class Mutant:
    """One guard less: in ``file``, ``old`` (which stands there once) becomes ``new``; ``suite`` must fail.

    Without a suite, it is the chaos schedules in which much comes at once.
    """

    name: str
    file: str
    old: str
    new: str
    suite: str = ""


LEDGER, GATE = "agents_runtime/ledger.py", "tests/runtime/test_gate.py"
GATE_LOCKS = "tests/runtime/test_gate_locks.py"
CROWDS = ("tests.chaos", "crowds", "--seeds=14", "--fail-fast")
DECISIONS, DECIDE = "reviewer/decisions.py", "tests/deciding/test_decide.py"
CONSTRAINT = "            constraint=models.UniqueConstraint("
MUTANTS = (
    Mutant(
        "thread lock",
        "agents_runtime/thread_lock.py",
        "SELECT pg_try_advisory_lock(%s) AS is_ours",
        "SELECT %s::bigint IS NOT NULL AS is_ours",
    ),
    Mutant(
        "epoch check of a turn",
        "agents_runtime/records.py",
        "    if run.epoch != epoch:\n",
        "    if False:\n",
    ),
    Mutant("epoch check of the gate", LEDGER, "    if run.epoch != call.epoch:\n", "    if False:\n"),
    Mutant(
        "fence round the checkpoints",
        "agents_runtime/fence.py",
        "WHERE id = %s AND epoch = %s AND status",
        "WHERE id = %s AND epoch >= 0 * %s AND status",
        "tests/runtime/test_fence.py",
    ),
    Mutant(
        "row of the run while a checkpoint is stored",
        "agents_runtime/fence.py",
        "{RunStatus.CANCELLED.value}' FOR SHARE)",
        "{RunStatus.CANCELLED.value}')",
        "tests/runtime/test_thread_lock.py",
    ),
    Mutant(
        "gate",
        "agents_runtime/gate.py",
        '        """Let the tool run, stop it, or give the result it had before."""\n',
        "        return\n",
    ),
    Mutant(
        "ledger's unique key of an attempt",
        "agents_runtime/migrations/0001_initial.py",
        CONSTRAINT + "fields=('run', 'call_key', 'attempt'),",
        CONSTRAINT + "fields=('id',),",
    ),
    Mutant(
        "ledger's unique key of a success",
        "agents_runtime/migrations/0001_initial.py",
        CONSTRAINT
        + "condition=models.Q(('status__in', ['succeeded', 'asserted'])), fields=('run', 'call_key'),",
        CONSTRAINT + "fields=('id',),",
    ),
    Mutant("decision check", LEDGER, "    _check_decision(run, call, claim)\n", "", GATE),
    Mutant("argument check", LEDGER, "    if not _fit(call, arguments, claim):\n", "    if False:\n", GATE),
    Mutant(
        "delivery check",
        LEDGER,
        "    if pause.status != PauseStatus.DELIVERING or pause.delivery_epoch != call.epoch:\n",
        "    if False:\n",
        GATE,
    ),
    Mutant(
        "doubt",
        LEDGER,
        '        raise _Refused("in_doubt", STARTED_BEFORE, latest.pause)\n',
        "        return _finished(latest, claim)\n",
        "tests/runtime/test_gate.py::test_a_call_starts_once_for_each_decision",
    ),
    Mutant(
        "look for an earlier attempt",
        LEDGER,
        "    latest = None if claim and not claim.was_tried else _latest(run, key)\n",
        "    latest = None\n",
        "tests/runtime/test_gate.py::test_a_call_starts_once_for_each_decision",
    ),
    Mutant(
        "row of the run while a call begins",
        LEDGER,
        '        asked.select_for_update(of=("run", "self"))\n',
        '        asked.select_for_update(of=("self",))\n',
        GATE_LOCKS,
    ),
    Mutant(
        "row of the pause while a call begins",
        LEDGER,
        '        asked.select_for_update(of=("run", "self"))\n',
        '        asked.select_for_update(of=("run",))\n',
        GATE_LOCKS,
    ),
    Mutant(
        "row of the run while a call ends",
        LEDGER,
        "WHERE id = %s AND epoch = %s FOR UPDATE\n",
        "WHERE id = %s AND epoch = %s\n",
        GATE_LOCKS,
    ),
    Mutant(
        "epoch check of the end of a call",
        LEDGER,
        "WHERE id = %s AND epoch = %s FOR UPDATE\n",
        "WHERE id = %s AND epoch >= 0 * %s FOR UPDATE\n",
        GATE,
    ),
    Mutant("digest check", DECISIONS, "    _guard_digest(task, digest)\n", "", DECIDE),
    Mutant("claim check", DECISIONS, "    claims.guard_not_taken(task, by=by)\n", "", DECIDE),
    Mutant(
        "fence of a claim",
        DECISIONS,
        "    if claim_version is None or claim_version == task.claim_version:\n",
        "    if True:\n",
        DECIDE,
    ),
    Mutant("check who may decide", DECISIONS, "    claims.guard_may_decide(task, by=by)\n", "", DECIDE),
    Mutant("check that it is open", DECISIONS, "    claims.guard_open(task)\n", "", DECIDE),
    Mutant(
        "kept replies",
        "reviewer/api/idempotency.py",
        "        if kept is not None:\n",
        "        if False:\n",
        "tests/api/test_idempotency.py",
    ),
)


def main() -> int:
    """Return 1 if a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose name holds one of these words")
    words = parser.parse_args().words
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    survivors = 0
    for mutant in chosen:
        began = time.monotonic()
        died, why = try_out(mutant)
        survivors += not died
        say(f"{'died' if died else 'SURVIVED':9} {mutant.name} ({time.monotonic() - began:.0f} s): {why}")
    say(f"{len(chosen)} mutants, {survivors} survived")
    return 1 if survivors else 0


def try_out(mutant: Mutant) -> tuple[bool, str]:
    """Return whether the suite failed on a copy without the guard, and the first thing that failed."""
    with tempfile.TemporaryDirectory(prefix="countersign-mutant-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(PROJECT, copy, ignore=LEFT_OUT)
        _mutate(copy / mutant.file, mutant)
        done = _try(copy, mutant.suite)
    failed = _signs(done.stdout, mutant)
    if done.returncode not in {0, TESTS_FAILED} or (done.returncode and not failed):
        # What cannot even be set up has noticed nothing, and has let nothing pass either.
        say(f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return False, "what must notice did not run; see above"
    return bool(failed), (failed or [f"all of {mutant.suite or 'the crowds'} passed"])[0][:160]


def _signs(printed: str, mutant: Mutant) -> list[str]:
    """Return the tests that failed, or the invariants that a schedule violated."""
    lines = [line.strip() for line in printed.splitlines()]
    if not mutant.suite:
        return [line for line in lines if line.startswith("seed ") and ": I-" in line]
    if any(line.startswith("ERROR") for line in lines):
        return []
    return [line for line in lines if line.startswith("FAILED")]


def _try(copy: Path, suite: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
    pytest = ("pytest", "-q", "-x", "-p", "no:randomly", suite)
    return subprocess.run(
        [sys.executable, "-m", *(pytest if suite else CROWDS)],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )


def _mutate(path: Path, mutant: Mutant) -> None:
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.file} does not hold this exactly once: {mutant.old!r}")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
