"""The machine's door: version 1 of the API."""

from __future__ import annotations

from ninja import NinjaAPI

api = NinjaAPI(title="Countersign", version="1", docs_url=None, urls_namespace="api")
