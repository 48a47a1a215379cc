"""Wall-clock time. Timers are not here: the event loop provides them (`call_later`, `asyncio.sleep`)."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_STAMP_MIN_MS: Final = 86_400_000
_STAMP_MAX_MS: Final = 253_402_128_000_000
"""A day inside the years 1970 to 9999, whatever the time zone is."""


class Clock(Protocol):
    """The wall-clock time as this node knows it. It may jump, also backwards."""

    def now_us(self) -> int:
        """Return the microseconds since the epoch."""
        ...


class SystemClock:
    """The wall clock of the machine."""

    def now_us(self) -> int:
        return time.time_ns() // 1000


def now_ms(clock: Clock) -> int:
    """Return the milliseconds since the epoch, the unit of the store and of the wire format."""
    return clock.now_us() // 1000


def month_of(time_ms: int) -> range:
    """Return the UTC month that contains `time_ms`, as a range of milliseconds since the epoch."""
    began = datetime.fromtimestamp(time_ms // 1000, UTC).replace(day=1, hour=0, minute=0, second=0)
    ends = (began + timedelta(days=31)).replace(day=1)
    return range(int(began.timestamp()) * 1000, int(ends.timestamp()) * 1000)


def local_stamp(milliseconds: int) -> int:
    """Return the time in this machine's time zone as the 17 digits yyyyMMddHHmmssSSS.

    A time outside 1970 to 9999, as a damaged record may have, becomes the nearest time of that range.
    """
    seconds, rest = divmod(min(max(milliseconds, _STAMP_MIN_MS), _STAMP_MAX_MS), 1000)
    return int(time.strftime("%Y%m%d%H%M%S", time.localtime(seconds))) * 1000 + rest


def local_hour(milliseconds: int) -> int:
    """Return the hour of the day, 0 to 23, in this machine's time zone."""
    return time.localtime(milliseconds // 1000).tm_hour


def local_text(milliseconds: int | None) -> str:
    """Return the local time, to the millisecond; empty for None, 0 or a negative time."""
    if not milliseconds or milliseconds < 0:
        return ""
    seconds, rest = divmod(milliseconds, 1000)
    try:
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{rest:03d}"
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)  # outside the range of the calendar
