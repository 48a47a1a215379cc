"""Sends trace records in the background, in batches. It never delays what is traced.

The records that wait are bounded. Records beyond the bound are dropped, and so are those that cannot be sent:
a trace is no reliable record.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Final

from mqproof.impl.client.model import Outcome, Sent
from mqproof.impl.client.tracing.trace_records import TraceRecord, encode, keys_of
from mqproof.impl.remoting.message import KEYS, Message

_log = logging.getLogger(__name__)

WAITING_MAX: Final = 1024
"""The most records that wait; further ones are dropped."""
_BATCH_MAX: Final = 100
_BODY_BYTES_MAX: Final = 128_000
_KEYS_BYTES_MAX: Final = 16_000
_COLLECT_S: Final = 0.5
"""How long records are collected before they are sent."""
_STOP_S: Final = 1.0
"""How long a stop waits until the last records are sent."""
_LOG_S: Final = 30.0
_STOPS: Final = "the client stops"


class TraceDispatcher:
    """Collects the records of one producer or consumer, and sends them to the trace topic."""

    def __init__(
        self,
        topic: str,
        send: Callable[[Message], Awaitable[Outcome]],
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self.topic = topic
        self._send = send
        self._waiting_max = waiting_max
        self._waiting: deque[TraceRecord] = deque()
        self._arrived = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self.dropped = 0
        """The number of records that were not sent, or whose send failed."""
        self._logged_s = float("-inf")

    def traces(self, topic: str) -> bool:
        """Return whether messages of this topic are traced: those of the trace topic itself are not."""
        return not topic.startswith(self.topic)

    def add(self, records: Iterable[TraceRecord]) -> None:
        """Take records; drop those for which there is no room. Returns at once, and never raises."""
        for record in records:
            if self._is_stopped or len(self._waiting) >= self._waiting_max:
                self._lost(1, "too many wait")
            else:
                self._waiting.append(record)
        if self._waiting and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        self._arrived.set()

    async def stop(self) -> None:
        """Send the records that wait, within a time limit. Drop what is left, and later records."""
        self._is_stopped = True
        try:
            async with asyncio.timeout(_STOP_S):
                await self._send_all()
        except TimeoutError:
            pass
        finally:
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
            self._lost(len(self._waiting), _STOPS)
            self._waiting.clear()

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            if len(self._waiting) < _BATCH_MAX:
                await asyncio.sleep(_COLLECT_S)
            self._arrived.clear()
            await self._send_all()

    async def _send_all(self) -> None:
        async with self._one_at_a_time:
            while self._waiting:
                await self._send_batch()

    async def _send_batch(self) -> None:
        batch, body = self._next_batch()
        keys = " ".join(keys_of(batch))
        message = Message(self.topic, body, {KEYS: keys} if keys else {})
        try:
            outcome = await self._send(message)
        except asyncio.CancelledError:
            self._lost(len(batch), _STOPS)
            raise
        except Exception as error:  # a trace must not end the client, whatever its send does
            self._lost(len(batch), f"{type(error).__name__}: {error}")
            return
        if not isinstance(outcome, Sent):
            self._lost(len(batch), outcome.remark)

    def _next_batch(self) -> tuple[list[TraceRecord], bytes]:
        """Take the next records that fit into one message; one record always does."""
        batch: list[TraceRecord] = []
        parts: list[bytes] = []
        size = keys_size = 0
        for record in islice(self._waiting, _BATCH_MAX):
            part = encode(record).encode()
            size += len(part)
            keys_size += sum(len(key) + 1 for key in keys_of([record]))
            if batch and (size > _BODY_BYTES_MAX or keys_size > _KEYS_BYTES_MAX):
                break
            batch.append(record)
            parts.append(part)
        for _ in batch:
            self._waiting.popleft()
        return batch, b"".join(parts)

    def _lost(self, count: int, reason: str) -> None:
        """Count lost records, and log their number at most once in _LOG_S seconds."""
        self.dropped += count
        now_s = asyncio.get_running_loop().time()
        if count and now_s - self._logged_s >= _LOG_S:
            self._logged_s = now_s
            _log.warning("%d trace records are lost so far: %s", self.dropped, reason)
