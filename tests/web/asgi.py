"""One HTTP request to an ASGI application in this process, as a server would make it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Application = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass
class Asked:
    """A request, and what has been sent of its answer."""

    sent: bytes = b""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    _is_read: bool = False

    @property
    def json(self) -> Any:
        """The answer's exact JSON."""
        return json.loads(self.body)

    async def receive(self) -> dict[str, Any]:
        """Give the request's body, then nothing until the client is gone."""
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": self.sent, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            assert not self.status, "answered twice"
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            self.body += message.get("body", b"")


def scope_of(path: str, *, token: str = "", method: str = "GET", key: str = "") -> dict[str, Any]:
    """Return the scope of a request for an address with its query."""
    path, _, query = path.partition("?")
    given = {"host": "127.0.0.1", "authorization": token and f"Bearer {token}", "idempotency-key": key}
    headers = [(name.encode(), value.encode()) for name, value in given.items() if value]
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "root_path": "",
        "scheme": "http",
        "query_string": query.encode(),
        "headers": headers,
        "client": ["127.0.0.1", 1],
        "server": ["127.0.0.1", 80],
    }


async def ask(application: Application, path: str, *, token: str = "", method: str = "GET") -> Asked:
    """Return the whole answer."""
    asked = Asked()
    await application(scope_of(path, token=token, method=method), asked.receive, asked.send)
    return asked
