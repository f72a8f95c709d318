"""A browser that never reads what it is sent: neither the worker nor other browsers feel it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.conf import settings as django_settings
from django.test import Client
from pytest_django.fixtures import Settings
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from agents_runtime import runs, steps
from agents_runtime.desk import Progress, get_desk
from agents_runtime.models import Run
from reviewer.accounts.models import User
from reviewer.intake import Desk
from tests.cast import Cast
from tests.processes import Site
from tests.runtime.driving import fresh, script

pytestmark = pytest.mark.usefixtures("runtime")
PATIENCE = 60.0
WORDS = [f"{number}-" + "x" * 20_000 for number in range(80)]
"""More than the sockets between worker and browser hold together."""
SMALL = 4_096
batches: list[Progress] = []


class CountingDesk(Desk):
    """The real desk, which also counts the batches of text that it passes on."""

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """Count it, and pass it on."""
        if progress.tokens:
            batches.append(progress)
        super().run_progressed(run, progress)


@pytest.fixture(autouse=True)
def _counting(settings: Settings) -> Iterator[None]:
    batches.clear()
    settings.COUNTERSIGN_DESK = f"{__name__}.CountingDesk"
    get_desk.cache_clear()
    yield
    get_desk.cache_clear()


def open_page(site: Site, person: User, run: Run, sock: socket.socket | None = None) -> ClientConnection:
    """Open the socket of a run's page, over a connection of one's own if given."""
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    session = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    return connect(
        f"{site.url.replace('http', 'ws')}/ws/runs/{run.pk}/",
        origin=Origin(site.url),
        additional_headers={"Cookie": f"{site.session_cookie}={session}"},
        sock=sock,
        max_size=None,
        max_queue=1 if sock else None,
        close_timeout=0.1,
    )


def narrow_connection(site: Site) -> socket.socket:
    """Return a connection that holds little which nobody has read."""
    where = urlsplit(site.url)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    sock.connect((where.hostname, where.port))
    return sock


def text_told(page: ClientConnection, *, until: str) -> tuple[str, int]:
    """Return the text that a page is told up to a word, and in how many frames it came."""
    text, frames = "", 0
    end = time.monotonic() + PATIENCE
    while until not in text:
        told = str(page.recv(timeout=max(0.0, end - time.monotonic())))
        if told.startswith('{"tokens"'):
            text += "".join(part for _, part in json.loads(told)["tokens"])
            frames += 1
    return text, frames


def test_a_browser_that_never_reads_slows_neither_the_worker_nor_other_browsers(
    cast: Cast, live_server_process: Site
) -> None:
    run = runs.start("t-talker", input=script([], say=" ".join(WORDS)), requested_by=cast.developer.reference)
    with (
        narrow_connection(live_server_process) as narrow,
        open_page(live_server_process, cast.developer, run, narrow) as stuck,
        open_page(live_server_process, cast.developer, run) as reading,
    ):
        reading.send(json.dumps({"hello": {}}))
        reading.recv(timeout=PATIENCE)  # both have joined the run's group: this one was opened last
        steps.advance(run.pk)
        assert fresh(run).status == "finished", fresh(run).error
        said = "".join(part for batch in batches for _, part in batch.tokens)
        assert said.split() == WORDS
        text, frames = text_told(reading, until=WORDS[-1])
        assert text.split() == WORDS
        assert frames == len(batches), "each batch that the worker published reached who reads"
        assert stuck.socket is narrow
