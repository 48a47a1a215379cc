"""How far consumer groups are behind, for the metrics.

Messages between the committed offset and the one that the group received last are in flight. Those after it
are ready. The lag is the sum of both.
"""

import asyncio
from typing import Final, NamedTuple

from mqproof.impl.broker.services import Services

_PAIRS_A_TURN: Final = 20


class Lag(NamedTuple):
    """The lag of a group in a topic: numbers of messages, and ages in milliseconds; 0 if there are none."""

    inflight: int
    ready: int
    lag_ms: int
    """The age of the oldest message that is not committed."""
    queueing_ms: int
    """The age of the oldest message that the group has not received."""


async def lags(services: Services, pairs_max: int) -> tuple[dict[tuple[str, str], Lag], int]:
    """Return the lag by topic and group, and how many pairs were left out because there are too many.

    Other requests are served in between.
    """
    pairs = services.offsets.pairs()
    found = {}
    for number, (topic, group) in enumerate(pairs[:pairs_max]):
        if number % _PAIRS_A_TURN == 0:
            await asyncio.sleep(0)
        found[topic, group] = lag_of(services, topic, group)
    return found, max(0, len(pairs) - pairs_max)


def lag_of(services: Services, topic: str, group: str) -> Lag:
    """Return the lag of a group over the queues in which it has committed offsets."""
    store, now_ms = services.store, services.store.now_ms()
    inflight = ready = lag_ms = queueing_ms = 0
    for queue_id, committed in services.offsets.of_group(group, topic).items():
        begin, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        done = min(max(committed, begin), end)
        received = min(max(services.pull_progress.end(topic, group, queue_id), done), end)
        inflight += received - done
        ready += end - received
        if done < end:
            lag_ms = max(lag_ms, _age_ms(services, topic, queue_id, done, now_ms))
        if received < end:
            queueing_ms = max(queueing_ms, _age_ms(services, topic, queue_id, received, now_ms))
    return Lag(inflight, ready, lag_ms, queueing_ms)


def _age_ms(services: Services, topic: str, queue_id: int, offset: int, now_ms: int) -> int:
    try:
        stored_ms = services.store.store_time_ms(topic, queue_id, offset)
    except OSError:
        return 0  # the log reports errors of the disk
    return 0 if stored_ms is None else max(0, now_ms - stored_ms)
