"""Stored messages as brokers send them. See docs/reference/protocol/storing.md, "Commit log record"."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from mqproof.impl.client.messages.compression import (
    MESSAGE_BYTES_MAX,
    STEP_BYTES,
    inflated,
    inflating,
    warn_of_size,
    with_body,
)
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.files import record

ANSWER_BYTES_MAX: Final = 64 << 20
"""The most bytes that the bodies of one answer may have together after decompression."""
ANSWER_MESSAGES_MAX: Final = 4096
"""The most messages that are taken from one answer."""

_FULL_PAUSE_S: Final = 0.05
_RECORDS_AT_ONCE: Final = 128
"""The number of records after which the event loop can run other tasks."""


class Answer(NamedTuple):
    """The messages in the answer to a pull."""

    messages: tuple[StoredMessage, ...]
    left_out: int | None
    """The queue offset of the first message that was left out to respect a limit; pull it again."""


def read_records(body: bytes) -> Iterator[StoredMessage]:
    """Yield the consecutive messages in the body of a response, without a pause for the event loop.

    Raises ValueError for a bad record, and for bodies with more than ANSWER_BYTES_MAX bytes together.
    """
    size = 0
    for stored in _split(body):
        message = inflated(stored)
        size += len(message.message.body)
        if size > ANSWER_BYTES_MAX:
            raise ValueError(
                f"more than {ANSWER_BYTES_MAX} bytes when decompressed, at message {stored.message_id}"
            )
        yield message


class AnswerReader:
    """Reads the answers to the pulls of one consumer, one answer at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def read(
        self, body: bytes, is_wanted: Callable[[StoredMessage], bool], room: Callable[[], int] | None = None
    ) -> Answer:
        """Return the wanted messages of an answer.

        Their bodies have at most ANSWER_BYTES_MAX bytes together, and at most `room()` if it is given; a
        single message may have more. While `room()` is 0, the answer waits. The event loop runs other tasks
        between steps of STEP_BYTES. Raises ValueError for a bad record.
        """
        async with self._turn:
            while room is not None and room() <= 0:
                await asyncio.sleep(_FULL_PAUSE_S)
            left = ANSWER_BYTES_MAX if room is None else min(room(), ANSWER_BYTES_MAX)
            messages: list[StoredMessage] = []
            pause = _Pause()
            for stored in _split(body):
                await pause.after_record()
                if not is_wanted(stored):
                    continue
                if messages and (left <= 0 or len(messages) == ANSWER_MESSAGES_MAX):
                    return Answer(tuple(messages), stored.queue_offset)
                most = min(MESSAGE_BYTES_MAX, left) if messages else MESSAGE_BYTES_MAX
                message = await _inflated(stored, most, pause)
                if message is None:
                    if most < MESSAGE_BYTES_MAX:
                        return Answer(tuple(messages), stored.queue_offset)
                    warn_of_size(stored)
                    message = stored
                left -= len(message.message.body)
                messages.append(message)
        return Answer(tuple(messages), None)


class _Pause:
    """Lets the event loop run other tasks after a certain amount of work."""

    def __init__(self) -> None:
        self._records = 0
        self._bytes = 0

    async def after_record(self) -> None:
        self._records += 1
        if self._records % _RECORDS_AT_ONCE == 0:
            await asyncio.sleep(0)

    async def after_bytes(self, size: int) -> None:
        self._bytes += size
        if self._bytes >= STEP_BYTES:
            self._bytes = 0
            await asyncio.sleep(0)


async def _inflated(stored: StoredMessage, bytes_max: int, pause: _Pause) -> StoredMessage | None:
    """Return the message with its producer's body; None if that has more than `bytes_max` bytes."""
    message = stored.message
    steps = inflating(message.body, message.sys_flag, bytes_max)
    while True:
        try:
            size = next(steps)
        except StopIteration as end:
            body: bytes | None = end.value
            break
        await pause.after_bytes(size)
    if body is None:
        return None
    await pause.after_bytes(len(body) % STEP_BYTES)
    return with_body(stored, body)


def _split(body: bytes) -> Iterator[StoredMessage]:
    return (stored for _, stored in read_each(body))


def read_each(body: bytes) -> Iterator[tuple[bytes, StoredMessage]]:
    """Yield each consecutive record and its message. Raises ValueError for a bad record."""
    at = 0
    while at < len(body):
        size, _ = record.peek(body[at : at + record.FILLER_BYTES])
        if not record.SIZE_MIN <= size <= len(body) - at:
            raise ValueError(f"a record of {size} bytes in a body with {len(body) - at} left")
        data = body[at : at + size]
        yield data, record.decode(data)
        at += size
