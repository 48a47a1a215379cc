"""Consumers that tell their offsets to a slave while its master is away, as released ones do and ours do not:
what our brokers make of it is seen with them alone. See docs/protocol.md, "Replication"."""

from mqproof.impl.client.group_requests import GroupRequests
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.offset_store import BrokerOffsets, FileOffsets
from mqproof.impl.client.push_consumer import PushConsumer
from mqproof.impl.runtime.network import Address


class ReleasedCommits(GroupRequests):
    """For commits: it would ask a slave for locks, too."""

    async def _master(self, queue: MessageQueue) -> Address:
        return await self._any_replica(queue)


class ReleasedPushConsumer(PushConsumer):
    """Ours but for its commits."""

    def _offset_store(self) -> BrokerOffsets | FileOffsets:
        if not self._is_cluster:
            return super()._offset_store()
        return BrokerOffsets(ReleasedCommits(self._session, self._group), self._events)
