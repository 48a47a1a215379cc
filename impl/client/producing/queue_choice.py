"""Chooses the queue that a producer sends to: round robin, avoiding brokers that failed or were slow.

See docs/reference/protocol/clients.md, "Queue choice". The caller passes the time, in seconds of any
monotonic clock.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.message import java_hash

Selector = Callable[[Sequence[MessageQueue]], MessageQueue]
"""The application's own choice among the writable queues. They are sorted by broker and id, and never empty.
"""


def by_hash(sharding_key: str) -> Selector:
    """Return a selector that chooses the queue by the hash of the key.

    The queue is the same as long as the list of queues is the same. Messages that must stay in order share a
    key. The choice equals that of RocketMQ's SelectMessageQueueByHash.
    """

    def select(queues: Sequence[MessageQueue]) -> MessageQueue:
        return queues[abs(java_hash(sharding_key)) % len(queues)]

    return select


@dataclass(frozen=True, slots=True)
class LatencyLevels:
    """How long a broker is avoided after an attempt, by the highest threshold reached, in milliseconds."""

    thresholds_ms: tuple[int, ...]
    rests_ms: tuple[int, ...]
    failure_ms: int
    """The duration that a failed attempt counts as."""

    def rest_ms(self, took_ms: float) -> int:
        reached = bisect_right(self.thresholds_ms, took_ms)
        return self.rests_ms[reached - 1] if reached else 0


LEVELS_4_9: Final = LatencyLevels(
    (50, 100, 550, 1000, 2000, 3000, 15_000), (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000), 30_000
)
LEVELS_5: Final = LatencyLevels(
    (50, 100, 550, 1800, 3000, 5000, 15_000), (0, 0, 2000, 5000, 6000, 10_000, 30_000), 10_000
)


class QueueChoice:
    """The round robin state of one producer, and the brokers to avoid."""

    def __init__(self, turn: int, levels: LatencyLevels | None = None) -> None:
        """`turn` is the start of the round robin. Without levels, slow brokers are not avoided."""
        self._turn = turn
        self._levels = levels
        self._rested_until_s: dict[str, float] = {}

    def choose(self, queues: Sequence[MessageQueue], last_broker: str | None, now_s: float) -> MessageQueue:
        """Return the next queue whose broker is neither avoided nor the broker of the last attempt.

        A condition that no queue meets is dropped, because some queue must be chosen.
        """
        brokers = {queue.broker_name for queue in queues}
        brokers = {broker for broker in brokers if not self._is_rested(broker, now_s)} or brokers
        brokers = brokers - {last_broker} or brokers
        while True:
            queue = queues[self._turn % len(queues)]
            self._turn += 1
            if queue.broker_name in brokers:
                return queue

    def answered(self, broker: str, took_s: float, now_s: float) -> None:
        """Record an attempt that got a final response. Its duration decides how long to avoid the broker."""
        if self._levels is not None:
            self._rested_until_s[broker] = now_s + self._levels.rest_ms(took_s * 1000) / 1000

    def failed(self, broker: str, now_s: float) -> None:
        """Record an attempt that got no response, or one that is retried elsewhere."""
        if self._levels is not None:
            self.answered(broker, self._levels.failure_ms / 1000, now_s)

    def _is_rested(self, broker: str, now_s: float) -> bool:
        return self._rested_until_s.get(broker, now_s) > now_s
