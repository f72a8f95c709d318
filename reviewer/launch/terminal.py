"""What the person at the terminal reads. Everything else is in the logs."""

import contextlib
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlunsplit

from reviewer.launch.options import Options
from reviewer.launch.stopping import StopRequested

LABEL_WIDTH = 44
CAST = (
    ("reviewer, reviewer2", "decide what agents ask"),
    ("developer", "starts runs"),
    ("lead", "assigns and moves tasks"),
    ("admin", "sees everything, manages queues"),
    ("auditor", "reads the trail, changes nothing"),
)


def say(text: str) -> None:
    print(text, flush=True)


def warn(text: str) -> None:
    print(f"countersign: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(label: str) -> Iterator[None]:
    """Print what is being done, and how long it took; the line stays open meanwhile."""
    began = time.monotonic()
    print(f"  {label} ".ljust(LABEL_WIDTH, "."), end=" ", flush=True)
    try:
        yield
    except BaseException as error:
        say("stopped" if isinstance(error, StopRequested) else "failed")
        raise
    say(f"{time.monotonic() - began:.1f} s")


def reachable_host(options: Options) -> str:
    """The host as this machine reaches it: the addresses that mean "all" are for listening only."""
    host = options.host.strip("[]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - nothing is bound here


def address(options: Options, port: int) -> str:
    """Where a browser on this machine finds the product."""
    host = reachable_host(options)
    if ":" in host:
        host = f"[{host}]"
    return urlunsplit(("http", f"{host}:{port}", "/", "", ""))


def welcome(options: Options, port: int) -> None:
    say(f"\nCountersign is ready: {address(options, port)}")
    if options.demo:
        say(f"\n  Log in as (password: {options.demo_password})")
        for names, what in CAST:
            say(f"    {names.ljust(20)} {what}")
    say("\nCtrl-C stops everything.")
