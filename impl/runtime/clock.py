"""Wall-clock time. Timers are not here: they are the event loop's own (`call_later`, `asyncio.sleep`)."""

import time
from datetime import UTC, datetime, timedelta
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


def month_of(time_ms: int) -> range:
    """The milliseconds since the epoch of the month, by UTC, that holds this one."""
    began = datetime.fromtimestamp(time_ms // 1000, UTC).replace(day=1, hour=0, minute=0, second=0)
    ends = (began + timedelta(days=31)).replace(day=1)
    return range(int(began.timestamp()) * 1000, int(ends.timestamp()) * 1000)


def local_stamp(milliseconds: int) -> int:
    """The time in this machine's time zone as the 17 digits yyyyMMddHHmmssSSS."""
    seconds, rest = divmod(milliseconds, 1000)
    return int(time.strftime("%Y%m%d%H%M%S", time.localtime(seconds))) * 1000 + rest


def local_hour(milliseconds: int) -> int:
    """The hour of the day, 0 to 23, in this machine's time zone."""
    return time.localtime(milliseconds // 1000).tm_hour


def local_text(milliseconds: int | None) -> str:
    """The time in this machine's time zone, to the millisecond; empty for one that is none."""
    if not milliseconds or milliseconds < 0:
        return ""
    seconds, rest = divmod(milliseconds, 1000)
    try:
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{rest:03d}"
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)  # beyond what a calendar has
