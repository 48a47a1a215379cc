"""Times as administrators write and read them: milliseconds, or this machine's local time."""

import time
from datetime import datetime
from typing import Final

_FORMAT: Final = "%Y-%m-%d#%H:%M:%S:%f"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def parse_ms(text: str) -> int:
    """Convert `now`, a number of milliseconds, or `yyyy-MM-dd#HH:mm:ss:SSS` to milliseconds since the epoch.

    Raises:
        ValueError: the text is none of these.
    """
    if text == "now":
        return now_ms()
    if text.lstrip("-").isdecimal() and text.isascii():
        return int(text)
    try:
        return int(datetime.strptime(text, _FORMAT).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is not a time; now, milliseconds or yyyy-MM-dd#HH:mm:ss:SSS expected"
        ) from None


def show(milliseconds: int) -> str:
    """Return the local time to the millisecond. Empty for zero or a negative time."""
    if milliseconds <= 0:
        return ""
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000):%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03}"
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)  # outside the range of the calendar


def hours_since(milliseconds: int) -> float:
    return (now_ms() - milliseconds) / 3_600_000
