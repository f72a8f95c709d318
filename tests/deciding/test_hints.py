"""Hints: sent after commit, in order, and never in anybody's way."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest
from channels.layers import channel_layers
from pytest_django import Settings

from reviewer import live


@pytest.fixture
def silent_layer(settings: Settings) -> Iterator[None]:
    """A layer whose server takes connections and never answers, as a stopped Redis does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
        config = {"hosts": [{"address": f"redis://127.0.0.1:{port}/0", "socket_timeout": 30}]}
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": config}}
        yield
    # The server is gone, so what hung ends now; the next test's hints must not meet it.
    live._current().thread.submit(int).result(timeout=60)


def test_a_layer_that_does_not_answer_holds_nobody_up(silent_layer: None) -> None:
    sending = threading.Thread(target=live.run_produced, args=(uuid4(), [("m", "text")]), daemon=True)
    sending.start()
    sending.join(timeout=10)
    assert not sending.is_alive()


async def test_the_text_of_a_run_arrives_in_the_order_it_was_written() -> None:
    layer, run = channel_layers.make_backend("default"), uuid4()
    channel = await layer.new_channel()
    await layer.group_add(live.run_group(run), channel)
    for number in range(50):
        live.run_produced(run, [("m", str(number))])
    got = [(await layer.receive(channel))["tokens"][0][1] for _ in range(50)]
    await layer.group_discard(live.run_group(run), channel)
    await layer.close_pools()
    assert got == [str(number) for number in range(50)]
