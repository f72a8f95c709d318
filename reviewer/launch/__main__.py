"""Start Countersign (`run`), only servers (`services`), or a command on throw-away servers (`scratch`)."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from reviewer.launch import terminal
from reviewer.launch.errors import LaunchError
from reviewer.launch.run import run
from reviewer.launch.services import embedded_services


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m reviewer.launch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start everything, as the environment says, and watch over it")
    services = commands.add_parser("services", help="start PostgreSQL and Valkey, print where, wait")
    services.add_argument("--home", type=Path, required=True, help="the folder that keeps the data")
    scratch = commands.add_parser(
        "scratch", help="run a command on empty servers that are thrown away after it"
    )
    scratch.add_argument("words", nargs="+", metavar="COMMAND")
    options = parser.parse_args(arguments)
    try:
        if options.command == "scratch":
            return run_on_scratch_servers(options.words)
        if options.command == "services":
            serve(options.home)
        else:
            run(os.environ)
    except LaunchError as error:
        terminal.warn(str(error))
        return 1
    return 0


def run_on_scratch_servers(command: Sequence[str]) -> int:
    """Give the command the servers' addresses in its environment; return its exit code."""
    with (
        tempfile.TemporaryDirectory(prefix="countersign-scratch-") as folder,
        embedded_services(Path(folder) / "home", durable=False, keep=False) as env,
    ):
        return subprocess.run(command, env=os.environ | env, check=False).returncode


def serve(home: Path) -> None:
    """Print one NAME=value line for each variable, then stay until SIGTERM or Ctrl-C."""
    asked_to_stop = threading.Event()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_stop.set())
    with embedded_services(home) as env:
        for name, value in env.items():
            print(f"{name}={value}", flush=True)
        asked_to_stop.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
