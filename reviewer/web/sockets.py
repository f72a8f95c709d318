"""The sockets' addresses."""

from __future__ import annotations

from django.urls import path

from reviewer.web.consumers import InboxConsumer
from reviewer.web.run_socket import RunConsumer

websocket_urlpatterns = [
    path("ws/inbox/", InboxConsumer.as_asgi()),
    path("ws/runs/<uuid:run_id>/", RunConsumer.as_asgi()),
]
