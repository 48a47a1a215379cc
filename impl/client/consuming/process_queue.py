"""The messages of one queue that a consumer has pulled but not finished with.

The class does no I/O, never waits and reads no clock. The pulling loop puts messages in; the code that
consumes them removes them.
"""

import asyncio
from collections.abc import Collection, Sequence
from itertools import islice

from mqproof.impl.client.model import MessageQueue, ReceivedMessage


class ProcessQueue:
    """The pulled messages of one assignment of a queue to this consumer.

    A later assignment gets a new ProcessQueue.
    """

    def __init__(self, queue: MessageQueue) -> None:
        self.queue = queue
        self.is_dropped = False
        """True once the consumer has lost the queue: messages still being consumed must not be committed."""
        self.bytes = 0
        """The total size of the bodies of the messages held."""
        self.pulled_s: float | None = None
        """The loop time of the last response to a pull."""
        self.consumed_s: float | None = None
        """The loop time when messages were last passed to the listener."""
        self.shrunk = asyncio.Event()
        """An event that every removal sets. The code that waits for free room clears it."""
        # By offset. Pulls add messages in order and dicts keep that order, so the first key is the lowest
        # offset.
        self._messages: dict[int, ReceivedMessage] = {}
        self._end = 0
        self._begun_s: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def span(self) -> int:
        """Return the highest offset held minus the lowest."""
        first, last = self.ends
        return last - first

    @property
    def ends(self) -> tuple[int, int]:
        """Return the lowest and the highest offset held, or zeros when no message is held."""
        return (next(iter(self._messages)), next(reversed(self._messages))) if self._messages else (0, 0)

    @property
    def begun_count(self) -> int:
        """Return how many messages the listener is consuming."""
        return len(self._begun_s)

    @property
    def begun_ends(self) -> tuple[int, int]:
        """Return the lowest and the highest offset that the listener is consuming, or zeros."""
        return (min(self._begun_s), max(self._begun_s)) if self._begun_s else (0, 0)

    def put(self, messages: Sequence[ReceivedMessage]) -> None:
        """Add messages. Their offsets must be higher than every offset added before."""
        for message in messages:
            assert message.queue_offset >= self._end, f"{self.queue}: {message.queue_offset} is out of order"
            self._messages[message.queue_offset] = message
            self._end = message.queue_offset + 1
            self.bytes += len(message.body)

    def first(self, count: int) -> list[ReceivedMessage]:
        """Return up to `count` messages with the lowest offsets, without removing them."""
        return list(islice(self._messages.values(), count))

    def first_unbegun(self, count: int) -> list[ReceivedMessage]:
        """Return up to `count` messages with the lowest offsets that `begin` has not recorded."""
        fresh = (message for offset, message in self._messages.items() if offset not in self._begun_s)
        return list(islice(fresh, count))

    def holds(self, message: ReceivedMessage) -> bool:
        return message.queue_offset in self._messages

    def remove(self, messages: Collection[ReceivedMessage]) -> int:
        """Remove messages that are finished.

        Returns the offset that may be committed: no message below it is held.
        """
        for message in messages:
            held = self._messages.pop(message.queue_offset, None)
            self._begun_s.pop(message.queue_offset, None)
            self.bytes -= len(held.body) if held else 0
        self.shrunk.set()
        return next(iter(self._messages), self._end)

    def replace(self, messages: Collection[ReceivedMessage]) -> None:
        """Replace the messages at the same offsets with these."""
        for message in messages:
            assert message.queue_offset in self._messages, (
                f"{self.queue}: {message.queue_offset} does not exist any more"
            )
            self._messages[message.queue_offset] = message

    def begin(self, messages: Collection[ReceivedMessage], now_s: float) -> None:
        """Record that these messages were passed to the listener."""
        self.consumed_s = now_s
        for message in messages:
            self._begun_s[message.queue_offset] = now_s

    def overdue(self, since_s: float, most: int) -> list[ReceivedMessage]:
        """Return up to `most` messages passed to the listener before `since_s` and still held."""
        late = (offset for offset, begun_s in self._begun_s.items() if begun_s < since_s)
        return [self._messages[offset] for offset in islice(late, most) if offset in self._messages]
