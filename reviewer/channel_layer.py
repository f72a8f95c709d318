"""The channel layer, with one more verb: many messages to groups at once, in few round trips.

Everything that is stored is as ``channels_redis`` has it. Its own ``group_send`` asks Redis twice about a
group that nobody is in, which is what most hints go to, and four times about any other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from channels_redis.core import RedisChannelLayer
from redis import exceptions

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

    async def group_send_all(self, messages: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Send each message to its group, in this order."""
        groups = {group for group, _ in messages}
        try:
            members = await self._members(groups)
        except exceptions.ConnectionError:  # this one was closed while nobody sent; the next is new
            members = await self._members(groups)
        if not any(members.values()):
            return
        pipe = self.connection(0).pipeline(transaction=False)
        at = 0.0
        for group, message in messages:
            if not members[group]:
                continue
            _, texts, capacities = self._map_channel_keys_to_connection(members[group], dict(message))
            at = max(time.time(), at + 1e-6)  # a channel's messages are in the order of their times
            limits = [repr(at), int(self.expiry), int(at) - int(self.expiry)]
            pipe.eval(_PUT, len(texts), *texts, *limits, *texts.values(), *capacities.values())
        await pipe.execute()

    async def _members(self, groups: set[str]) -> dict[str, list[str]]:
        """Return the channels in each group; those that joined too long ago are forgotten first."""
        oldest = int(time.time()) - int(self.group_expiry)
        pipe = self.connection(0).pipeline(transaction=False)
        for group in groups:
            assert self.require_valid_group_name(group), "Group name not valid"
            pipe.zremrangebyscore(self._group_key(group), min=0, max=oldest)
            pipe.zrange(self._group_key(group), 0, -1)
        found = await pipe.execute()
        return {
            group: [channel.decode("utf8") for channel in channels]
            for group, channels in zip(groups, found[1::2], strict=True)
        }
