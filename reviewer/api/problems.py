"""How every error leaves the API: one shape, with the status that its kind deserves."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from uuid import UUID

import structlog
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import BaseModel, Field

from agents_runtime import errors as runtime
from agents_runtime.errors import Problem as Detail
from reviewer.api.bodies import Unfit
from reviewer.errors import Conflict, Invalid, NotAllowed, NotFound, Unread

log = structlog.get_logger(__name__)
Translation = Callable[[Any], tuple[int, "Problem"]]


class Pointed(BaseModel):
    """One thing that is wrong: where (a JSON pointer; "" is the whole) and what."""

    pointer: str
    message: str


class Problem(BaseModel):
    """Why a request was not done. ``who`` and ``when`` say by whom it was overtaken."""

    error: str = Field(
        description=(
            "unauthorized, not_found, not_allowed, taken, stale, decided, closed, moved, open_reviews, "
            "wrong_state, agent_unavailable, invalid, unread, malformed, not_a_method, too_large, "
            "in_progress, idempotency_key_reused, broken"
        )
    )
    message: str
    problems: list[Pointed] = []
    who: str | None = None
    when: dt.datetime | None = None
    tasks: list[UUID] = Field(default=[], description="For `open_reviews`: the tasks that are open.")


class KeyReused(Invalid):
    """An Idempotency-Key came again with another body."""


def install(api: NinjaAPI) -> None:
    """Make ``api`` answer every error in this shape."""

    def answer_with(
        translate: Callable[[Any], tuple[int, Problem]],
    ) -> Callable[[HttpRequest, Any], HttpResponse]:
        def handler(request: HttpRequest, problem: Any) -> HttpResponse:
            status, body = translate(problem)
            response = api.create_response(request, body.model_dump(), status=status)
            if status == HTTPStatus.UNAUTHORIZED:
                response["WWW-Authenticate"] = 'Bearer realm="countersign"'
            return response

        return handler

    for kind, translate in TRANSLATIONS.items():
        api.add_exception_handler(kind, answer_with(translate))


def refuse_method(response: HttpResponse) -> HttpResponse:
    """Return Django's answer to a method that an address does not know, in this shape."""
    body = Problem(error="not_a_method", message=f"Use one of: {response['Allow']}.")
    response.content = body.model_dump_json().encode()
    response["Content-Type"] = "application/json; charset=utf-8"
    return response


def _not_found(problem: Exception) -> tuple[int, Problem]:
    return HTTPStatus.NOT_FOUND, Problem(error="not_found", message=str(problem) or "There is no such thing.")


def _not_allowed(problem: NotAllowed) -> tuple[int, Problem]:
    return HTTPStatus.FORBIDDEN, Problem(error="not_allowed", message=str(problem))


def _conflict(problem: Conflict) -> tuple[int, Problem]:
    return HTTPStatus.CONFLICT, Problem(
        error=problem.code,
        message=str(problem),
        who=problem.who or None,
        when=problem.when,
        tasks=[task.pk for task in problem.tasks],
    )


def _wrong_state(problem: runtime.WrongState) -> tuple[int, Problem]:
    code = "agent_unavailable" if isinstance(problem, runtime.AgentUnavailable) else "wrong_state"
    return HTTPStatus.CONFLICT, Problem(error=code, message=str(problem))


def _invalid(problem: Invalid | runtime.InvalidInput) -> tuple[int, Problem]:
    codes: dict[type[Exception], str] = {KeyReused: "idempotency_key_reused", Unread: "unread"}
    code = codes.get(type(problem), "invalid")
    return HTTPStatus.UNPROCESSABLE_ENTITY, Problem(
        error=code, message=str(problem), problems=[_pointed(detail) for detail in problem.problems]
    )


def _pointed(detail: Detail) -> Pointed:
    return Pointed(pointer=detail.pointer, message=detail.message)


def _unfit_fields(problem: ValidationError) -> tuple[int, Problem]:
    found = [Pointed(pointer=_pointer(error["loc"]), message=error["msg"]) for error in problem.errors]
    return HTTPStatus.UNPROCESSABLE_ENTITY, Problem(
        error="invalid", message="The request does not fit this operation.", problems=found
    )


def _pointer(location: tuple[str | int, ...]) -> str:
    """Return the pointer of a place: into the body, or the name of a parameter."""
    steps = location[2:] if location[0] == "body" else location[1:]
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def _http(problem: HttpError) -> tuple[int, Problem]:
    if isinstance(problem, AuthenticationError):
        return HTTPStatus.UNAUTHORIZED, Problem(
            error="unauthorized", message="Send a valid token as `Authorization: Bearer <token>`."
        )
    cause = problem.__cause__
    if isinstance(cause, Unfit):
        return HTTPStatus.UNPROCESSABLE_ENTITY, Problem(
            error="invalid", message=str(cause), problems=[Pointed(pointer="", message=str(cause))]
        )
    return problem.status_code, Problem(error="malformed", message=str(cause or problem))


def _too_large(_problem: RequestDataTooBig) -> tuple[int, Problem]:
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, Problem(error="too_large", message="The body is too large.")


def _broken_off(_problem: UnreadablePostError) -> tuple[int, Problem]:
    return HTTPStatus.BAD_REQUEST, Problem(error="malformed", message="The body broke off.")


def _broken(problem: Exception) -> tuple[int, Problem]:
    log.error("api_broken", exc_info=problem)
    return HTTPStatus.INTERNAL_SERVER_ERROR, Problem(
        error="broken", message="Something went wrong on our side. The log says what."
    )


TRANSLATIONS: dict[type[Exception], Translation] = {
    Exception: _broken,
    Http404: _not_found,
    HttpError: _http,
    ValidationError: _unfit_fields,
    RequestDataTooBig: _too_large,
    UnreadablePostError: _broken_off,
    NotFound: _not_found,
    NotAllowed: _not_allowed,
    Conflict: _conflict,
    Invalid: _invalid,
    runtime.NotFound: _not_found,
    runtime.WrongState: _wrong_state,
    runtime.InvalidInput: _invalid,
}
