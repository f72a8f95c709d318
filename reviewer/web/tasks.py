"""One task: its card on a page of its own or in the inbox's pane, and what a reviewer does with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from reviewer import cards, claims, decisions, openings, queries
from reviewer.accounts.models import User
from reviewer.cards.names import OPERATION
from reviewer.errors import Conflict, Invalid, Unread
from reviewer.models import Decision, ReviewTask
from reviewer.models.queues import Risk
from reviewer.shown import card_of
from reviewer.web import notices
from reviewer.web.cardpage import CardPage, Notice, Typed, build_page
from reviewer.web.fragments import row_fragment
from reviewer.web.hidden_parts import SHOW, SHOW_PARTS, open_asked, parts_named
from reviewer.web.inbox import next_task, open_page
from reviewer.web.reasons import reason_error
from reviewer.web.requests import is_fetched_ahead, person, wants_fragment, whole_number
from reviewer.web.stages import stage_of

# What is done with a claim, by the name of the operation: at an address of its own, or by a button of a form.
HOLDS: Final[Mapping[str, Callable[..., ReviewTask]]] = {"claim": claims.claim, "release": claims.release}


@require_GET
@never_cache
def task(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Draw a task's own page: open, or decided with what was submitted."""
    return render(request, "tasks/task.html", {"page": _opened_page(request, task_id)})


@require_GET
@never_cache
def pane(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Draw the card alone, for the pane that asked."""
    return render(request, "tasks/pane.html", {"page": _opened_page(request, task_id, beside=True)})


@require_POST
def decide(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Read the form, decide, and show what comes next: the same card with its errors, or the next one."""
    found = queries.get_task(person(request), task_id)
    reading = cards.read_decision(card_of(found), request.POST)
    typed = _typed(request, reading)
    try:
        if reading.is_op:
            return _changed(request, found, reading, typed)
        if reading.errors or typed.reason_error:
            _guard_form(found, by=person(request))
            return _form_again(request, found, reading, typed, status=422)
        return _decided(request, _decide(request, found, reading, typed))
    except Conflict as conflict:
        return _moved_on(request, found, reading, typed, conflict)
    except Unread as unread:
        return _not_read(request, found, reading, typed, notices.unread(unread))
    except Invalid as invalid:
        return _form_again(request, found, reading, typed, status=422, notice=notices.invalid(invalid))


@require_POST
def claim(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Take the task, or show who was faster."""
    return _hold(request, task_id, "claim")


@require_POST
def release(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Give the task back."""
    return _hold(request, task_id, "release")


def _hold(request: HttpRequest, task_id: UUID, operation: str) -> HttpResponse:
    try:
        HOLDS[operation](task_id, by=person(request))
    except Conflict as conflict:
        return _card_again(request, task_id, status=409, notice=notices.conflict(conflict))
    return _card_again(request, task_id)


def _opened_page(request: HttpRequest, task_id: UUID, *, beside: bool = False) -> CardPage:
    reader = person(request)
    found = queries.get_task(reader, task_id)
    wanted = request.GET.get("verdict", "")
    landing: Sequence[str] = ()
    if not is_fetched_ahead(request):
        openings.opened(found, by=reader, via="web")
        landing = open_asked(found, reader, verdict=wanted, show=request.GET.get(SHOW, ""))
    origin = _origin(request.GET.get("from", ""))
    beside = beside and bool(origin)
    return build_page(found, reader, wanted=wanted, origin=origin, beside=beside, landing=landing)


def _changed(request: HttpRequest, found: ReviewTask, reading: cards.Reading, typed: Typed) -> HttpResponse:
    """Do what a button inside the form asks for, and draw the form again with all that was typed."""
    _guard_form(found, by=person(request))
    hold = HOLDS.get(request.POST.get(OPERATION, ""))
    if hold is not None:
        hold(found.pk, by=person(request))
        found = queries.get_task(person(request), found.pk)
    landing = _opened_parts(request, found, _wanted_parts(request))
    openings.open_parts(found, _uncovered_parts(request, found), by=person(request), via="web")
    return _form_again(request, found, reading, typed, status=200, landing=landing)


def _guard_form(found: ReviewTask, *, by: User) -> None:
    """Raise ``Conflict`` where the card has no form any more, so that what was typed is kept beside it."""
    claims.guard_open(found)
    claims.guard_not_taken(found, by=by)


def _wanted_parts(request: HttpRequest) -> str:
    """Return which hidden part a button of the form asks for."""
    operation = request.POST.get(OPERATION, "")
    return operation.removeprefix(SHOW_PARTS) if operation.startswith(SHOW_PARTS) else ""


def _uncovered_parts(request: HttpRequest, found: ReviewTask) -> Sequence[str]:
    """Return which masked values of the proposal a button of the form shows: one, or all in a JSON text."""
    name, _colon, path = request.POST.get(OPERATION, "").partition(":")
    if name not in {"uncover", "raw"}:
        return ()
    card = card_of(found)
    choice = card.choice(request.POST.get("verdict", ""))
    if choice is None or not choice.args_pointer or not path.startswith(choice.args_pointer):
        return ()
    pointer = path.removeprefix(choice.args_pointer)
    inside = (one for one in card.concealed if f"{one}/".startswith(f"{pointer}/"))
    return [openings.part_of(one) for one in inside]


def _opened_parts(request: HttpRequest, found: ReviewTask, wanted: str) -> Sequence[str]:
    """Open what a button of the form asked for, and return what is new."""
    if not wanted:
        return ()
    parts = parts_named(wanted, card_of(found))
    return openings.open_parts(found, parts, by=person(request), via="web")


def _origin(asked: str) -> str:
    return "inbox" if asked == "inbox" else ""


def _typed(request: HttpRequest, reading: cards.Reading) -> Typed:
    code = request.POST.get("reason_code", "")
    error = "" if reading.is_op or reading.verdict != "reject" else reason_error(code)
    return Typed(reason_code=code, reason_error=error, comment=request.POST.get("comment", ""))


def _decide(request: HttpRequest, found: ReviewTask, reading: cards.Reading, typed: Typed) -> Decision:
    return decisions.decide(
        found.pk,
        by=person(request),
        answer=reading.answer,
        digest=request.POST.get("digest", ""),
        claim_version=whole_number(request.POST.get("claim_version", "")),
        reason_code=typed.reason_code,
        comment=typed.comment,
        via="web",
    )


def _form_again(
    request: HttpRequest,
    found: ReviewTask,
    reading: cards.Reading,
    typed: Typed,
    *,
    status: int,
    notice: Notice | None = None,
    landing: Sequence[str] = (),
) -> HttpResponse:
    page = build_page(
        found,
        person(request),
        reading=reading,
        typed=typed,
        notice=notice,
        landing=landing,
        origin=_origin(request.POST.get("from", "")),
        beside=_stands_in_inbox(request),
    )
    return _draw(request, page, status=status)


def _moved_on(
    request: HttpRequest, found: ReviewTask, reading: cards.Reading, typed: Typed, conflict: Conflict
) -> HttpResponse:
    """Show the card as it is now, with who moved it and when; what the reviewer wrote is kept."""
    now = queries.get_task(person(request), found.pk)
    takes_it = stage_of(now, person(request)).key == "open" and not _is_direct(now, reading.verdict)
    if takes_it:
        return _form_again(request, now, reading, typed, status=409, notice=notices.conflict(conflict))
    kept = notices.kept_text(card_of(now), reading, typed.comment)
    return _card_again(request, found.pk, status=409, notice=notices.conflict(conflict, kept=kept))


def _not_read(
    request: HttpRequest, found: ReviewTask, reading: cards.Reading, typed: Typed, notice: Notice
) -> HttpResponse:
    """Show the card again with what is still hidden on it, and with all that was typed."""
    if _is_direct(found, reading.verdict) and found.risk != Risk.CRITICAL:
        return _card_again(request, found.pk, status=422, notice=notice)
    return _form_again(request, found, reading, typed, status=422, notice=notice)


def _is_direct(found: ReviewTask, verdict: str) -> bool:
    choice = card_of(found).choice(verdict)
    return choice is not None and choice.direct


def _card_again(
    request: HttpRequest, task_id: UUID, *, status: int = 200, notice: Notice | None = None
) -> HttpResponse:
    reader = person(request)
    origin = _origin(request.POST.get("from", ""))
    if status == 200 and not wants_fragment(request):
        return redirect(_inbox_url(task_id) if origin else reverse("task", args=[task_id]))
    found = queries.get_task(reader, task_id)
    page = build_page(found, reader, notice=notice, origin=origin, beside=_stands_in_inbox(request))
    return _draw(request, page, status=status)


def _decided(request: HttpRequest, decision: Decision) -> HttpResponse:
    """Go on: in the inbox to the next card, elsewhere to what came of this one."""
    reader = person(request)
    if not _origin(request.POST.get("from", "")):
        return _card_again(request, decision.task_id)
    following = next_task(reader, decision.task)
    url = _inbox_url(following.pk if following else None, after=decision)
    if not wants_fragment(request):
        return redirect(url)
    if not _stands_in_inbox(request):
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    if following is not None:
        openings.opened(following, by=reader, via="web")
    page = open_page(reader, following, after=decision)
    response = _draw(request, page, status=200)
    response.write(row_fragment(queries.get_task(reader, decision.task_id), reader, arrives=False))
    response["HX-Replace-Url"] = _inbox_url(following.pk if following else None)
    return response


def _stands_in_inbox(request: HttpRequest) -> bool:
    try:
        address = urlsplit(request.headers.get("HX-Current-URL", ""))
    except ValueError:  # such as half an IPv6 address
        return False
    return address.path == reverse("inbox")


def _inbox_url(task_id: UUID | None, *, after: Decision | None = None) -> str:
    parts = [f"task={task_id}"] if task_id else []
    if after is not None:
        parts.append(f"after={after.pk}")
    return f"{reverse('inbox')}?{'&'.join(parts)}" if parts else reverse("inbox")


def _draw(request: HttpRequest, page: CardPage, *, status: int) -> HttpResponse:
    if not wants_fragment(request):
        return render(request, "tasks/task.html", {"page": page}, status=status)
    template = "tasks/pane.html" if page.task else "inbox/zero.html"
    return HttpResponse(render_to_string(template, {"page": page}, request), status=status)
