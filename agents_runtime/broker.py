"""The way to the broker: kombu's for Redis, with a client that is kept.

kombu makes a new client for every message that is put into a queue, and for every one that is taken out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from kombu.transport import redis


class Channel(redis.Channel):
    """Keeps its client of Redis, and that its connections."""

    @contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        """Lend a client that may be used at once."""
        yield client or self._kept_client

    @cached_property
    def _kept_client(self) -> Any:
        return self._create_client()  # type: ignore[no-untyped-call]


class Transport(redis.Transport):
    """kombu's transport over such channels."""

    Channel = Channel
