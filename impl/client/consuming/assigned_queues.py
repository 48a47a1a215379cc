"""The queues that a consumer reads. Each has a loop that pulls while the limits on held messages allow it.

See docs/reference/protocol/groups.md, "Push consumers".
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, PullResult, ReceivedMessage, RefusalError
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.notices import Notices

_log = logging.getLogger(__name__)

_FLOW_CONTROL_PAUSE_S: Final = 0.02
_ERROR_PAUSE_S: Final = 1.0
_FULL_PAUSE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class PullLimits:
    """How much one pull requests, and how much of one queue may be held before pulling pauses."""

    batch: int = 32
    """The most messages of one pull."""
    hold_ms: int = 15_000
    """How long the broker may wait for a message before it responds that there is none."""
    messages_max: int = 1000
    """The most messages of one queue that are held; above it, pulling pauses."""
    bytes_max: int = 100 << 20
    """The most bytes of one queue that are held; above it, pulling pauses."""
    span_max: int | None = 2000
    """The maximum offset range from the first unfinished message to the last one pulled; None means no limit.
    """
    total_bytes_max: int = 512 << 20
    """The most bytes of all queues of the consumer that are held; above it, pulling pauses."""


class AssignedQueues:
    """The queues that a consumer reads, each from its own offset.

    `receive` is called with the pulled messages, in order. `settled` returns once messages of a dropped queue
    that are still being consumed no longer matter to the consumer.
    """

    def __init__(
        self,
        calls: GroupRequests,
        offsets: Offsets,
        limits: PullLimits,
        tags_of: Callable[[str], str | MessageSelector],
        receive: Callable[[ProcessQueue, list[ReceivedMessage]], None],
        settled: Callable[[ProcessQueue], Awaitable[None]],
        rates: ConsumeRates,
    ) -> None:
        self._calls = calls
        self._offsets = offsets
        self._limits = limits
        self._tags_of = tags_of
        self._receive = receive
        self._settled = settled
        self._rates = rates
        self._assigned: dict[MessageQueue, tuple[ProcessQueue, asyncio.Task[None]]] = {}
        self._resets: set[asyncio.Task[None]] = set()
        self._notices = Notices(_log)
        self._may_pull = asyncio.Event()
        self._may_pull.set()
        self._refused: set[MessageQueue] = set()
        """Queues whose last pull a broker refused, which is logged as a warning once."""

    def __contains__(self, queue: MessageQueue) -> bool:
        return queue in self._assigned

    def queues(self) -> list[MessageQueue]:
        return list(self._assigned)

    def process_queues(self) -> list[ProcessQueue]:
        return [held for held, _ in self._assigned.values()]

    def assign(self, queue: MessageQueue, offset: int) -> ProcessQueue:
        """Start reading the queue at the offset."""
        assert queue not in self._assigned, f"{queue} is already being read"
        held = ProcessQueue(queue)
        self._assigned[queue] = (held, asyncio.create_task(self._read(held, offset)))
        return held

    def drop(self, queue: MessageQueue) -> ProcessQueue | None:
        """Stop reading the queue and ignore the result of messages being consumed.

        Returns None if it was not being read.
        """
        entry = self._assigned.pop(queue, None)
        if entry is None:
            return None
        held, task = entry
        held.is_dropped = True
        task.cancel()
        return held

    def progress(self, topic: str) -> dict[MessageQueue, int]:
        """Return the group's offsets in the topic's queues, as far as they are known locally."""
        known = {queue: self._offsets.get(queue) for queue in self._assigned if queue.topic == topic}
        return {queue: offset for queue, offset in known.items() if offset is not None}

    def reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """In the background, move the topic's queues to these offsets, as requested by an operator."""
        for queue, offset in offsets.items():
            if queue.topic == topic:
                task = asyncio.create_task(self.go_to(queue, offset))
                self._resets.add(task)
                task.add_done_callback(self._resets.discard)

    def suspend(self) -> None:
        """Begin no more pulls until `resume`."""
        self._may_pull.clear()

    def resume(self) -> None:
        """Pull again."""
        self._may_pull.set()

    def stop(self) -> None:
        """Stop pulling. Messages already pulled may still be consumed, and their results count."""
        for task in (*self._resets, *(task for _, task in self._assigned.values())):
            task.cancel()

    async def go_to(self, queue: MessageQueue, offset: int) -> None:
        """Continue reading the queue at another offset, for a reason other than consumption."""
        entry = self._assigned.get(queue)
        if entry is None or entry[0].is_dropped:
            return
        held, task = entry
        held.is_dropped = True
        if task is not asyncio.current_task():
            task.cancel()
        await self._settled(held)
        if self._assigned.get(queue) is entry:  # The queue was not lost in the meantime.
            await self._offsets.reset(queue, offset)
        if self._assigned.get(queue) is entry:
            del self._assigned[queue]
            self.assign(queue, offset)

    async def _read(self, held: ProcessQueue, offset: int) -> None:
        while not held.is_dropped:
            try:
                offset = await self._step(held, offset)
            except Exception as error:  # if this loop ended, no task would read the queue
                _log.error("reading %s failed", held.queue, exc_info=error)
                await asyncio.sleep(_ERROR_PAUSE_S)

    async def _step(self, held: ProcessQueue, offset: int) -> int:
        """Pull once, or wait for room. Returns the offset to pull next."""
        await self._may_pull.wait()
        while self._is_full(held):
            held.shrunk.clear()
            await held.shrunk.wait()
        while self._room() <= 0:
            held_max = self._limits.total_bytes_max
            self._notices.warn("full", f"pulling pauses: the consumer holds {held_max} bytes of messages")
            # Any queue may make room, and this one may hold nothing.
            await asyncio.sleep(_FULL_PAUSE_S)
        queue = held.queue
        asked_s = _now_s()
        result = await self._pull(queue, offset)
        if result is None:
            return offset
        held.pulled_s = _now_s()
        if result.status == "OFFSET_ILLEGAL":
            _log.warning("%s has no offset %d, continuing at %d", queue, offset, result.next_offset)
            await self.go_to(queue, result.next_offset)
            return offset
        messages = [
            ReceivedMessage(
                stored, queue, stored.message.reconsume_times, result.min_offset, result.max_offset
            )
            for stored in result.messages
        ]
        if messages:
            self._rates.pulled(queue.topic, len(messages), held.pulled_s - asked_s, held.pulled_s)
            held.put(messages)
            self._receive(held, messages)
        elif result.status == "NO_MATCHED_MESSAGE" and result.next_offset == offset:
            await asyncio.sleep(
                _ERROR_PAUSE_S
            )  # The response is from a slave that lags behind. An immediate retry would not help.
        elif not len(held):
            # The messages skipped do not match the subscription. The group need not read them again.
            self._offsets.advance(queue, result.next_offset)
        return result.next_offset

    async def _pull(self, queue: MessageQueue, offset: int) -> PullResult | None:
        """Pull once. Returns None after an error, when the pause before the next attempt is over."""
        try:
            result = await self._calls.pull(
                queue,
                offset,
                max_count=self._limits.batch,
                tags=self._tags_of(queue.topic),
                hold_ms=self._limits.hold_ms,
                room=self._room,
            )
            if result.status != "OFFSET_ILLEGAL":
                _check_order(queue, offset, result)
        except ClientError as error:
            slow = isinstance(error, RefusalError) and error.code == ResponseCode.FLOW_CONTROL
            is_new_refusal = isinstance(error, RefusalError) and not slow and queue not in self._refused
            if is_new_refusal:
                self._refused.add(queue)
            _log.log(
                logging.WARNING if is_new_refusal else logging.INFO,
                "a pull failed and is repeated: %s",
                error,
            )
            await asyncio.sleep(_FLOW_CONTROL_PAUSE_S if slow else _ERROR_PAUSE_S)
            return None
        self._refused.discard(queue)
        return result

    def _room(self) -> int:
        """Return how many more bytes the consumer may hold."""
        return self._limits.total_bytes_max - sum(held.bytes for held, _ in self._assigned.values())

    def _is_full(self, held: ProcessQueue) -> bool:
        limits = self._limits
        return (
            len(held) > limits.messages_max
            or held.bytes > limits.bytes_max
            or (limits.span_max is not None and held.span > limits.span_max)
        )


def _check_order(queue: MessageQueue, offset: int, result: PullResult) -> None:
    """Check that the offsets in a response increase from the requested offset. Raises ClientError if not."""
    reached = [offset - 1, *(stored.queue_offset for stored in result.messages), result.next_offset]
    if any(later <= earlier for earlier, later in pairwise(reached)):
        raise ClientError(f"{queue}: a pull from {offset} was answered with offsets {reached[1:]}")


def _now_s() -> float:
    return upkeep.now_s()
