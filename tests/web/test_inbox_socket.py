"""The inbox's socket: pushed in under a second, only what one may see, and never a form."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils.module_loading import import_string

from reviewer import claims, live
from reviewer.accounts.models import User
from reviewer.models import QueueMembership
from reviewer.web.channel import SIGNED_OUT
from tests.cast import Cast
from tests.web.stories import decide, open_task

ORIGIN = (b"origin", b"http://127.0.0.1")
SOON = 3.0  # seconds; a push takes a fraction of one

pytestmark = pytest.mark.usefixtures("committed_db")


def session_of(person: User) -> str:
    """Sign a person in and return the session's key."""
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


class Page:
    """One open page's socket."""

    def __init__(self, session: str | None, *, origin: tuple[bytes, bytes] | None = ORIGIN) -> None:
        headers = [(b"host", b"127.0.0.1"), *([origin] if origin else [])]
        if session:
            headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={session}".encode()))
        application = import_string(settings.ASGI_APPLICATION)  # only now: it looks up the static files
        self.socket = WebsocketCommunicator(application, "/ws/inbox/", headers=headers)

    async def open(self, *, known: dict[str, int] | None = None, card: str = "", **hello: str) -> str:
        """Connect, say what the page shows, and return the first push."""
        connected, _ = await self.socket.connect(timeout=SOON)
        assert connected
        await self.say({"hello": hello, "known": known or {}, "card": card})
        return await self.pushed()

    async def say(self, said: dict[str, Any]) -> None:
        """Send what the page says about itself."""
        await self.socket.send_to(text_data=json.dumps(said))

    async def pushed(self) -> str:
        """Return the next push."""
        return str(await self.socket.receive_from(timeout=SOON))

    async def pushed_with(self, text: str) -> str:
        """Return the first push that holds the text."""
        for _ in range(5):
            push = await self.pushed()
            if text in push:
                return push
        raise AssertionError(f"No push held {text}.")

    async def pushes_until_quiet(self) -> list[str]:
        """Return every push until nothing comes for a while; the rail's numbers may come a second late."""
        pushes = []
        while not await self.socket.receive_nothing(timeout=1.2):
            pushes.append(await self.pushed())
        return pushes

    async def close_code(self) -> int:
        """Return the code with which the server closed."""
        closed = await self.socket.receive_output(timeout=SOON)
        assert closed["type"] == "websocket.close"
        return int(closed["code"])


@pytest.fixture
async def opened(cast: Cast) -> Any:
    """Make pages of people; every page is closed afterwards."""
    pages: list[Page] = []

    async def made(person: User) -> Page:
        page = Page(await sync_to_async(session_of)(person))
        pages.append(page)
        return page

    yield made
    for page in pages:
        await page.socket.disconnect()


Opened = Callable[[User], Any]


async def test_a_foreign_or_missing_origin_is_refused(cast: Cast) -> None:
    session = await sync_to_async(session_of)(cast.reviewer)

    for origin in ((b"origin", b"https://evil.example"), (b"origin", b"http://127.0.0.1:1"), None):
        page = Page(session, origin=origin)
        connected, _ = await page.socket.connect(timeout=SOON)
        await page.socket.disconnect()
        assert not connected


async def test_a_signed_out_page_is_told_to_sign_in(cast: Cast) -> None:
    page = Page(None)
    await page.socket.connect(timeout=SOON)

    assert await page.close_code() == SIGNED_OUT
    await page.socket.disconnect()


async def test_a_new_task_reaches_every_page_that_may_see_it(cast: Cast, opened: Opened) -> None:
    first, second = await opened(cast.reviewer), await opened(cast.reviewer2)
    await first.open()
    await second.open()

    task = await sync_to_async(open_task)(cast)

    for page in (first, second):
        push = await page.pushed_with(f"row-{task.pk}")
        assert 'hx-target="#arrivals" hx-swap="beforeend"' in push
        assert "Refund 18.40 for order A-1001" in push
        assert "<form" not in push


async def test_a_task_of_a_foreign_queue_is_not_pushed(cast: Cast, opened: Opened) -> None:
    page = await opened(cast.outsider)
    await page.open()

    await sync_to_async(open_task)(cast)

    assert await page.socket.receive_nothing(timeout=0.6)


async def test_a_page_catches_up_when_it_connects(cast: Cast, opened: Opened) -> None:
    seen = await sync_to_async(open_task)(cast, order="A-1")
    gone = await sync_to_async(open_task)(cast, order="A-2")
    missed = await sync_to_async(open_task)(cast, order="A-3")
    await sync_to_async(decide)(gone, cast)
    foreign = "00000000-0000-0000-0000-000000000000"

    page = await opened(cast.reviewer2)
    push = await page.open(known={str(seen.pk): seen.version, str(gone.pk): gone.version, foreign: 1})

    assert f"row-{seen.pk}" not in push
    assert f'hx-target="#row-{gone.pk}" hx-swap="outerMorph"' in push
    assert "by Ines H." in push
    assert f'id="row-{missed.pk}"' in push
    assert f'hx-target="#row-{foreign}" hx-swap="delete"' in push


async def test_a_filtered_list_gets_only_its_own_arrivals(cast: Cast, opened: Opened) -> None:
    page = await opened(cast.reviewer)
    await page.open(queue="mail")

    task = await sync_to_async(open_task)(cast)

    push = await page.pushed_with(f"row-{task.pk}")
    assert "#arrivals" not in push


async def test_a_decision_closes_the_card_in_the_other_page(cast: Cast, opened: Opened) -> None:
    task = await sync_to_async(open_task)(cast)
    page = await opened(cast.reviewer2)
    await page.open(known={str(task.pk): task.version}, card=str(task.pk))

    await sync_to_async(decide)(task, cast)

    push = await page.pushed_with(f"card-{task.pk}-state")
    assert "data-locks" in push
    assert "Decided" in push
    assert "<textarea" not in push


async def test_a_claim_shows_in_the_other_list(cast: Cast, opened: Opened) -> None:
    task = await sync_to_async(open_task)(cast)
    page = await opened(cast.reviewer2)
    await page.open(known={str(task.pk): task.version})

    await sync_to_async(claims.claim)(task.pk, by=cast.reviewer)

    assert "Claimed by Ines H." in await page.pushed_with(f"row-{task.pk}")


async def test_many_changes_make_few_pushes(cast: Cast, opened: Opened) -> None:
    page = await opened(cast.reviewer2)
    await page.open()

    for number in range(12):
        await sync_to_async(open_task)(cast, order=f"A-{number}")

    pushes = await page.pushes_until_quiet()
    assert sum(push.count("data-row ") for push in pushes) == 12
    assert len(pushes) < 12


async def test_leaving_a_queue_takes_its_rows_away_at_once(cast: Cast, opened: Opened) -> None:
    task = await sync_to_async(open_task)(cast)
    page = await opened(cast.reviewer)
    await page.open(known={str(task.pk): task.version}, card=str(task.pk))

    await sync_to_async(_leave)(cast)

    push = await page.pushed_with("[data-row]:not(")
    assert f"[data-queue=&quot;{cast.payments.pk}&quot;]" not in push
    assert "You may no longer see this card" in push
    hidden = await sync_to_async(open_task)(cast, order="A-9")
    assert str(hidden.pk) not in "".join(await page.pushes_until_quiet())


async def test_a_session_that_ended_closes_its_page(cast: Cast, opened: Opened) -> None:
    page = await opened(cast.reviewer)
    await page.open()

    await sync_to_async(Session.objects.all().delete)()
    await sync_to_async(_hint)(cast.reviewer)

    assert await page.close_code() == SIGNED_OUT


async def test_a_person_whose_epoch_rose_is_closed_out(cast: Cast, opened: Opened) -> None:
    page = await opened(cast.reviewer)
    await page.open()

    await sync_to_async(User.objects.filter(pk=cast.reviewer.pk).update)(session_epoch=1)
    await sync_to_async(_hint)(cast.reviewer)

    assert await page.close_code() == SIGNED_OUT


@pytest.mark.parametrize(
    "said",
    [
        "no json",
        "[]",
        "[" * 60_000,
        "x" * 70_000,
        '{"hello": 1, "known": [], "card": 7}',
        '{"language": ["en"], "hello": {"view": "\\u0000", "query": "\\u0000", "queue": "\\ud800"}}',
    ],
)
async def test_whatever_a_page_says_the_socket_stays(cast: Cast, opened: Opened, said: str) -> None:
    page = await opened(cast.reviewer)
    await page.open()

    await page.socket.send_to(text_data=said)
    task = await sync_to_async(open_task)(cast)

    assert await page.pushed_with(f"row-{task.pk}")


def _leave(cast: Cast) -> None:
    QueueMembership.objects.filter(queue=cast.payments, user=cast.reviewer).delete()
    live.person_changed(cast.reviewer.pk)


def _hint(person: User) -> None:
    live.person_changed(person.pk)
