"""Reading the environment: every variable that the product knows, with its default and its check.

The README's table of variables is made from what is read here.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environs import Env
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

PROJECT = Path(__file__).resolve().parents[2]
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})


@dataclass(frozen=True)
class Environment:
    """The settings that a deployment chooses."""

    debug: bool
    demo: bool
    demo_password: str
    secret_key: str
    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    trusted_origins: tuple[str, ...]
    secure_cookies: bool
    database_url: str
    prepare: bool
    redis_url: str
    home: Path
    agents: tuple[str, ...]
    cards: tuple[str, ...]
    model: str
    script_delay_ms: int
    time_zone: str
    log_level: str
    worker_concurrency: int
    step_deadline: int
    checkpoint_days: int | None


def read_environment() -> Environment:
    """Read and check the environment; raise ``ImproperlyConfigured`` with one clear line."""
    env = Env()
    host = env.str("HOST", "127.0.0.1")
    demo = env.bool("COUNTERSIGN_DEMO", False)
    debug = env.bool("COUNTERSIGN_DEBUG", False)
    _refuse_open_doors(host=host, demo=demo, debug=debug)
    database_url = _required(env, "DATABASE_URL")
    secret_key = env.str("COUNTERSIGN_SECRET_KEY", "")
    if not secret_key:
        raise ImproperlyConfigured(
            "COUNTERSIGN_SECRET_KEY is not set. Set it to at least 50 random characters."
        )
    agents = env.str("COUNTERSIGN_AGENTS", "")
    return Environment(
        debug=debug,
        demo=demo,
        demo_password=env.str("COUNTERSIGN_DEMO_PASSWORD", "countersign"),
        secret_key=secret_key,
        host=host,
        port=env.int("PORT", 8000),
        allowed_hosts=tuple(env.list("COUNTERSIGN_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])),
        trusted_origins=tuple(env.list("COUNTERSIGN_TRUSTED_ORIGINS", [])),
        secure_cookies=env.bool("COUNTERSIGN_SECURE_COOKIES", not _is_loopback(host)),
        database_url=database_url,
        prepare=env.bool("COUNTERSIGN_PREPARE", True),
        redis_url=_required(env, "REDIS_URL"),
        home=Path(env.str("COUNTERSIGN_HOME", str(PROJECT / ".countersign"))),
        agents=tuple(path for path in agents.split(os.pathsep) if path),
        cards=tuple(path for path in env.str("COUNTERSIGN_CARDS", "").split(os.pathsep) if path),
        model=env.str("COUNTERSIGN_MODEL", ""),
        script_delay_ms=env.int("COUNTERSIGN_SCRIPT_DELAY_MS", 25),
        time_zone=env.str("COUNTERSIGN_TIME_ZONE", "UTC"),
        log_level=env.str("COUNTERSIGN_LOG_LEVEL", "INFO"),
        worker_concurrency=env.int("COUNTERSIGN_WORKERS", 4),
        step_deadline=env.int("COUNTERSIGN_STEP_DEADLINE", 900),
        checkpoint_days=_days(env, "COUNTERSIGN_CHECKPOINT_DAYS"),
    )


def database(url: str, *, pool: dict[str, int] | bool, prepare: bool = True) -> dict[str, object]:
    """Return Django's description of the PostgreSQL database at ``url``; socket folders go in ``?host=``."""
    if urlsplit(url).scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(
            "DATABASE_URL must start with postgresql://; no other database is supported."
        )
    try:
        options: dict[str, object] = dict(conninfo_to_dict(url))
    except ProgrammingError as problem:
        raise ImproperlyConfigured(f"DATABASE_URL cannot be read: {problem}") from problem
    named = {key: str(options.pop(key, "")) for key in ("dbname", "user", "password", "host", "port")}
    # Only cursors that ask for it prepare anything; without this number none may.
    options["prepare_threshold"] = 0 if prepare else None
    if pool:
        options["pool"] = pool
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": named["dbname"],
        "USER": named["user"],
        "PASSWORD": named["password"],
        "HOST": named["host"],
        "PORT": named["port"],
        "OPTIONS": options,
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": False,
    }


def broker_url(redis_url: str) -> str:
    """Return the broker's form of a Redis address: kombu names a socket and its database differently."""
    if not redis_url.startswith("unix://"):
        return redis_url
    return redis_url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=")


def _required(env: Env, name: str) -> str:
    value = env.str(name, "")
    if not value:
        raise ImproperlyConfigured(f"{name} is not set. Start `make run`, or name your own.")
    return value


def _days(env: Env, name: str) -> int | None:
    """Return a number of days, or None for ever."""
    if not env.str(name, ""):
        return None
    days = int(env.int(name))
    if days < 1:
        raise ImproperlyConfigured(f"{name} is a whole number of days, at least 1, or empty for ever.")
    return days


def _refuse_open_doors(*, host: str, demo: bool, debug: bool) -> None:
    if _is_loopback(host):
        return
    if demo:
        raise ImproperlyConfigured(
            f"Demo mode has known passwords, so it only runs on a loopback HOST, not {host}."
        )
    if debug:
        raise ImproperlyConfigured(
            f"Debug mode shows internals, so it only runs on a loopback HOST, not {host}."
        )


def _is_loopback(host: str) -> bool:
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
