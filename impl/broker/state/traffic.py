"""Messages and bytes since the start, by topic and by consumer group, for the metrics. Pure.

Clients choose the names, so the number of series is limited: what exceeds it is counted under OTHERS.
"""

from collections.abc import Mapping
from typing import Any, Final

from mqproof.impl.metrics.families import Distribution

SERIES_MAX: Final = 5000
"""The most series of one metric."""
OTHERS: Final = "(others)"
"""A name that no topic can have."""

SIZE_BOUNDS: Final = (1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
"""The upper bounds of the intervals in which RocketMQ reports the sizes of messages."""


class Counts:
    """Messages and their bytes."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0


class Stored(Counts):
    """Stored messages, with their sizes. In the sizes, a batch counts as one message of the mean size."""

    __slots__ = ("sizes",)

    def __init__(self) -> None:
        super().__init__()
        self.sizes = Distribution(SIZE_BOUNDS)


class Traffic:
    """The counts of one broker."""

    def __init__(self, series_max: int = SERIES_MAX) -> None:
        self._series_max = series_max
        self.incoming: dict[tuple[str, str], Stored] = {}
        """Messages that producers sent, by topic and message type."""
        self.outgoing: dict[tuple[str, str], Counts] = {}
        """Messages that consumers received, by topic and group."""
        self.dead_letters: dict[tuple[str, str], int] = {}
        """Messages that became dead letters, by topic and group."""
        self.committed: dict[str, int] = {}
        """Committed transactions, by topic."""
        self.rolled_back: dict[str, int] = {}

    def stored(self, topic: str, message_type: str, count: int, size: int) -> None:
        """Count the stored messages of one request; `size` is the size of their records."""
        counts = self.incoming.get((topic, message_type))
        if counts is None:
            key = (topic, message_type) if self._has_room(self.incoming) else (OTHERS, message_type)
            counts = self.incoming.setdefault(key, Stored())
        counts.messages += count
        counts.bytes += size
        counts.sizes.add(size / count)

    def delivered(self, topic: str, group: str, count: int, size: int) -> None:
        """Count the messages of one answer; `size` is the size of their records."""
        counts = self.outgoing.get((topic, group))
        if counts is None:
            key = (topic, group) if self._has_room(self.outgoing) else (OTHERS, OTHERS)
            counts = self.outgoing.setdefault(key, Counts())
        counts.messages += count
        counts.bytes += size

    def dead_letter(self, topic: str, group: str) -> None:
        """Count a message of a topic that became a dead letter of a group."""
        key, counts = (topic, group), self.dead_letters
        if key not in counts and not self._has_room(counts):
            key = OTHERS, OTHERS
        counts[key] = counts.get(key, 0) + 1

    def transaction_ended(self, topic: str, *, committed: bool) -> None:
        """Count a transaction that its producer committed or rolled back."""
        counts = self.committed if committed else self.rolled_back
        if topic not in counts and not self._has_room(counts):
            topic = OTHERS
        counts[topic] = counts.get(topic, 0) + 1

    def _has_room(self, series: Mapping[Any, object]) -> bool:
        return len(series) < self._series_max
