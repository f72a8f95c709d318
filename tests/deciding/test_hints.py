"""Hints: sent after commit, in order, and never in anybody's way."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from channels.layers import channel_layers
from pytest_django import Settings
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from reviewer import channel_layer, live


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


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, list[tuple[str, Any]]]]:
    """Collect what is handed to the layer, and when."""
    batches: list[tuple[float, list[tuple[str, Any]]]] = []

    def collect(hints: list[tuple[str, Any]]) -> None:
        batches.append((time.monotonic(), hints))

    live._current().thread.submit(int).result(timeout=60)
    monkeypatch.setattr(live, "_send_each", collect)
    return batches


def test_hints_that_keep_coming_are_sent_ten_times_a_second_each_thing_once(
    sent: list[tuple[float, list[tuple[str, Any]]]],
) -> None:
    run, began = uuid4(), time.monotonic()
    while time.monotonic() < began + 0.5:
        live._send(live.run_group(run), {"type": "run.hint", "run": str(run)})
        time.sleep(0.002)
    live._current().thread.submit(int).result(timeout=60)
    times = [at for at, _ in sent]
    assert 2 <= len(sent) <= 7
    assert all(len(hints) == 1 for _, hints in sent)
    assert all(later - before >= 0.09 for before, later in itertools.pairwise(times))


async def test_many_messages_at_once_reach_each_member_of_their_groups_in_order() -> None:
    layer = channel_layers.make_backend("default")
    first, second = uuid4(), uuid4()
    channels = [await layer.new_channel() for _ in range(3)]
    for channel in channels[:2]:
        await layer.group_add(live.run_group(first), channel)
    await layer.group_add(live.run_group(second), channels[2])
    empty = live.run_group(uuid4())
    sent = [(live.run_group(run), {"type": "n", "n": n}) for n in range(40) for run in (first, second)]
    layer.group_send_all([(empty, {"type": "n", "n": -1}), *sent])
    for channel in channels:
        assert [(await layer.receive(channel))["n"] for _ in range(40)] == list(range(40))
    layer.group_send_all([(empty, {"type": "n", "n": -1})])
    await layer.close_pools()


async def test_a_full_channel_gets_nothing_more_and_keeps_nobody_else_from_theirs(settings: Settings) -> None:
    layer = channel_layers.make_backend("default")
    layer.capacity = 5
    other = channel_layers.make_backend("default")
    slow, quick, group = await layer.new_channel(), await other.new_channel(), live.run_group(uuid4())
    layer.channel_capacity = layer.compile_capacities({slow.partition("!")[0] + "*": 5, "specific.*": 1000})
    await layer.group_add(group, slow)
    await layer.group_add(group, quick)
    layer.group_send_all([(group, {"type": "n", "n": n}) for n in range(20)])
    assert [(await other.receive(quick))["n"] for _ in range(20)] == list(range(20))
    assert [(await layer.receive(slow))["n"] for _ in range(5)] == list(range(5))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(layer.receive(slow), 0.5)
    await layer.close_pools()
    await other.close_pools()


async def test_a_connection_that_was_closed_while_nobody_sent_loses_no_hint() -> None:
    sender, receiver = channel_layers.make_backend("default"), channel_layers.make_backend("default")
    group, channel = live.run_group(uuid4()), await receiver.new_channel()
    await receiver.group_add(group, channel)
    sender.group_send_all([(group, {"type": "n", "n": 0})])
    number = sender._sending.client_id()
    await receiver.connection(0).client_kill_filter(_id=number)
    sender.group_send_all([(group, {"type": "n", "n": 1})])
    assert [(await receiver.receive(channel))["n"] for _ in range(2)] == [0, 1]
    await sender.close_pools()
    await receiver.close_pools()


async def test_names_are_told_to_all_who_hear_however_long_nobody_spoke_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel_layer, "SILENCE", 0.05)
    sender, hearer = channel_layers.make_backend("default"), channel_layers.make_backend("default")
    names = {live.rest(uuid4()), live.queue_group(7)}
    heard = hearer.hear()
    assert await anext(heard) == ()  # it is sure to hear from now on
    following = asyncio.create_task(anext(heard))
    await asyncio.sleep(1)
    assert not following.done()
    sender.group_send_all([(live.run_group(uuid4()), {"type": "n"})], told=names)
    assert set(await asyncio.wait_for(following, 30)) == names
    await heard.aclose()
    await sender.close_pools()
    await hearer.close_pools()


async def test_who_hears_nothing_more_from_redis_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_layer, "SILENCE", 0.05)
    layer = channel_layers.make_backend("default")
    heard = layer.hear()
    await anext(heard)
    monkeypatch.setattr(PubSub, "ping", lambda _: asyncio.sleep(0))  # it goes out and nothing comes back
    with pytest.raises(RedisError):
        await asyncio.wait_for(anext(heard), 30)
    await layer.close_pools()


def test_that_a_run_rests_is_told_at_once_with_all_that_waits(
    sent: list[tuple[float, list[tuple[str, Any]]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SECONDS_BETWEEN", 3600)
    run = uuid4()
    live._send(live.run_group(run), {"type": "run.hint", "run": str(run)})
    live._send(live.rest(run), {"type": live.REST, "run": str(run)})
    live._current().thread.submit(int).result(timeout=60)
    assert [group for _, hints in sent for group, _ in hints] == [live.run_group(run), live.rest(run)]


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
