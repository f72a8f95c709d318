"""The machine's door: version 1 of the API, assembled from its rooms.

Every operation reads through ``reviewer.queries`` and calls one verb; nothing is decided here. Programs
show a bearer token; cookies open nothing, so there is no CSRF to guard against.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI, Router

from reviewer.api import audit, bearer, problems, runs, tasks, waiting
from reviewer.api.bodies import StrictJson
from reviewer.api.docs import ReadablePage
from reviewer.errors import NotFound

View = Callable[..., HttpResponseBase]
DESCRIPTION = """\
Start agents, read what they ask, decide, and read the audit trail.

Send `Authorization: Bearer <token>`; `.venv/bin/python manage.py create_token USER` prints a token once.
A program has the rights of its person: what that person may not see answers 404.

Send an `Idempotency-Key` with any POST that you may have to repeat: for 24 hours the same person, route, key
and body get the first successful answer again (with `Idempotent-Replayed: true`), and another body gets 422.
A request that failed changed nothing, so its key may be used again.

```sh
api=http://127.0.0.1:8000/api/v1
token=$(.venv/bin/python manage.py create_token reviewer)
curl -H "Authorization: Bearer $token" "$api/tasks?status=open"
curl -H "Authorization: Bearer $token" "$api/tasks/$id"
curl -H "Authorization: Bearer $token" -H "Content-Type: application/json" "$api/tasks/$id/decision" \\
     -d '{"answer": {"type": "approve"}, "digest": "..."}'
```

Nobody needs to poll: with `wait=30` in the address, an answer is held back until there is something to say.

- `GET /tasks`: as soon as there is a task that fits.
- `GET /runs/{id}`: as soon as the run is not at work, because it waits for people, is in doubt or has ended.
  So do `POST /runs` and `POST /runs/{id}/input`, which set it to work at once and answer then.
- `GET /tasks/{id}/decision`: as soon as the decision took effect, or could not; so does `POST`, which records
  it at once and answers then.

After so many seconds (at most 30) they answer with what is there; then ask again by `GET`. A client that
leaves loses nothing, and takes nothing back: what a `POST` does is done before it waits. With an
`Idempotency-Key`, the same `POST` may be sent again: it waits again and does nothing twice.

```sh
starter=$(.venv/bin/python manage.py create_token developer)
run=$(curl -H "Authorization: Bearer $starter" -H "Content-Type: application/json" "$api/runs?wait=30" \\
     -d '{"agent": "invoices", "input": {"messages": [{"role": "user", "content": "Pay 120 to Acme."}]}}')
```

Every error has the shape of `Problem`. Numbers in answers and inputs are kept exactly as JSON has them:
integers of any size, floats as 64-bit, and `1` is not `1.0`.
"""


class Doors(NinjaAPI):
    """An API whose views the pages' sign-in does not stand before: the token does."""

    @property
    def urls(self) -> tuple[list[Any], str, str]:
        """Return the URL patterns for Django."""
        patterns, app, namespace = super().urls
        for pattern in patterns:
            pattern.callback = _outside(cast(View, pattern.callback))
        return patterns, app, namespace


def _outside(view: View) -> View:
    """Return the view without the pages' sign-in, and with its refusal of a method in JSON."""

    @csrf_exempt
    @login_not_required
    def outside(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if isinstance(response, HttpResponseNotAllowed):
            return problems.refuse_method(response)
        return response

    return outside


api = Doors(
    title="Countersign",
    version="1",
    description=DESCRIPTION,
    docs=ReadablePage(),
    urls_namespace="api",
    auth=bearer.Bearer(),
    parser=StrictJson(),
)
api.add_router("", runs.router, tags=["Runs"])
api.add_router("", tasks.router, tags=["Tasks"])
api.add_router("", audit.router, tags=["Audit trail"])
problems.install(api)
waiting.install(api)


nowhere_router = Router()


@nowhere_router.api_operation(
    ["GET", "POST", "PUT", "PATCH", "DELETE"], "/{path:rest}", auth=None, include_in_schema=False
)
def nowhere(request: HttpRequest, rest: str) -> None:  # noqa: ARG001
    """Answer in JSON for an address that is none."""
    raise NotFound(f"There is nothing at {request.path}. See /api/v1/docs.")


# It matches everything, so it comes last.
api.add_router("", nowhere_router)
