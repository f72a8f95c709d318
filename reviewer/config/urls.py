"""All doors: the machine's under ``/api/v1/``, health, and the pages."""

from __future__ import annotations

from django.urls import include, path

from reviewer.api.doors import api
from reviewer.config import health

urlpatterns = [
    path("healthz", health.live, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("api/v1/", api.urls),
    path("", include("reviewer.web.urls")),
]

handler403 = "reviewer.web.errors.forbidden"
handler404 = "reviewer.web.errors.not_found"
handler500 = "reviewer.web.errors.broken"
