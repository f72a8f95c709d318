"""What must hold before anything is started: each failure is one clear line, and nothing was touched yet."""

import socket

import psycopg
import redis

from reviewer.launch.errors import LaunchError
from reviewer.launch.options import Options

OLDEST_POSTGRES = 14
CONNECT_SECONDS = 5


def check(options: Options) -> None:
    """Raises LaunchError."""
    check_port(options.host, options.port)
    for name, url in (("DATABASE_URL", options.database_url), ("DATABASE_OWNER_URL", options.owner_url)):
        if url:
            check_database(name, url)
    if options.redis_url:
        check_redis(options.redis_url)


def check_port(host: str, port: int) -> None:
    try:
        bind(host, port).close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LaunchError(f"Cannot serve on {host}:{port}: {reason}. Choose another with PORT=...") from None


def free_port(host: str) -> int:
    with bind(host, 0) as found:
        return int(found.getsockname()[1])


def bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        # A port whose last connections are only just closed is free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1)
    except OSError:
        listener.close()
        raise
    return listener


def check_database(name: str, url: str) -> None:
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            version = connection.info.server_version
    except (psycopg.Error, UnicodeError) as error:
        raise LaunchError(f"The database named by {name} cannot be used: {_one_line(error)}") from None
    if version < OLDEST_POSTGRES * 10_000:
        found = f"{version // 10_000}.{version % 10_000}"
        raise LaunchError(
            f"The database named by {name} is PostgreSQL {found}; {OLDEST_POSTGRES} or newer is needed."
        )


def check_redis(url: str) -> None:
    try:
        with redis.Redis.from_url(
            url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS, retry=None
        ) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        raise LaunchError(f"The Redis named by REDIS_URL cannot be used: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    """Database errors span lines and may repeat; the first line says what is wrong."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".") + "."
