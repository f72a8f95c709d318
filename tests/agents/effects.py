"""Traces on disk: what the tools of the test agents really did, apart from the product's own ledger."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def folder() -> Path:
    """Return the folder of the traces; the same in every process of a test session."""
    found = Path(os.environ["COUNTERSIGN_HOME"]) / "effects"
    found.mkdir(parents=True, exist_ok=True)
    return found


def happened(name: str, **details: Any) -> None:
    """Add one trace in a single write."""
    line = json.dumps({"name": name, **details}) + "\n"
    with os.fdopen(os.open(folder() / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT), "w") as log:
        log.write(line)


def all_effects() -> list[dict[str, Any]]:
    """Return every trace, oldest first."""
    log = folder() / "log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def count(name: str, **details: Any) -> int:
    """Return how often it happened with these details."""
    wanted = {"name": name, **details}
    return sum(1 for effect in all_effects() if wanted.items() <= effect.items())


def flag(name: str) -> Path:
    """Return the file by which a test changes how a tool or a condition behaves."""
    return folder() / f"flag-{name}"


def is_set(name: str) -> bool:
    """Say whether a test has set the flag."""
    return flag(name).exists()


def clear() -> None:
    """Forget every trace and flag."""
    for path in folder().iterdir():
        path.unlink()
