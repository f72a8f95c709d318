"""Is the product alive, and is it ready for work?"""

from __future__ import annotations

from collections.abc import Callable

import redis
import structlog
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from reviewer.config.celery import app

log = structlog.get_logger(__name__)
WORKER_TIMEOUT_S = 1.0


@login_not_required
def live(_request: HttpRequest) -> HttpResponse:
    """Answer 200 while the web process lives."""
    return HttpResponse("ok\n", content_type="text/plain")


@login_not_required
def ready(_request: HttpRequest) -> JsonResponse:
    """Answer 200 with each part's state when database, Redis and a worker answer, else 503."""
    checks: dict[str, Callable[[], bool]] = {"database": _database, "redis": _redis, "worker": _worker}
    found = {name: _passes(name, check) for name, check in checks.items()}
    everything = all(found.values())
    body = {"ready": everything, **{name: "ok" if ok else "not answering" for name, ok in found.items()}}
    return JsonResponse(body, status=200 if everything else 503)


def _passes(name: str, check: Callable[[], bool]) -> bool:
    try:
        return check()
    except (DatabaseError, redis.RedisError, OSError) as problem:
        log.warning("not_ready", part=name, problem=str(problem))
        return False


def _database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return bool(cursor.fetchone())


def _redis() -> bool:
    with redis.Redis.from_url(settings.CACHES["default"]["LOCATION"], socket_timeout=1) as client:
        return bool(client.ping())


def _worker() -> bool:
    return bool(app.control.ping(timeout=WORKER_TIMEOUT_S, limit=1))
