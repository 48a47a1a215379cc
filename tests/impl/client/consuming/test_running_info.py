"""Tests the state of a consumer, as administrators see it."""

import asyncio
from typing import Any, cast

import pytest

from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.consuming.locks import QueueLocks
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.consuming.running_info import running_info
from mqproof.impl.client.consuming.subscriptions import Subscriptions
from mqproof.impl.client.model import MessageQueue, ReceivedMessage
from mqproof.impl.remoting.bodies import HeldQueue, RunningInfo, Subscription, TopicPace
from mqproof.impl.remoting.bodies import MessageQueue as NamedQueue
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.simulated_loop import EPOCH_US, SimulatedClock, run_simulated

FIRST, LAST = MessageQueue("T", "b", 1), MessageQueue("T", "b", 2)
NOW_MS = EPOCH_US // 1000 + 100_000


def reading(queue: MessageQueue, *, is_dropped: bool = False) -> ProcessQueue:
    held = ProcessQueue(queue)
    messages = [
        ReceivedMessage(StoredMessage(Message("T", bytes(700_000)), offset, 0, 0, 0, 0), queue, 0)
        for offset in (5, 6, 7, 9)
    ]
    held.put(messages)
    held.begin(messages[1:3], 97.0)
    held.pulled_s = 98.5
    held.is_dropped = is_dropped
    return held


@pytest.mark.parametrize("is_orderly", [False, True])
def test_each_queue_is_shown_with_its_messages_times_and_lock(is_orderly: bool) -> None:
    async def main() -> RunningInfo:
        await asyncio.sleep(100)
        clock = SimulatedClock(asyncio.get_running_loop())
        offsets = Offsets(cast(Any, None))
        offsets.set(FIRST, 4)
        locks = QueueLocks(cast(Any, None))
        locks._confirmed_s = {FIRST: 90.25, LAST: 70.0}
        rates = ConsumeRates()
        rates.pulled("T", 50, 0.5, 100.0)
        subscriptions = Subscriptions(clock)
        subscriptions.add("T", "A")
        return running_info(
            clock, [reading(LAST, is_dropped=True), reading(FIRST)], offsets, locks if is_orderly else None,
            rates, subscriptions, {"PROP": "x"},
        )  # fmt: skip

    info = run_simulated(main())
    held: dict[str, Any] = {
        "cached_msg_count": 4, "cached_msg_max_offset": 9, "cached_msg_min_offset": 5,
        "cached_msg_size_in_mib": 2, "last_consume_timestamp": NOW_MS - 3000,
        "last_pull_timestamp": NOW_MS - 1500,
    }  # fmt: skip
    begun: dict[str, Any] = {
        "transaction_msg_count": 2, "transaction_msg_max_offset": 7, "transaction_msg_min_offset": 6,
    } if is_orderly else {}  # fmt: skip
    locked, expired = (NOW_MS - 9750, NOW_MS - 30_000) if is_orderly else (0, 0)
    assert list(info.mq_table.items()) == [
        (
            ObjectKey(NamedQueue("b", 1, "T")),
            HeldQueue(**held, **begun, commit_offset=4, locked=is_orderly, last_lock_timestamp=locked),
        ),
        (
            ObjectKey(NamedQueue("b", 2, "T")),
            HeldQueue(**held, **begun, droped=True, last_lock_timestamp=expired),
        ),
    ]
    assert info.properties == {"PROP": "x"}
    assert info.status_table == {"T": TopicPace()}
    assert [each.topic for each in info.subscription_set] == ["T"]
    assert isinstance(info.subscription_set[0], Subscription)


def test_a_queue_that_holds_nothing_has_never_been_read() -> None:
    async def main() -> RunningInfo:
        await asyncio.sleep(100)
        clock = SimulatedClock(asyncio.get_running_loop())
        offsets, locks = Offsets(cast(Any, None)), QueueLocks(cast(Any, None))
        return running_info(
            clock, [ProcessQueue(FIRST)], offsets, locks, ConsumeRates(), Subscriptions(clock), {}
        )

    assert list(run_simulated(main()).mq_table.values()) == [HeldQueue()]
