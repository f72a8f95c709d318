"""The tools of the test agents. Flags (see ``effects``) make them fail, wait, die or read the database."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

from langchain_core.tools import tool
from langgraph.types import interrupt

from agents_runtime.models import Run
from tests.agents import effects

MAX_WAIT = 30.0


@tool
def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    _trouble("pay")
    effects.happened("pay", to=to, amount=amount)
    _trouble("after_pay")
    return f"paid {amount} to {to}"


@tool
def drop(path: str) -> str:
    """Delete a file."""
    _trouble("drop")
    effects.happened("drop", path=path)
    return f"dropped {path}"


@tool
def look(what: str) -> str:
    """Look at something; nobody need be asked."""
    _trouble("look")
    effects.happened("look", what=what)
    return f"saw {what}"


@tool
def haggle(to: str, amount: int) -> str:
    """Pay somebody, but ask again while at it."""
    effects.happened("haggle_began", to=to)
    agreed = interrupt({"question": f"Really {amount} to {to}?"})
    effects.happened("haggle", to=to, agreed=agreed)
    return f"haggled {agreed}"


@tool
async def apay(to: str, amount: int) -> str:
    """Pay somebody, on an event loop."""
    while effects.is_set("wait_apay_on_loop"):  # noqa: ASYNC110  the test may be another process
        await asyncio.sleep(0.02)
    _trouble("apay")
    effects.happened("apay", to=to, amount=amount)
    return f"paid {amount} to {to}"


def _trouble(name: str) -> None:
    """Wait, raise or die, as the test wants."""
    effects.happened(f"{name}_began")
    if effects.is_set(f"read_{name}"):
        effects.happened(f"{name}_read", runs=Run.objects.count())
    end = time.monotonic() + MAX_WAIT
    while effects.is_set(f"wait_{name}") and time.monotonic() < end:
        time.sleep(0.02)
    if effects.is_set(f"die_{name}"):
        effects.flag(f"die_{name}").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if effects.is_set(f"exit_{name}"):
        raise SystemExit(f"{name} is torn down")
    if effects.is_set(f"fail_{name}"):
        raise RuntimeError(f"{name} does not work today")


GATED: dict[str, Any] = {
    "pay": {"allowed_decisions": ["approve", "edit", "reject", "respond"]},
    "drop": {"allowed_decisions": ["approve", "reject"]},
    "haggle": {"allowed_decisions": ["approve", "reject"]},
}
