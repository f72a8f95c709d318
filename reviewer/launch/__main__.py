"""The command line: `python -m reviewer.launch services --home DIR`."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from reviewer.launch.errors import LaunchError
from reviewer.launch.services import embedded_services


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m reviewer.launch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    services = commands.add_parser("services", help="start PostgreSQL and Valkey, print where, wait")
    services.add_argument("--home", type=Path, required=True, help="the folder that keeps the data")
    options = parser.parse_args(arguments)
    try:
        return serve(options.home)
    except LaunchError as error:
        print(f"countersign: {error}", file=sys.stderr)
        return 1


def serve(home: Path) -> int:
    """Print one NAME=value line for each variable, then stay until SIGTERM or Ctrl-C."""
    asked_to_stop = threading.Event()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_stop.set())
    with embedded_services(home) as env:
        for name, value in env.items():
            print(f"{name}={value}", flush=True)
        asked_to_stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
