"""What a start is asked for, from the environment. The settings of the product itself: `reviewer.config`."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reviewer.launch.errors import LaunchError

PROJECT = Path(__file__).resolve().parents[2]
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = "8000"
DEFAULT_DEMO_PASSWORD = "countersign"  # noqa: S105 - published in the README, and only accepted on loopback
YES = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True)
class Options:
    """`port` 0 asks for any free one. A None is a server or secret that the start has to make."""

    host: str
    port: int
    home: Path
    demo: bool
    demo_password: str
    secret_key: str | None
    database_url: str | None
    owner_url: str | None
    redis_url: str | None
    allowed_host: str | None

    @property
    def is_loopback(self) -> bool:
        """Only this machine can reach it."""
        return is_loopback(self.host)


def read_options(environment: Mapping[str, str]) -> Options:
    """Raises LaunchError for values that cannot be meant."""
    database_url = environment.get("DATABASE_URL") or None
    options = Options(
        host=environment.get("HOST") or DEFAULT_HOST,
        port=_port(environment.get("PORT") or DEFAULT_PORT),
        home=Path(environment.get("COUNTERSIGN_HOME") or PROJECT / ".countersign"),
        demo=environment.get("COUNTERSIGN_DEMO", "1").lower() in YES,
        demo_password=environment.get("COUNTERSIGN_DEMO_PASSWORD") or DEFAULT_DEMO_PASSWORD,
        secret_key=environment.get("COUNTERSIGN_SECRET_KEY") or None,
        database_url=database_url,
        owner_url=environment.get("DATABASE_OWNER_URL") or database_url,
        redis_url=environment.get("REDIS_URL") or None,
        allowed_host=_first(environment.get("COUNTERSIGN_ALLOWED_HOSTS", "")),
    )
    _refuse_contradictions(options)
    return options


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _first(names: str) -> str | None:
    """The first host name that can be asked for; a leading dot means any name below it."""
    return names.partition(",")[0].strip().lstrip(".").replace("*", "") or None


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise LaunchError(f"PORT must be a number from 0 to 65535, not {text!r}.")
    return int(text)


def _refuse_contradictions(options: Options) -> None:
    if options.demo and not options.is_loopback:
        raise LaunchError(
            f"Demo mode has known passwords and stays on this machine; HOST is {options.host}. "
            "Set COUNTERSIGN_DEMO=0 to serve others."
        )
    if not options.demo and not options.secret_key:
        raise LaunchError("COUNTERSIGN_SECRET_KEY is not set; only demo mode makes one by itself.")
    if not options.database_url and options.owner_url:
        raise LaunchError("DATABASE_OWNER_URL is set without DATABASE_URL.")
