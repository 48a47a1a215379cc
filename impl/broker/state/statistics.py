"""Counters since a broker's start, and their rates. Pure; time is passed in."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from mqproof.impl.broker.state.rolling_counts import RollingCounts
from mqproof.impl.broker.state.traffic import Traffic

WINDOWS_S: Final = (10, 60, 600)
"""The periods in seconds for which RocketMQ shows rates."""

_DAY_MS: Final = 86_400_000


class Meter:
    """A count that only increases, sampled once a second."""

    def __init__(self) -> None:
        self.total = 0
        self.this_morning = 0
        """The count at the last midnight (UTC)."""
        self.yesterday_morning = 0
        self._day: int | None = None
        self._samples: deque[tuple[float, int]] = deque(maxlen=WINDOWS_S[-1] + 1)

    def add(self, count: int = 1) -> None:
        self.total += count

    def sample(self, loop_s: float, wall_ms: int) -> None:
        """Record the count, with the time of the event loop and of the wall clock."""
        self._samples.append((loop_s, self.total))
        day = wall_ms // _DAY_MS
        if self._day is not None and day != self._day:
            self.yesterday_morning, self.this_morning = self.this_morning, self.total
        self._day = day

    def rates(self) -> tuple[float, ...]:
        """Return the rates per second, over each period or over the available part of it."""
        return tuple(self._rate(window) for window in WINDOWS_S)

    def _rate(self, window_s: int) -> float:
        if not self._samples:
            return 0.0
        end_s, end = self._samples[-1]
        begin_s, begin = self._samples[max(0, len(self._samples) - 1 - window_s)]
        return (end - begin) / (end_s - begin_s) if end_s > begin_s else 0.0


@dataclass(slots=True)
class _Puts:
    """Sends to one topic: their number, and their messages and bytes."""

    times: int = 0
    count: int = 0
    size: int = 0


class Statistics:
    """Counters of stored and delivered messages."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._counts = RollingCounts()
        self._puts: dict[str, _Puts] = {}
        """Stored messages by topic that `_counts` does not contain yet."""
        self.traffic = Traffic()
        """The same counts since the start, for the metrics."""
        self.puts = Meter()
        self.put_bytes = Meter()
        self.failed_puts = Meter()
        self.messages_got = Meter()
        self.found = Meter()
        """Pulls answered with messages."""
        self.missed = Meter()

    @property
    def counts(self) -> RollingCounts:
        """Counts under RocketMQ's names: TOPIC_PUT_NUMS and so on."""
        add, collected, self._puts = self._counts.add, self._puts, {}
        for topic, puts in collected.items():
            add("TOPIC_PUT_NUMS", topic, puts.count, puts.times)
            add("TOPIC_PUT_SIZE", topic, puts.size, puts.times)
            add("BROKER_PUT_NUMS", self._cluster, puts.count, puts.times)
        return self._counts

    def put(self, topic: str, count: int, size: int) -> None:
        """Count stored messages; `size` is their total size in bytes."""
        self.puts.total += count
        self.put_bytes.total += size
        puts = self._puts.get(topic)
        if puts is None:
            puts = self._puts[topic] = _Puts()
        puts.times += 1
        puts.count += count
        puts.size += size

    def got(self, topic: str, group: str, count: int, size: int) -> None:
        """Count delivered messages; `size` is their total size in bytes."""
        self.messages_got.add(count)
        self.traffic.delivered(topic, group, count, size)
        key = f"{topic}@{group}"
        add = self._counts.add
        add("GROUP_GET_NUMS", key, count)
        add("GROUP_GET_SIZE", key, size)
        add("BROKER_GET_NUMS", self._cluster, count)

    def sample(self, loop_s: float, wall_ms: int) -> None:
        """Sample all counters. Call this once a second."""
        for meter in (
            self.puts,
            self.put_bytes,
            self.failed_puts,
            self.messages_got,
            self.found,
            self.missed,
        ):
            meter.sample(loop_s, wall_ms)
