"""The state of a consumer, as administrators see it.

See docs/reference/protocol/clients.md, "Requests to clients".
"""

from collections.abc import Iterable, Mapping

from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.consuming.locks import QueueLocks
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.consuming.subscriptions import Subscriptions
from mqproof.impl.remoting.bodies import HeldQueue, MessageQueue, RunningInfo
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.clock import Clock, now_ms


def running_info(
    clock: Clock,
    queues: Iterable[ProcessQueue],
    offsets: Offsets,
    locks: QueueLocks | None,
    rates: ConsumeRates,
    subscriptions: Subscriptions,
    properties: Mapping[str, str],
) -> RunningInfo:
    """Return the queues that are read, the messages held of each, and how fast they are consumed."""
    now_s = upkeep.now_s()
    wall_ms = now_ms(clock)

    def wall(at_s: float | None) -> int:
        return 0 if at_s is None else wall_ms - round((now_s - at_s) * 1000)

    def shown(held: ProcessQueue) -> HeldQueue:
        first, last = held.ends
        begun_first, begun_last = held.begun_ends
        return HeldQueue(
            cached_msg_count=len(held),
            cached_msg_max_offset=last,
            cached_msg_min_offset=first,
            cached_msg_size_in_mib=held.bytes >> 20,
            commit_offset=offsets.get(held.queue) or 0,
            droped=held.is_dropped,
            last_consume_timestamp=wall(held.consumed_s),
            last_lock_timestamp=wall(locks.confirmed_s(held.queue) if locks else None),
            last_pull_timestamp=wall(held.pulled_s),
            locked=locks is not None and locks.holds(held.queue),
            transaction_msg_count=held.begun_count if locks else 0,
            transaction_msg_max_offset=begun_last if locks else 0,
            transaction_msg_min_offset=begun_first if locks else 0,
        )

    ordered = sorted(queues, key=lambda held: held.queue)
    return RunningInfo(
        mq_table={_key(held): shown(held) for held in ordered},
        properties=dict(properties),
        status_table=rates.table(now_s),
        subscription_set=subscriptions.all(),
    )


def _key(held: ProcessQueue) -> ObjectKey:
    queue = held.queue
    return ObjectKey(MessageQueue(queue.broker_name, queue.queue_id, queue.topic))
