"""The websocket as it is served: who may open it, and what it tells to whom."""

from __future__ import annotations

import contextlib
import json

import pytest
from django.conf import settings
from django.test import Client
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from reviewer import organising
from reviewer.accounts.models import User
from tests.deciding.making import open_refund
from tests.processes import Site

SOON = 10.0
QUIET = 0.7


@pytest.fixture
def site(people: dict[str, User], live_server_process: Site) -> Site:
    """The site, with the demo's people."""
    return live_server_process


def opened(
    site: Site, person: User, path: str = "/ws/inbox/", *, origin: str | None = ""
) -> ClientConnection:
    """Open a socket as the person's page would, or from elsewhere."""
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    return connect(
        site.url.replace("http", "ws") + path,
        origin=site.url if origin == "" else origin,  # type: ignore[arg-type]
        additional_headers={"Cookie": f"{site.session_cookie}={session}"},
    )


def greet(socket: ClientConnection) -> None:
    """Say what an empty inbox shows, and take the first push."""
    socket.send(json.dumps({"hello": {}, "known": {}, "card": ""}))
    socket.recv(timeout=SOON)


def pushes(socket: ClientConnection, *, until: str = "", within: float = QUIET) -> list[str]:
    """Return what is pushed until a text comes, or until nothing has come for a while."""
    heard: list[str] = []
    with contextlib.suppress(TimeoutError):
        while not heard or not until or until not in heard[-1]:
            heard.append(str(socket.recv(timeout=within)))
    return heard


def hears(socket: ClientConnection, text: str, *, within: float = SOON) -> bool:
    """Say whether the text is pushed soon."""
    return any(text in push for push in pushes(socket, until=text, within=within))


@pytest.mark.parametrize("origin", [None, "https://evil.example", "null", "http://127.0.0.1:1"])
def test_a_foreign_or_missing_origin_is_refused_before_the_socket_opens(
    site: Site, people: dict[str, User], origin: str | None
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        opened(site, people["reviewer"], origin=origin)
    assert refused.value.response.status_code == 403


def test_members_hear_of_a_task_outsiders_hear_nothing_and_who_leaves_hears_no_more(
    site: Site, people: dict[str, User]
) -> None:
    outsider = User.objects.create(username="outsider", role="reviewer")
    with (
        opened(site, people["reviewer"]) as ines,
        opened(site, people["reviewer2"]) as tom,
        opened(site, outsider) as olu,
    ):
        for socket in (ines, tom, olu):
            greet(socket)
        first = open_refund(by=people["developer"])
        assert hears(ines, f"row-{first.pk}")
        assert hears(tom, f"row-{first.pk}")
        assert not hears(olu, str(first.pk), within=QUIET)

        queue = first.queue.slug
        organising.remove_member(queue, user=people["reviewer"], by=people["lead"])
        assert hears(ines, "[data-row]:not(")
        second = open_refund(by=people["developer"], amount="9.99")
        assert hears(tom, f"row-{second.pk}")
        assert not hears(ines, str(second.pk), within=QUIET)


def test_the_socket_of_a_run_tells_nothing_to_whoever_may_not_see_it(
    site: Site, people: dict[str, User]
) -> None:
    run = open_refund(by=people["developer"]).run
    outsider = User.objects.create(username="outsider", role="reviewer")
    with opened(site, outsider, f"/ws/runs/{run.pk}/") as socket:
        socket.send(json.dumps({"hello": None, "known": {}, "card": ""}))
        heard = pushes(socket)
    assert heard
    assert not any("issue_refund" in push or "A-1001" in push for push in heard), heard
