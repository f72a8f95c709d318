"""The product's processes with failpoints in them: ``python -m tests.chaos.rigged nursery|worker|scheduler``.

*worker* and *scheduler* are the commands of ``make run``, with clocks that jump and messages that get lost,
doubled and late where the folder of the test says so. The *nursery* reads jobs, a JSON list on each line, and
forks a process for each job of a list, all at once: a fork of what is imported already is as good as a new
worker or web process, and quick.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import django
from celery import Celery
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.chaos import failpoints

REAL_TIME, REAL_TIME_NS, REAL_NOW = time.time, time.time_ns, timezone.now
LATEST = 1.5
JOB_SECONDS = 90
"""A job that takes longer hangs: it is ended, and its schedule with it."""
Json = Any


def folder() -> Path:
    """Return the folder by which a schedule speaks to the processes it torments."""
    found = Path(os.environ["COUNTERSIGN_HOME"]) / "chaos"
    found.mkdir(parents=True, exist_ok=True)
    return found


def main(mode: str, *arguments: str) -> None:
    """Become one of the processes."""
    django.setup()
    # A worker that starts again loads no more than the product's own: how soon it is back is measured.
    of_web = ("reviewer.config.urls",) if mode == "nursery" else ()
    for name in ("tests.agents.assistants", "tests.agents.graphs", "agents_runtime.tasks", *of_web):
        import_module(name)
    rig = failpoints.Rig(failpoints.Trigger(folder()), REAL_TIME)
    failpoints.install(rig, with_people=bool(of_web))
    _know_the_run(rig)
    _spoil_the_post()
    if mode == "nursery":
        _nursery()
        return
    rig.group = os.getpid() if os.getpgrp() == os.getpid() else 0
    _let_the_clock_jump()
    if mode == "worker":
        import_module("celery.__main__").main()
    else:
        call_command(mode, *arguments)


def _know_the_run(rig: failpoints.Rig) -> None:
    """Remember which run this process brings forward, so that a death can name it."""
    tasks: Any = import_module("agents_runtime.tasks")
    original = tasks._advance

    def advance(run_id: str) -> None:
        rig.run = run_id
        original(run_id)

    tasks._advance = advance


def _nursery() -> None:
    _warm_up()
    for line in sys.stdin:
        children = [_fork(job) for job in json.loads(line)]
        sys.stdout.write(json.dumps([_end_of(*child) for child in children]) + "\n")
        sys.stdout.flush()
    os._exit(0)


def _warm_up() -> None:
    """Do once what every fork would do again, and leave no connection open that a fork could inherit."""
    registry, engine = import_module("agents_runtime.registry"), import_module("agents_runtime.engine")
    models = import_module("agents_runtime.models")
    for spec in models.AgentSpec.objects.filter(name__startswith="t-", import_error=""):
        engine._build(registry.load_graph(spec))
    for path in ("runs", "tasks/00000000-0000-0000-0000-000000000000/decision"):
        _post(path, {}, "nobody", "")
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    gc.collect()
    gc.freeze()


def _fork(job: dict[str, Json]) -> tuple[int, int]:
    reads, writes = os.pipe()
    child = os.fork()
    if child:
        os.close(writes)
        return child, reads
    os.close(reads)
    code = 1
    try:
        told = _work(**job)
        os.write(writes, json.dumps(told).encode())
        code = 0
    except BaseException:  # noqa: BLE001  the test that waits for this process sees the code
        traceback.print_exc()
    os._exit(code)


def _end_of(child: int, reads: int) -> dict[str, Json]:
    with os.fdopen(reads) as pipe:
        told = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"code": code, "told": json.loads(told) if code == 0 else None}


def _work(do: str, seconds: float = 0.0, after: str = "", opens: str = "", **job: Json) -> Json:
    """Do one job; ``seconds``: die after so long, wherever that is.

    ``after`` and ``opens`` are doors: where it waits before it begins, and what it opens at its end.
    """
    signal.alarm(JOB_SECONDS)
    doors = failpoints.Trigger(folder())
    if seconds:
        killer = threading.Timer(seconds, failpoints.die)
        killer.daemon = True
        killer.start()
    if after:
        doors.wait_at(after)
    try:
        return JOBS[do](**job)
    finally:
        if opens:
            doors.open(opens)


def _advance(run: str) -> None:
    import_module("agents_runtime.tasks")._advance(run)


def _take_over(run: str) -> bool:
    """Take the thread as another worker would that dies before it does anything with it."""
    with import_module("agents_runtime.thread_lock").hold(UUID(run)) as epoch:
        return epoch is not None


def _sweep() -> int:
    woken = import_module("agents_runtime.recovery").sweep()
    import_module("agents_runtime.enqueue").flush()
    return int(woken)


def _post(path: str, body: Json, token: str, key: str) -> dict[str, Json]:
    headers = {"authorization": f"Bearer {token}", "idempotency-key": key}
    content = json.dumps(body).encode()
    response = Client(SERVER_NAME="127.0.0.1", raise_request_exception=False).post(
        f"/api/v1/{path}", content, content_type="application/json", headers=headers
    )
    import_module("agents_runtime.enqueue").flush()
    text = response.content.decode()
    is_json = response.headers.get("content-type", "").startswith("application/json")
    return {"status": response.status_code, "answer": json.loads(text) if text and is_json else None}


JOBS: dict[str, Callable[..., Json]] = {
    "advance": _advance,
    "take_over": _take_over,
    "sweep": _sweep,
    "post": _post,
}


def _let_the_clock_jump() -> None:
    """Add what the file says to this process's clock; the database's clock must rule all the same."""
    file = folder() / "clock"

    def offset() -> float:
        try:
            return float(file.read_text())
        except (FileNotFoundError, ValueError):
            return 0.0

    def shifted_time() -> float:
        return REAL_TIME() + offset()

    def shifted_time_ns() -> int:
        return REAL_TIME_NS() + int(offset() * 1_000_000_000)

    def shifted_now() -> Any:
        return REAL_NOW() + timedelta(seconds=offset())

    shifted = ((REAL_TIME, shifted_time), (REAL_TIME_NS, shifted_time_ns), (REAL_NOW, shifted_now))
    for module in list(sys.modules.values()):
        if module is sys.modules[__name__]:
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            for real, other in shifted:
                if value is real:
                    setattr(module, name, other)


def _spoil_the_post() -> None:
    """Lose, double and delay messages as often as the file says; late ones come out of their order."""
    file, chance = folder() / "post", random.Random(f"{os.environ.get('CHAOS_SEED')} {sys.argv[1:]}")

    def spoilt(original: Callable[..., Any]) -> Callable[..., Any]:
        def send(*args: Any, **kwargs: Any) -> Any:
            share = float(file.read_text()) if file.exists() else 0.0
            fate, seconds = chance.random(), chance.uniform(0.1, LATEST)
            if fate < share / 3:
                return None
            if fate < share * 2 / 3:
                original(*args, **kwargs)
            elif fate < share:
                threading.Timer(seconds, original, args, kwargs).start()
                return None
            return original(*args, **kwargs)

        return send

    enqueue = import_module("agents_runtime.enqueue")
    enqueue.publish = spoilt(enqueue.publish)  # type: ignore[attr-defined]
    Celery.send_task = spoilt(Celery.send_task)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    mode, *rest = sys.argv[1:]
    if mode == "worker":  # Celery reads its arguments from the command line
        sys.argv = ["celery", "-A", "reviewer.config.celery", "worker", *rest]
    main(mode, *rest)
