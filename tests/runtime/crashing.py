"""Workers of their own that bring a run forward and may be killed at a named point.

A point is a method of the product, a word and a side; when that method is called with something that holds
the word, the process kills itself before or after the call. A point may also be a number of seconds. Nothing
of the product knows of these points.
One process with everything imported forks a child for each, which is as good as a fresh worker and quick.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agents_runtime import thread_lock
from agents_runtime.models import Run
from tests.agents import effects
from tests.servers import PROJECT, servers

KILLED = -signal.SIGKILL
PROGRAM = """
import importlib, json, os, signal, sys, threading, traceback
import django
django.setup()
from uuid import UUID
from agents_runtime import steps
import tests.agents.assistants, tests.agents.graphs

def die_at(place, word, side):
    module, owner, name = place.split(":")
    holder = getattr(importlib.import_module(module), owner)
    original = getattr(holder, name)
    def dying(*args, **kwargs):
        hit = word in repr((args, kwargs))
        if hit and side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if hit:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(holder, name, dying)

def work(run, point):
    try:
        if len(point) == 1:
            killer = threading.Timer(float(point[0]), lambda: os.kill(os.getpid(), signal.SIGKILL))
            killer.daemon = True
            killer.start()
        elif point:
            die_at(*point)
        steps.advance(UUID(run))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)

for line in sys.stdin:
    run, point = json.loads(line)
    child = os.fork()
    if child == 0:
        work(run, point)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

_nurseries: list[subprocess.Popen[str]] = []


@contextmanager
def nursery() -> Iterator[None]:
    """Keep the process that forks the workers."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=PROJECT,
        env=servers().child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        _nurseries.append(process)
        yield
        _nurseries.remove(process)
        assert process.stdin is not None
        process.stdin.close()


def advance_in_child(run: Run, *point: str) -> int:
    """Bring a run forward in another process; return its exit code once the server knows that it ended."""
    process = _nurseries[-1]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([str(run.pk), point]) + "\n")
    process.stdin.flush()
    code = int(process.stdout.readline())
    assert code in {0, KILLED}
    wait_until(lambda: thread_lock.lock_key(run.pk) not in thread_lock.held_keys())
    return code


def wait_for(name: str) -> None:
    """Wait until a test agent's tool leaves a trace of this name."""
    wait_until(lambda: effects.count(name) > 0)


def wait_until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
