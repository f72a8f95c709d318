"""Commands beside a running `make run`: they take the addresses and secrets that it notes in its home.

So `python manage.py create_token USER` works in a second terminal without a word about databases. Whoever
names their own DATABASE_URL is left alone.
"""

import json
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from reviewer.launch.home import Home
from reviewer.launch.options import PROJECT

RECORD = "environment.json"
NOTED = (
    "COUNTERSIGN_AGENTS",
    "COUNTERSIGN_DEMO",
    "COUNTERSIGN_DEMO_PASSWORD",
    "COUNTERSIGN_HOME",
    "COUNTERSIGN_MODEL",
    "COUNTERSIGN_SECRET_KEY",
    "DATABASE_URL",
    "HOST",
    "LANGGRAPH_STRICT_MSGPACK",
    "PORT",
    "REDIS_URL",
)


def note(home: Home, environment: Mapping[str, str]) -> None:
    """Note what a command needs; only the account that runs the product can read it."""
    home.write_record(RECORD, {name: environment[name] for name in NOTED if name in environment})


def forget(home: Home) -> None:
    """Take the note away: nothing runs there any more."""
    (home.path / RECORD).unlink(missing_ok=True)


def adopt(environment: MutableMapping[str, str]) -> None:
    """Fill in what the product running in this home noted, where the environment says nothing itself."""
    if environment.get("DATABASE_URL"):
        return
    home = Path(environment.get("COUNTERSIGN_HOME") or PROJECT / ".countersign").expanduser()
    try:
        noted = json.loads((home / RECORD).read_text())
    except (OSError, ValueError):
        return
    for name in NOTED:
        if name in noted:
            environment.setdefault(name, str(noted[name]))
