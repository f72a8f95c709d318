"""The channel layer, with two more verbs: many messages to groups at once, and hearing what is told to all.

Everything that is stored is as ``channels_redis`` has it. Its own ``group_send`` asks Redis twice about a
group that nobody is in, which is what most hints go to, and four times about any other. Here one question is
about all groups of a moment: a client of Redis takes longer to put one than Redis does to answer it.

Messages are sent by a plain thread over a connection of its own: that takes half of what an event loop does.

What is told to all goes by Redis's own publishing, and is stored nowhere: a process hears names, and only
since it began to listen. That costs nothing for each name that somebody in it waits for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from channels_redis.core import RedisChannelLayer
from redis import Redis, exceptions
from redis import asyncio as redis

SILENCE, MOST_SILENCES = 30.0, 2
"""After so many seconds a listener asks whether anybody is there, and gives up when there is no answer."""

# As in the layer: those that joined too long ago are forgotten first.
_MEMBERS = """
    if ARGV[3] ~= '' then
        redis.call('PUBLISH', ARGV[2], ARGV[3])
    end
    local found = {}
    for i = 1, #KEYS do
        redis.call('ZREMRANGEBYSCORE', KEYS[i], 0, ARGV[1])
        found[i] = redis.call('ZRANGE', KEYS[i], 0, -1)
    end
    return found
"""
# As in the layer: a channel that is full gets nothing, and what it holds goes away with time.
_PUT = """
    for i = 1, #KEYS do
        redis.call('ZREMRANGEBYSCORE', KEYS[i], 0, ARGV[3])
        if redis.call('ZCOUNT', KEYS[i], '-inf', '+inf') < tonumber(ARGV[3 + #KEYS + i]) then
            redis.call('ZADD', KEYS[i], ARGV[1], ARGV[3 + i])
            redis.call('EXPIRE', KEYS[i], ARGV[2])
        end
    end
"""


class HintLayer(RedisChannelLayer):
    """The layer of ``channels_redis`` on one Redis."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        (host,) = ({**host} for host in self.hosts)
        self._sending = Redis.from_url(host.pop("address"), **host)
        # Its channels are Redis's own, which do not keep databases apart as its keys do.
        self._told = f"{self.prefix}.told.{self._sending.get_connection_kwargs().get('db', 0)}"

    def group_send_all(
        self, messages: Sequence[tuple[str, Mapping[str, Any]]], *, told: Collection[str] = ()
    ) -> None:
        """Send each message to its group, in this order, and tell these names to all who ``hear``."""
        groups = {group for group, _ in messages}
        try:
            members = self._members(groups, told)
        except exceptions.ConnectionError:  # this one was closed while nobody sent; the next is new
            members = self._members(groups, told)
        if not any(members.values()):
            return
        pipe = self._sending.pipeline(transaction=False)
        at = 0.0
        for group, message in messages:
            if not members[group]:
                continue
            _, texts, capacities = self._map_channel_keys_to_connection(members[group], dict(message))
            at = max(time.time(), at + 1e-6)  # a channel's messages are in the order of their times
            limits: list[str | int] = [repr(at), int(self.expiry), int(at) - int(self.expiry)]
            pipe.eval(_PUT, len(texts), *texts, *limits, *texts.values(), *capacities.values())
        pipe.execute()

    async def hear(self) -> AsyncIterator[Collection[str]]:
        """Give the names that are told from now on; the first time, once it is sure to hear them, none."""
        async with redis.Redis.from_pool(self.create_pool(0)) as link, link.pubsub() as ear:
            await ear.subscribe(self._told)
            silences, listener = 0, asyncio.current_task()
            while silences < MOST_SILENCES:
                if listener is not None and listener.cancelling():
                    raise asyncio.CancelledError  # redis-py takes some of these for a silence
                message = await ear.get_message(timeout=SILENCE)
                silences = 0 if message else silences + 1
                if message is None:
                    await ear.ping()
                elif message["type"] == "message":
                    yield message["data"].decode().split()
                elif message["type"] == "subscribe":
                    yield ()
        raise exceptions.TimeoutError("Redis has not answered for a minute.")

    def _members(self, groups: Collection[str], told: Collection[str]) -> dict[str, list[str]]:
        """Return the channels in each group, after the names were told."""
        assert all(map(self.require_valid_group_name, groups)), "Group name not valid"
        oldest = int(time.time()) - int(self.group_expiry)
        keys = map(self._group_key, groups)
        found: Any = self._sending.eval(_MEMBERS, len(groups), *keys, oldest, self._told, " ".join(told))
        return {
            group: [channel.decode("utf8") for channel in channels]
            for group, channels in zip(groups, found, strict=True)
        }
