"""The pages for what went wrong: 403, 404, 409, 422 and 500, each with one way on."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _

from agents_runtime import errors as runtime
from reviewer import errors as review
from reviewer.web.requests import wants_fragment


class ProblemMiddleware(MiddlewareMixin):
    """Turns the errors that verbs and queries raise on purpose into pages: 404, 403, 409, 422."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """Answer addresses with NUL: none of ours holds it, and no database takes it. Programs get JSON."""
        if request.path.startswith("/api/") or not _holds_nul(request):
            return None
        return not_found(request)

    def process_exception(self, request: HttpRequest, problem: Exception) -> HttpResponse | None:
        """Answer a known problem; anything else stays an error of ours."""
        match problem:
            case review.NotFound() | runtime.NotFound():
                return not_found(request, problem)
            case review.NotAllowed():
                return forbidden(request, problem)
            case review.Conflict() | runtime.WrongState():
                return conflict(request, str(problem))
            case review.Invalid() | runtime.InvalidInput():
                return invalid(request, problem)
        return None


def _holds_nul(request: HttpRequest) -> bool:
    texts = [request.path, *(text for name, values in request.GET.lists() for text in (name, *values))]
    return any("\x00" in text for text in texts)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Say that this person may not do that."""
    return _page(
        request,
        403,
        "lock",
        _("You may not do this"),
        str(exception) or _("Your account may see this page, but not do what you asked."),
    )


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001
    """Say that there is nothing here for this person; what they may not see looks the same."""
    return _page(
        request,
        404,
        "search",
        _("Nothing here for you"),
        _("There is no such page, or it belongs to a queue that you are not in."),
    )


def conflict(request: HttpRequest, text: str) -> HttpResponse:
    """Say that things moved on since the page was drawn."""
    return _page(request, 409, "git-branch", _("This has moved on"), text)


def invalid(request: HttpRequest, problem: review.Invalid | runtime.InvalidInput) -> HttpResponse:
    """Say what does not fit, where no form could say it beside its field."""
    lines = [f"{item.pointer}: {item.message}" if item.pointer else item.message for item in problem.problems]
    return _page(request, 422, "octagon-alert", _("This does not fit"), " ".join(lines))


def broken(request: HttpRequest) -> HttpResponse:
    """Say that the fault is ours, and that nothing was saved: a change commits whole or not at all."""
    return _page(
        request,
        500,
        "octagon-alert",
        _("Something broke here"),
        _("Nothing of what you sent was saved. Try once more; if it breaks again, tell your administrator."),
    )


def no_token(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """Say that the form was too old to trust."""
    return _page(
        request,
        403,
        "shield-check",
        _("This form is too old"),
        _("You signed in again since it was drawn, or cookies are off. Go back, reload and send it again."),
    )


def _page(request: HttpRequest, code: int, icon: str, title: str, text: str) -> HttpResponse:
    context = {
        "code": code,
        "icon": icon,
        "title": title,
        "text": text,
        "url": reverse("inbox"),
        "label": _("Go to the inbox"),
    }
    template = "errors/part.html" if wants_fragment(request) else "errors/page.html"
    return render(request, template, context, status=code)
