"""What a consumer has pulled of one queue and is not done with, and from where the group would go on.

Nothing here waits or knows the time: whoever pulls puts, whoever consumes removes.
"""

import asyncio
from collections.abc import Collection, Sequence
from itertools import islice

from mqproof.impl.client.model import MessageQueue, ReceivedMessage


class ProcessQueue:
    """The messages of one assignment of a queue to us; a later assignment gets another ProcessQueue."""

    def __init__(self, queue: MessageQueue) -> None:
        self.queue = queue
        self.is_dropped = False
        """The queue is ours no more: what is still being consumed of it must not be committed."""
        self.bytes = 0
        """Of all bodies together."""
        self.pulled_s: float | None = None
        """Loop time of the last answer to a pull."""
        self.consumed_s: float | None = None
        """Loop time when the listener was last given something."""
        self.shrunk = asyncio.Event()
        """Set by every removal: who waits for room clears it."""
        # By offset. Pulls give them in order and dicts keep it, so that the first key is the least offset.
        self._messages: dict[int, ReceivedMessage] = {}
        self._end = 0
        self._begun_s: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def span(self) -> int:
        """From the least to the greatest offset held."""
        first, last = self.ends
        return last - first

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest offset held; zeros when nothing is."""
        return (next(iter(self._messages)), next(reversed(self._messages))) if self._messages else (0, 0)

    @property
    def begun_count(self) -> int:
        """How many the listener has."""
        return len(self._begun_s)

    @property
    def begun_ends(self) -> tuple[int, int]:
        """As ends, of what the listener has."""
        return (min(self._begun_s), max(self._begun_s)) if self._begun_s else (0, 0)

    def put(self, messages: Sequence[ReceivedMessage]) -> None:
        """Hold messages that come behind all others."""
        for message in messages:
            assert message.queue_offset >= self._end, f"{self.queue}: {message.queue_offset} is out of order"
            self._messages[message.queue_offset] = message
            self._end = message.queue_offset + 1
            self.bytes += len(message.body)

    def first(self, count: int) -> list[ReceivedMessage]:
        """The messages with the least offsets; they stay."""
        return list(islice(self._messages.values(), count))

    def holds(self, message: ReceivedMessage) -> bool:
        return message.queue_offset in self._messages

    def remove(self, messages: Collection[ReceivedMessage]) -> int:
        """Be done with messages. Returns the offset up to which nothing is left: what may be committed."""
        for message in messages:
            held = self._messages.pop(message.queue_offset, None)
            self._begun_s.pop(message.queue_offset, None)
            self.bytes -= len(held.body) if held else 0
        self.shrunk.set()
        return next(iter(self._messages), self._end)

    def replace(self, messages: Collection[ReceivedMessage]) -> None:
        """Hold these instead of the ones at the same offsets."""
        for message in messages:
            assert message.queue_offset in self._messages, f"{self.queue}: {message.queue_offset} is gone"
            self._messages[message.queue_offset] = message

    def begin(self, messages: Collection[ReceivedMessage], now_s: float) -> None:
        """Note that the listener has been given these."""
        self.consumed_s = now_s
        for message in messages:
            self._begun_s[message.queue_offset] = now_s

    def overdue(self, since_s: float, most: int) -> list[ReceivedMessage]:
        """Messages that the listener was given before `since_s` and that are still there."""
        late = (offset for offset, begun_s in self._begun_s.items() if begun_s < since_s)
        return [self._messages[offset] for offset in islice(late, most) if offset in self._messages]
