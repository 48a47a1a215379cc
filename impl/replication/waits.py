"""The sends of a synchronous master that wait for slaves.

See docs/reference/protocol/replication.md, "Synchronous replication".
"""

import asyncio
from collections import deque
from dataclasses import dataclass

from mqproof.impl.replication import rules
from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import ReplicationConfig
from mqproof.impl.store.results import PutStatus


@dataclass(frozen=True, slots=True)
class _Waiting:
    end: int
    answer: asyncio.Future[PutStatus]
    deadline: asyncio.TimerHandle


class ReplicaWaits:
    """The waiting sends. Each has its own deadline; none waits for another."""

    def __init__(self, acks: Acks, config: ReplicationConfig) -> None:
        self._acks = acks
        self._config = config
        self._waiting: deque[_Waiting] = deque()  # in ascending order of log end

    def wait(self, end: int) -> asyncio.Future[PutStatus]:
        """Start to wait until enough slaves have the log up to `end`.

        Whether a usable slave exists is decided immediately, when this method is called.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[PutStatus] = loop.create_future()
        if not self._is_usable(end):
            answer.set_result(PutStatus.SLAVE_NOT_AVAILABLE)
            return answer
        deadline = loop.call_later(self._config.slave_timeout_ms / 1000, self._expire, answer)
        self._waiting.append(_Waiting(end, answer, deadline))
        self.acked()
        return answer

    def acked(self) -> None:
        """Answer the waiting sends whose records enough slaves have, after a slave acknowledged more."""
        reached = self._acks.reached(self._config.slaves_waited_for)
        while self._waiting:
            first = self._waiting[0]
            if not first.answer.done():
                if not rules.replica_reached(first.end, reached):
                    return
                first.answer.set_result(PutStatus.PUT_OK)
            first.deadline.cancel()
            self._waiting.popleft()

    def _is_usable(self, end: int) -> bool:
        if self._config.in_sync_replicas is not None:
            return True  # 5.x always waits, whichever slaves are connected
        acks = self._acks
        return rules.slave_usable(acks.slaves, end, acks.highest, self._config.fall_behind_bytes_max)

    def _expire(self, answer: asyncio.Future[PutStatus]) -> None:
        if not answer.done():
            answer.set_result(PutStatus.FLUSH_SLAVE_TIMEOUT)
            self.acked()
