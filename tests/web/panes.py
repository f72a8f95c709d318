"""How tests come to a card beside the list, and keep back what the server says to its pane."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Dialog, Page, Route, WebSocketRoute

from reviewer.models import ReviewTask
from tests.cast import Cast
from tests.deciding.making import pause_run, question
from tests.journeys.walking import elsewhere, is_live
from tests.web.stories import open_task

OpenPage = Callable[..., Page]
TITLE = "#pane [data-card-title]"


def two_tasks(cast: Cast) -> tuple[ReviewTask, ReviewTask]:
    """Open two refunds, of which the first lies open beside the list."""
    return elsewhere(lambda: (open_task(cast, order="A-1"), open_task(cast, order="A-2")))


def open_question(cast: Cast) -> ReviewTask:
    """Open a card whose form is always there."""
    return pause_run(question(), by=cast.developer, interrupt="q" * 32).tasks.get()


def at_card(page: Page, task: ReviewTask) -> Page:
    """Open the inbox with this card beside its list, and wait until its socket is connected."""
    page.goto(f"/?task={task.pk}")
    is_live(page)
    return page


def open_inbox(page: Page) -> None:
    """Go to the inbox and wait until its socket is connected."""
    page.goto("/")
    is_live(page)


def hold_cards(page: Page) -> list[Route]:
    """Keep every card that is asked for from now on, until the test sends it."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/pane/**", hold)
    return held


def hold_first(page: Page, pattern: str) -> list[Route]:
    """Keep the first request of this kind until the test sends it, and let all others through."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(pattern, hold)
    return held


def eventually_held(page: Page, held: list[Route]) -> None:
    """Wait until a request is kept; Playwright hands it over only while it waits itself."""
    for _ in range(100):
        if held:
            return
        page.wait_for_timeout(30)
    raise AssertionError("no such request came")


def answer_dialogs(page: Page, *, accept: bool) -> list[str]:
    """Answer every question that the page asks, and return the list of them as it grows."""
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        (dialog.accept if accept else dialog.dismiss)()

    page.on("dialog", answer)
    return asked


def hold_pushes(page: Page) -> Callable[[], int]:
    """Keep what the server pushes, until the test calls what this returns: it says how much there was."""
    held: list[tuple[WebSocketRoute, str | bytes]] = []

    def connect(socket: WebSocketRoute) -> None:
        socket.connect_to_server().on_message(lambda message: held.append((socket, message)))

    def let_through() -> int:
        for socket, message in held:
            socket.send(message)
        return len(held)

    page.route_web_socket(re.compile("/ws/"), connect)
    return let_through
