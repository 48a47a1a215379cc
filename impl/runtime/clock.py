"""Wall-clock time. Timers are not here: they are the event loop's own (`call_later`, `asyncio.sleep`)."""

import time
from typing import Protocol


class Clock(Protocol):
    """What time it is, as far as this node knows. It may jump, also backwards."""

    def now_us(self) -> int:
        """Microseconds since the epoch."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now_us(self) -> int:
        return time.time_ns() // 1000


def now_ms(clock: Clock) -> int:
    """Milliseconds since the epoch: the unit of the store and of the wire."""
    return clock.now_us() // 1000
