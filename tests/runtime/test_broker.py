"""The way to the broker: messages go over one client of Redis, which is kept."""

from __future__ import annotations

import pytest
from celery import current_app
from kombu.transport import redis

from agents_runtime import broker, enqueue


def test_messages_go_over_one_client_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(current_app.conf, "task_default_queue", "nobody's")
    made: list[object] = []
    create = redis.Channel._create_client

    def noted(channel: redis.Channel, asynchronous: bool = False) -> object:
        made.append(channel)
        return create(channel, asynchronous)  # type: ignore[no-untyped-call]

    with current_app.connection_for_write() as connection:
        assert type(connection.transport) is broker.Transport
        producer = enqueue.producer_over(connection)
        enqueue.publish(producer, "nobody's", ())
        monkeypatch.setattr(redis.Channel, "_create_client", noted)
        for _ in range(3):
            enqueue.publish(producer, "nobody's", ())
        assert connection.default_channel.queue_purge("nobody's") == 4
    assert made == []


def test_a_message_in_hand_is_noted_nowhere_and_comes_back_if_it_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(current_app.conf, "task_default_queue", "nobody's")
    with current_app.connection_for_write() as connection:
        channel = connection.default_channel
        enqueue.publish(enqueue.producer_over(connection), "nobody's", ("a", "b"))
        in_hand = channel.basic_get("nobody's")
        assert not channel.client.exists(channel.unacked_key, channel.unacked_index_key)
        in_hand.reject(requeue=True)
        again = channel.basic_get("nobody's")
        again.ack()
        assert again.headers["id"] == in_hand.headers["id"]
        assert again.payload == [["a", "b"], {}, in_hand.payload[2]]
        assert channel.queue_purge("nobody's") == 0
