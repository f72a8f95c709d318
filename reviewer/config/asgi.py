"""The ASGI application: HTTP to Django; websockets only from our own origin and only for signed-in people."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewer.config.settings")
http_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402  (Django must be set up before these import models)
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from reviewer.web.origins import OwnOriginOnly  # noqa: E402
from reviewer.web.sockets import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": http_application,
        "websocket": AllowedHostsOriginValidator(
            OwnOriginOnly(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
        ),
    }
)
