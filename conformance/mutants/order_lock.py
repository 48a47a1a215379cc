"""Mutants of an orderly consumer: each replaces one rule by a wrong one.

A broker's locks and two members replay behaviours of OrderLock with each (`orderly_consumers`). Mutants of
the locks themselves belong to the suite (`mutants/ordering.py`). The behaviours detect those that show on a
single queue.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.client.consuming.locks import QueueLocks
from mqproof.impl.client.consuming.orderly import OrderlyConsumption, _Lane
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.model import MessageQueue, ReceivedMessage

_gain, _unlock, _renew = PushConsumer.gain, QueueLocks.unlock, QueueLocks._renew


def _ever_confirmed(locks: QueueLocks, queue: MessageQueue) -> bool:
    return locks.confirmed_s(queue) is not None


async def _believed_all_the_same(locks: QueueLocks, queues: Collection[MessageQueue]) -> list[MessageQueue]:
    had = dict(locks._confirmed_s)
    await _renew(locks, queues)
    locks._confirmed_s = had | locks._confirmed_s
    return []


async def _unlocked_before_it_settles(consumer: PushConsumer, held: ProcessQueue) -> None:
    await consumer._offsets.release(held.queue)
    assert consumer._locks is not None
    await consumer._locks.unlock([held.queue])
    await consumer._consumption.settled(held)


async def _unlocked_meanwhile(locks: QueueLocks, queues: Collection[MessageQueue]) -> None:
    renewed, locks._renewed = locks._renewed, asyncio.Event()
    locks._renewed.set()
    try:
        await _unlock(locks, queues)
    finally:
        locks._renewed = renewed


async def _kept(locks: QueueLocks, queues: Collection[MessageQueue]) -> None:
    for queue in queues:
        locks._confirmed_s.pop(queue, None)


async def _taken_while_leaving(consumer: PushConsumer, queue: MessageQueue) -> bool:
    leaving, consumer._leaving = consumer._leaving, {}
    try:
        return await _gain(consumer, queue)
    finally:
        consumer._leaving = leaving


def _a_lane_a_pull(consumption: OrderlyConsumption, held: ProcessQueue, _: Sequence[ReceivedMessage]) -> None:
    lane = consumption._lanes[held] = _Lane()
    lane.task = asyncio.create_task(consumption._run(held, lane))


_LOCKS: Final = "mqproof.impl.client.consuming.locks:QueueLocks"
_CONSUMER: Final = "mqproof.impl.client.consuming.push_consumer:PushConsumer"

MUTANTS: Final = by_name(
    Mutant(
        "lock-trusted-for-ever", "a consumer trusts a granted lock until it is refused", "SPEC-1",
        f"{_LOCKS}.holds", _ever_confirmed,
    ),
    Mutant(
        "refusal-not-heard", "a lock that another member holds by now is trusted until its time ends",
        "SPEC-1", f"{_LOCKS}._renew", _believed_all_the_same,
    ),
    Mutant(
        "unlocked-in-call", "a queue that was dropped is unlocked while its listener runs",
        "SPEC-1", f"{_CONSUMER}._leave", _unlocked_before_it_settles,
    ),
    Mutant(
        "unlocked-while-renewed", "a queue is unlocked while its lock is being renewed", "SPEC-1",
        f"{_LOCKS}.unlock", _unlocked_meanwhile,
    ),
    Mutant(
        "left-locked", "the lock of a queue that was dropped is left until its lease ends", "SPEC-1",
        f"{_LOCKS}.unlock", _kept,
    ),
    Mutant(
        "taken-while-leaving", "a queue that was dropped is taken again before the drop is complete",
        "SPEC-1",
        f"{_CONSUMER}.gain", _taken_while_leaving,
    ),
    Mutant(
        "lane-for-each-pull", "messages that arrive while the listener runs do not wait", "SPEC-1",
        "mqproof.impl.client.consuming.orderly:OrderlyConsumption.receive", _a_lane_a_pull,
    ),
)  # fmt: skip
"""The mutants by name."""
