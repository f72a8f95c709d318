"""`make` before anything is installed: which Python it takes, what it says without one; the lock files."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.machines import PROJECT

THIS_PYTHON = f"exec '{sys.executable}' \"$@\""
LOCKS = ("requirements.lock", "requirements-dev.lock")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of a fresh clone as an install needs, with nothing to install."""
    folder = tmp_path / "a checkout"
    (folder / "reviewer" / "launch").mkdir(parents=True)
    shutil.copy(PROJECT / "Makefile", folder)
    shutil.copy(PROJECT / "reviewer" / "launch" / "install.py", folder / "reviewer" / "launch")
    for lock in LOCKS:
        (folder / lock).write_text("# nothing\n")
    return folder


def fake_python(folder: Path, script: str) -> str:
    program = folder / "fake-python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program.name


def make(checkout: Path, target: str, *, python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", target, f"PYTHONS={python}"],
        cwd=checkout,
        env={"PATH": f"{checkout}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What we say; make adds a line of its own."""
    assert done.returncode != 0
    return [line for line in done.stderr.splitlines() if not line.startswith("make: ")]


def test_a_python_that_is_too_old_is_told_in_one_line(checkout: Path) -> None:
    python = fake_python(checkout, "exit 1")
    assert complaints(make(checkout, ".venv/run.stamp", python=python)) == [
        "countersign: Python 3.11, 3.12 or 3.13 is needed, and none of fake-python is one."
    ]


def test_a_missing_venv_module_is_told_in_one_line(checkout: Path) -> None:
    python = fake_python(checkout, 'case "$2" in *ensurepip*) exit 1;; esac')
    assert complaints(make(checkout, ".venv/run.stamp", python=python)) == [
        "countersign: fake-python has no venv module; install it (Debian: apt install fake-python-venv)."
    ]


def test_an_install_makes_the_venv_and_a_second_one_does_nothing(checkout: Path) -> None:
    python = fake_python(checkout, THIS_PYTHON)
    first = make(checkout, ".venv/dev.stamp", python=python)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("Making .venv with Python 3.")
    assert (checkout / ".venv" / "bin" / "python").exists()
    for stamp in (".venv/dev.stamp", ".venv/run.stamp"):
        assert "up to date" in make(checkout, stamp, python=python).stdout


def test_a_failed_install_says_why_and_is_tried_again(checkout: Path) -> None:
    (checkout / "requirements.lock").write_text(
        "no-such-thing @ file:///nowhere/no_such_thing-1-py3-none-any.whl\n"
    )
    python = fake_python(checkout, THIS_PYTHON)
    done = make(checkout, ".venv/run.stamp", python=python)
    assert (
        complaints(done)[-1]
        == "countersign: requirements.lock could not be installed; pip's words are above."
    )
    assert not (checkout / ".venv" / "run.stamp").exists()


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_every_package_by_hash_and_names_no_registry(name: str) -> None:
    text = (PROJECT / name).read_text()
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text)
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)
    assert len(entries) > 50
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+", entry)
        assert "--hash=sha256:" in entry


def test_what_tests_run_on_is_what_is_shipped() -> None:
    run, dev = (
        set(re.findall(r"^[a-z0-9-]+==[^\s;]+", (PROJECT / lock).read_text(), re.M)) for lock in LOCKS
    )
    assert run < dev
