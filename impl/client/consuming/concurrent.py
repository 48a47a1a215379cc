"""Consumes messages of all queues concurrently, in no order. Failed messages are sent back for redelivery.

See docs/reference/protocol/groups.md, "Push consumers"; docs/reference/protocol/retries-and-delays.md,
"Retries".
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.listener import SafeListener
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.consuming.redelivery import Redelivery
from mqproof.impl.client.model import ReceivedMessage, RetryLater
from mqproof.impl.runtime import upkeep
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

_AGAIN_HERE_S: Final = 5.0
"""The time until a message that the broker did not take back is consumed again in this process."""
_OVERDUE_LEVEL: Final = 3
_OVERDUE_MAX: Final = 16
"""The maximum number of messages of one queue sent back at once because their listener takes too long."""

_Batch = tuple[ProcessQueue, Sequence[ReceivedMessage]]


class ConcurrentConsumption:
    """Consumes up to `concurrency` batches at a time. Commits up to the first message not yet consumed."""

    def __init__(
        self,
        listening: SafeListener,
        offsets: Offsets,
        redelivery: Redelivery | None,
        events: ConsumerEvents,
        *,
        concurrency: int,
        batch_max: int,
    ) -> None:
        """Start the workers.

        If `redelivery` is None (broadcast), a failed message is logged and counts as finished.
        """
        self._listening = listening
        self._offsets = offsets
        self._redelivery = redelivery
        self._events = events
        self._batch_max = batch_max
        self._batches: asyncio.Queue[_Batch | None] = asyncio.Queue()
        self._concurrency = concurrency
        self._stopping = False
        self._workers = {asyncio.create_task(self._work()) for _ in range(concurrency)}
        self._waiting: set[asyncio.TimerHandle] = set()

    def receive(self, held: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Queue messages of the process queue for consumption."""
        for start in range(0, len(messages), self._batch_max):
            self._batches.put_nowait((held, messages[start : start + self._batch_max]))

    async def resize(self, concurrency: int) -> None:
        """Consume at most this many batches at once. Batches being consumed are completed."""
        self._concurrency = concurrency
        while len(self._workers) < concurrency:
            self._workers.add(asyncio.create_task(self._work()))
        for _ in range(len(self._workers) - concurrency):
            self._batches.put_nowait(None)  # wakes a worker that waits

    async def settled(self, held: ProcessQueue) -> None:
        """Return at once: results for a dropped queue are ignored, so there is nothing to wait for."""

    async def give_back_overdue(self, held: ProcessQueue, timeout_s: float) -> None:
        """Send back messages whose listener exceeded the time limit.

        The listener may continue; its result is ignored.
        """
        if self._redelivery is None:
            return
        for message in held.overdue(_now_s() - timeout_s, _OVERDUE_MAX):
            _log.warning("%s is being consumed for more than %.0f s", message.message_id, timeout_s)
            if await self._redelivery.send_back(message, _OVERDUE_LEVEL):
                self._done(held, [message])

    async def stop(self, timeout_s: float) -> None:
        """Start no more batches, and wait for those being consumed.

        Messages not finished in time are not committed.
        """
        for timer in self._waiting:
            timer.cancel()
        while not self._batches.empty():
            self._batches.get_nowait()
        self._stopping = True
        workers = list(self._workers)
        for _ in workers:
            self._batches.put_nowait(None)
        await asyncio.wait(workers, timeout=timeout_s)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        me = asyncio.current_task()
        assert me is not None
        while not self._stopping:
            if len(self._workers) > self._concurrency:
                self._workers.discard(me)
                return
            batch = await self._batches.get()
            if batch is None:
                continue
            held, messages = batch
            # Skip messages that were dropped, or sent back as overdue, since they were queued.
            messages = [message for message in messages if not held.is_dropped and held.holds(message)]
            if messages:
                await self._consume(held, messages)

    async def _consume(self, held: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:
        self._events.delivered(held.queue, [message.stored for message in messages])
        held.begin(messages, _now_s())
        with upkeep.awaited():  # messages are given back when the listener takes too long
            answer = await self._listening.consume(messages)
        if held.is_dropped:
            return  # the queue's new owner consumes these again, whatever the result here
        end = len(messages) if answer is None else answer.done
        done = [message for message in messages[:end] if held.holds(message)]
        failed = [message for message in messages[end:] if held.holds(message)]
        self._emit(Kind.CONSUME_OK, done)
        self._emit(Kind.CONSUME_FAIL, failed)
        self._done(held, done)
        if answer is not None:
            await self._again(held, failed, answer)

    async def _again(self, held: ProcessQueue, failed: list[ReceivedMessage], answer: RetryLater) -> None:
        kept = []
        for message in failed:
            if self._redelivery is None:
                _log.warning("%s was not consumed; broadcast consumers do not retry", message.message_id)
            elif not await self._redelivery.send_back(message, answer.delay_level):
                kept.append(replace(message, reconsume_times=message.reconsume_times + 1))
                continue
            self._done(held, [message])
        if kept:
            self._after(_AGAIN_HERE_S, held, kept)

    def _after(self, seconds: float, held: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:
        def receive() -> None:
            self._waiting.discard(timer)
            self.receive(held, messages)

        timer = asyncio.get_running_loop().call_later(seconds, receive)
        self._waiting.add(timer)

    def _done(self, held: ProcessQueue, messages: Sequence[ReceivedMessage]) -> None:
        if messages and not held.is_dropped:
            self._offsets.advance(held.queue, held.remove(messages))

    def _emit(self, kind: Kind, messages: Sequence[ReceivedMessage]) -> None:
        for message in messages:
            self._events.of_message(kind, message.queue, message.stored)


def _now_s() -> float:
    return upkeep.now_s()
