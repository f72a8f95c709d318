"""How the product is put together: settings, URLs, ASGI, Celery."""

from reviewer.config.celery import app

__all__ = ["app"]
