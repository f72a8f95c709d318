"""Asking twice with one key does once: the first successful answer is kept with the change itself.

The key's lock, the change and the kept answer share one transaction, so of two requests at once one works and
the other waits, then gets the same answer. A failed request changed nothing and keeps nothing.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import inspect
import json
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec

from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from django.http import HttpResponse
from django.utils.translation import gettext as _
from ninja.responses import Status

from agents_runtime.canonical import digest
from agents_runtime.errors import Problem, RuntimeProblem
from reviewer.api.bearer import ApiRequest
from reviewer.api.bodies import parse
from reviewer.api.problems import KeyReused
from reviewer.api.shapes import as_json
from reviewer.errors import Conflict, Invalid, ReviewProblem
from reviewer.models import IdempotentReply

KEPT_FOR = dt.timedelta(hours=24)
MAX_KEY = 200
REPLAYED = "Idempotent-Replayed"
PATIENCE = "10s"
P = ParamSpec("P")
Operation = Callable[Concatenate[ApiRequest, P], Any]


def idempotent(operation: Operation[P]) -> Operation[P]:
    """Let ``operation`` honour the header ``Idempotency-Key``."""

    @wraps(operation)
    def keyed(request: ApiRequest, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        key = request.META.get("HTTP_IDEMPOTENCY_KEY", "")
        if not key:
            return operation(request, *args, **kwargs)
        _check(key)
        return _once(request, key, lambda: operation(request, *args, **kwargs))

    # Ninja would look up the names in the annotations in this module, not in the operation's.
    keyed.__signature__ = inspect.signature(operation, eval_str=True)  # type: ignore[attr-defined]
    return keyed


def told(reply: Any, name: str) -> str:
    """Return a text or an id that a reply tells; "" where one that an earlier build kept tells none."""
    if isinstance(reply, HttpResponse):
        return str(json.loads(reply.content).get(name, ""))
    shape = reply.value if isinstance(reply, Status) else reply
    return str(getattr(shape, name))


def status_of(reply: Any) -> int:
    """Return the status that a reply is sent with."""
    return reply.status_code if isinstance(reply, (HttpResponse, Status)) else HTTPStatus.OK


def is_replayed(reply: Any) -> bool:
    """Say whether it is a kept reply: it may be of long ago."""
    return isinstance(reply, HttpResponse) and REPLAYED in reply


def _check(key: str) -> None:
    if len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        message = f"An Idempotency-Key has at most {MAX_KEY} printable ASCII characters."
        raise Invalid(message, (Problem("", message),))


def _once(request: ApiRequest, key: str, work: Callable[[], Any]) -> HttpResponse:
    problem: ReviewProblem | RuntimeProblem | None = None
    with transaction.atomic():
        _lock(request, key)
        kept = _kept(request, key)
        if kept is not None:
            return _replay(kept, request)
        try:
            reply = _keep(request, key, work())
        except (ReviewProblem, RuntimeProblem) as raised:
            # Raised again outside: what the verb recorded about its refusal must be committed.
            problem = raised
    if problem is not None:
        raise problem
    return _response(reply)


def _lock(request: ApiRequest, key: str) -> None:
    name = f"{request.auth.pk} {request.path} {key}"
    number = int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:8], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [PATIENCE])
        try:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])
        except OperationalError as problem:
            raise Conflict(
                _("The first request with this key is still at work."), code="in_progress"
            ) from problem
        cursor.execute("SET LOCAL lock_timeout TO DEFAULT")


def _kept(request: ApiRequest, key: str) -> IdempotentReply | None:
    IdempotentReply.objects.filter(created_at__lt=Now() - KEPT_FOR).delete()
    return IdempotentReply.objects.filter(user=request.auth, route=request.path, key=key).first()


def _replay(kept: IdempotentReply, request: ApiRequest) -> HttpResponse:
    if kept.body_hash != _body_hash(request):
        message = "This Idempotency-Key was used with another body."
        raise KeyReused(message, (Problem("", message),))
    response = _response(kept)
    response[REPLAYED] = "true"
    return response


def _keep(request: ApiRequest, key: str, result: Any) -> IdempotentReply:
    reply = result if isinstance(result, Status) else Status(HTTPStatus.OK, result)
    return IdempotentReply.objects.create(
        user=request.auth,
        route=request.path,
        key=key,
        body_hash=_body_hash(request),
        status=reply.status_code,
        body="" if reply.value is None else as_json(reply.value),
    )


def _response(reply: IdempotentReply) -> HttpResponse:
    return HttpResponse(reply.body, status=reply.status, content_type="application/json; charset=utf-8")


def _body_hash(request: ApiRequest) -> str:
    return digest(parse(request.body) if request.body else None)
