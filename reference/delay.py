"""When a message that was not consumed comes back: the delay ladder. "Retries" in docs/protocol.md."""

from typing import Final

LEVELS_SECONDS: Final = (
    *(1, 5, 10, 30),
    *(60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800),
    *(3600, 7200),
)
"""Of level 1 and up."""

RECONSUME_MAX: Final = 16
"""Retries of a group that configures nothing else; then the message is a dead letter."""

LEVEL_OF_FIRST_RETRY: Final = 3


def clamped(level: int) -> int:
    """A level beyond the last one is the last one."""
    return min(level, len(LEVELS_SECONDS))


def delay_seconds(level: int) -> int:
    """How long a message of that level waits; nothing below level 1."""
    return LEVELS_SECONDS[clamped(level) - 1] if level > 0 else 0


def send_back_level(delay_level: int, reconsume_times: int, reconsume_max: int = RECONSUME_MAX) -> int | None:
    """The delay level of a message that a consumer sends back; None is the dead-letter queue.

    A delay level of 0 leaves the choice to the broker, a negative one asks for the dead-letter queue.
    `reconsume_times` is how often it was retried before.
    """
    if delay_level < 0 or reconsume_times >= reconsume_max:
        return None
    return clamped(delay_level or LEVEL_OF_FIRST_RETRY + reconsume_times)
