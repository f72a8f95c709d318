"""What the shipped tools do instead of harm: one line each in ``COUNTERSIGN_HOME/demo-effects.jsonl``.

That file shows which tools really ran, how often, and with what: newcomers look at it and tests count its
lines. Each has the idempotency key that a real tool would hand to a payment or mail provider.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from langgraph.prebuilt import ToolRuntime

from agents_runtime.reviewed import idempotency_key

FILE_NAME = "demo-effects.jsonl"


def record(tool: str, runtime: ToolRuntime, **arguments: Any) -> str:
    """Write that a tool took effect, and return the idempotency key of the call."""
    key = idempotency_key()
    line = {
        "at": dt.datetime.now(dt.UTC).isoformat(),
        "tool": tool,
        "thread": _thread(runtime.config),
        "key": key,
        "arguments": arguments,
    }
    _append(Path(settings.COUNTERSIGN_HOME) / FILE_NAME, json.dumps(line) + "\n")
    return key


def _thread(config: Mapping[str, Any]) -> str:
    return str(config.get("configurable", {}).get("thread_id", "no-thread"))


def _append(file: Path, text: str) -> None:
    """Append in one write, so that tools that run side by side never mix their lines."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
