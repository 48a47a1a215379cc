"""The delay levels after which an unconsumed message is delivered again.

See docs/reference/protocol/retries-and-delays.md, "Retries".
"""

from typing import Final

LEVELS_SECONDS: Final = (
    *(1, 5, 10, 30),
    *(60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800),
    *(3600, 7200),
)
"""The delay of each level, from level 1 up."""

RECONSUME_MAX: Final = 16
"""The retries of a group without a configured number; after them the message is a dead letter."""

LEVEL_OF_FIRST_RETRY: Final = 3


def clamped(level: int) -> int:
    """Return the level, limited to the highest one."""
    return min(level, len(LEVELS_SECONDS))


def delay_seconds(level: int) -> int:
    """Return the delay of a message of that level; 0 below level 1."""
    return LEVELS_SECONDS[clamped(level) - 1] if level > 0 else 0


def send_back_level(delay_level: int, reconsume_times: int, reconsume_max: int = RECONSUME_MAX) -> int | None:
    """Return the delay level of a message that a consumer sends back; None means the dead-letter queue.

    With delay level 0 the broker chooses. A negative level requests the dead-letter queue. `reconsume_times`
    is the number of earlier retries.
    """
    if delay_level < 0 or reconsume_times >= reconsume_max:
        return None
    return clamped(delay_level or LEVEL_OF_FIRST_RETRY + reconsume_times)
