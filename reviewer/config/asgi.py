"""The ASGI application: HTTP to Django; websockets only from our own origin and only for signed-in people."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewer.config.settings")
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack  # noqa: E402  (Django must be set up before these import models)
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from reviewer.api.waiting import Waits  # noqa: E402
from reviewer.config import urls  # noqa: E402, F401  (every view, before the first request)
from reviewer.config.memory import keep_what_is_loaded  # noqa: E402
from reviewer.web.handler import OneHopHandler  # noqa: E402
from reviewer.web.origins import OwnOriginOnly  # noqa: E402
from reviewer.web.sockets import websocket_urlpatterns  # noqa: E402

http_application = OneHopHandler(keeps_connections=True)
application = ProtocolTypeRouter(
    {
        "http": Waits(http_application, in_thread=http_application.in_thread),
        "websocket": AllowedHostsOriginValidator(
            OwnOriginOnly(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
        ),
    }
)

keep_what_is_loaded()
