"""Consumers that commit offsets to a slave while its master is stopped.

Released consumers do so and ours do not; only these consumers show how our brokers handle such commits. See
docs/reference/protocol/replication.md, "Reads from a slave".
"""

from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.offset_store import BrokerOffsets, OffsetStore
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.runtime.network import Address


class ReleasedCommits(GroupRequests):
    """Group requests that commit to any replica.

    Use them only for commits: they would request locks from a slave, too.
    """

    async def _master(self, queue: MessageQueue) -> Address:
        return await self._any_replica(queue)


class ReleasedPushConsumer(PushConsumer):
    """Our push consumer, except that it commits offsets as released consumers do."""

    def _offset_store(self) -> OffsetStore:
        if not self._is_cluster:
            return super()._offset_store()
        return BrokerOffsets(ReleasedCommits(self._session, self._group), self._events)
