"""Which pages may open a socket: our own, port included, and the origins that the deployment trusts.

Cookies know no ports and browsers let any page open a socket anywhere, so a page that another program serves
on this host would otherwise listen with the person's session.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings


class OwnOriginOnly:
    """Wrap an ASGI application of sockets; a missing or foreign Origin is refused before anything is read."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        """Pass the connection on, or refuse it (the browser sees 403)."""
        if is_own(dict(scope["headers"])):
            return await self.application(scope, receive, send)
        return await _Refusal()(scope, receive, send)


class _Refusal(AsyncWebsocketConsumer):
    """Closes before accepting."""

    async def connect(self) -> None:
        await self.close()


def is_own(headers: dict[bytes, bytes]) -> bool:
    """Say whether the Origin is that of the page that this server serves under the asked Host."""
    origin = headers.get(b"origin", b"").decode("latin-1")
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    parts = urlsplit(origin)
    host = headers.get(b"host", b"").decode("latin-1")
    return parts.scheme in {"http", "https"} and bool(host) and parts.netloc.lower() == host.lower()
