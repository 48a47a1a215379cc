"""Consumes each queue in order: one batch at a time, and each batch only after the one before it is done.

See docs/reference/protocol/groups.md, "Queue locks" and "Push consumers".
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.listener import SafeListener
from mqproof.impl.client.consuming.locks import QueueLocks
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.consuming.redelivery import Redelivery
from mqproof.impl.client.consuming.slots import Slots
from mqproof.impl.client.model import ReceivedMessage, RetryLater
from mqproof.impl.runtime import upkeep
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

_UNLOCKED_PAUSE_S: Final = 0.1
_PAUSE_MS_MIN: Final = 10
_PAUSE_MS_MAX: Final = 30_000


@dataclass(slots=True)
class _Lane:
    """The state of the task that consumes one queue."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    in_listener: bool = False
    task: asyncio.Task[None] | None = None


class OrderlyConsumption:
    """One lane per queue. At most `concurrency` lanes are in the listener at the same time."""

    def __init__(
        self,
        listening: SafeListener,
        offsets: Offsets,
        redelivery: Redelivery | None,
        locks: QueueLocks | None,
        events: ConsumerEvents,
        *,
        concurrency: int,
        batch_max: int,
        reconsume_max: int | None,
    ) -> None:
        """Create a consumption without queues.

        `locks` and `redelivery` are None for broadcast, where no other member reads these queues. If
        `reconsume_max` is None, a message that fails blocks its queue until it is consumed.
        """
        self._listening = listening
        self._offsets = offsets
        self._redelivery = redelivery
        self._locks = locks
        self._events = events
        self._batch_max = batch_max
        self._reconsume_max = reconsume_max
        self._slots = Slots(concurrency)
        self._lanes: dict[ProcessQueue, _Lane] = {}
        self._stopping = False

    def receive(self, held: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:  # noqa: ARG002  # the process queue has them
        """Consume the messages that the process queue holds."""
        lane = self._lanes.get(held)
        if lane is None:
            lane = self._lanes[held] = _Lane()
            lane.task = asyncio.create_task(self._run(held, lane))
        lane.arrived.set()

    async def resize(self, concurrency: int) -> None:
        """Call the listener for at most this many queues at once."""
        await self._slots.resize(concurrency)

    async def settled(self, held: ProcessQueue) -> None:
        """Wait until the listener no longer consumes messages of this dropped queue."""
        assert held.is_dropped, f"{held.queue} is not dropped"
        await self._end(self._lanes.get(held))
        self._lanes.pop(held, None)

    async def stop(self, timeout_s: float) -> None:
        """Start no more batches, and wait for those being consumed.

        Messages not finished in time are not committed.
        """
        self._stopping = True
        ends = [asyncio.create_task(self._end(lane)) for lane in self._lanes.values()]
        if ends:
            await asyncio.wait(ends, timeout=timeout_s)
        for lane in self._lanes.values():
            if lane.task is not None:
                lane.task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)

    async def _end(self, lane: _Lane | None) -> None:
        if lane is None or lane.task is None:
            return
        if not lane.in_listener:
            lane.task.cancel()
        await asyncio.gather(lane.task, return_exceptions=True)

    async def _run(self, held: ProcessQueue, lane: _Lane) -> None:
        while not held.is_dropped and not self._stopping:
            if not len(held):
                lane.arrived.clear()
                await lane.arrived.wait()
                continue
            if self._locks is not None and not self._locks.holds(held.queue):
                await asyncio.sleep(_UNLOCKED_PAUSE_S)
                continue
            async with self._slots:
                pause_ms = await self._consume(held, lane)
            if pause_ms:
                await asyncio.sleep(pause_ms / 1000)

    async def _consume(self, held: ProcessQueue, lane: _Lane) -> int:
        """Consume the next batch. Returns how long the queue must wait, in milliseconds."""
        messages = held.first(self._batch_max)
        self._events.delivered(held.queue, [message.stored for message in messages])
        held.begin(messages, upkeep.now_s())
        lane.in_listener = True
        try:
            answer = await self._listening.consume(messages)
            if held.is_dropped:
                return 0
            done = messages if answer is None else messages[: answer.done]
            failed = messages[len(done) :]
            self._emit(Kind.CONSUME_OK, done)
            self._emit(Kind.CONSUME_FAIL, failed)
            self._done(held, done)
            return await self._wait(held, failed, answer) if answer is not None else 0
        finally:
            lane.in_listener = False

    async def _wait(self, held: ProcessQueue, failed: list[ReceivedMessage], answer: RetryLater) -> int:
        """Return how long the queue must wait after a failure, in milliseconds.

        Failed messages stay at the front of the queue. Those that reached the maximum number of attempts go
        to the dead letter queue.
        """
        for place, message in enumerate(failed):
            hopeless = self._reconsume_max is not None and message.reconsume_times >= self._reconsume_max
            if self._redelivery is None or not hopeless or not await self._redelivery.bury(message):
                break
            if held.is_dropped:
                return 0
            self._done(held, failed[place : place + 1])
        left = [message for message in failed if held.holds(message)]
        held.replace([replace(message, reconsume_times=message.reconsume_times + 1) for message in left])
        return min(max(answer.pause_ms, _PAUSE_MS_MIN), _PAUSE_MS_MAX) if left else 0

    def _done(self, held: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:
        if messages:
            self._offsets.set(held.queue, held.remove(messages))

    def _emit(self, kind: Kind, messages: Sequence[ReceivedMessage]) -> None:
        for message in messages:
            self._events.of_message(kind, message.queue, message.stored)
