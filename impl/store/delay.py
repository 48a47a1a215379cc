"""Delayed messages in the store: the queue in which each waits, and when it is due.

See docs/reference/protocol/retries-and-delays.md, "Delayed messages".
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from mqproof.impl.remoting.message import (
    DELAY,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    SYS_TRANSACTION_COMMIT,
    SYS_TRANSACTION_MASK,
    TAGS,
    Message,
    tags_code,
)

SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
"""The topic in which delayed messages wait: level n in queue n - 1."""

LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

_UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL: Final = re.compile(r"([0-9]{1,9})([smhd])")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}")


def parse_levels(text: str) -> tuple[int, ...]:
    """Parse messageDelayLevel into the delay of each level in milliseconds, level 1 first.

    Raises:
        ValueError: the text is invalid; the message describes the expected text.
    """
    found = [_LEVEL.fullmatch(word) for word in text.split()]
    levels = tuple(int(level[1]) * _UNIT_MS[level[2]] for level in found if level)
    if not levels or len(levels) < len(found):
        raise ValueError("delays like 1s 5m 2h 1d, separated by spaces")
    return levels


def show_levels(levels_ms: Sequence[int]) -> str:
    """Return the levels in the format of messageDelayLevel."""
    return " ".join(f"{delay_ms // 1000}s" for delay_ms in levels_ms)


def delay_level(message: Message) -> int:
    """Return the message's delay level; 0 or less is none. Raises ValueError when it is not a number."""
    text = message.properties.get(DELAY, "0")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{DELAY} is {text[:40]!r}, the number of a level expected")
    return int(text)


def scheduled(message: Message, levels_ms: Sequence[int]) -> Message:
    """Return the message as it is stored: with a delay level, in that level's queue.

    Such a message records its real topic and queue. A level above the last one is treated as the last one.

    Raises:
        ValueError: the delay level is not a number.
    """
    if DELAY not in message.properties or message.topic == SCHEDULE_TOPIC:
        return message
    level = min(delay_level(message), len(levels_ms))
    transaction = message.sys_flag & SYS_TRANSACTION_MASK
    if level <= 0 or transaction not in (0, SYS_TRANSACTION_COMMIT):
        return message
    properties = {
        **message.properties,
        DELAY: str(level),
        REAL_TOPIC: message.topic,
        REAL_QUEUE_ID: str(message.queue_id),
    }
    return replace(message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=properties)


def due(message: Message) -> Message:
    """Return the message as it is stored when it is due: in its real topic and queue, without a delay.

    Raises:
        ValueError: its real topic or queue is missing or invalid.
    """
    properties = dict(message.properties)
    properties.pop(DELAY, None)
    topic, queue_id = properties.get(REAL_TOPIC, ""), properties.get(REAL_QUEUE_ID, "")
    if not topic or not _NUMBER.fullmatch(queue_id) or int(queue_id) < 0:
        raise ValueError(f"{REAL_TOPIC} is {topic!r}, {REAL_QUEUE_ID} {queue_id[:40]!r}: a queue expected")
    return replace(message, topic=topic, queue_id=int(queue_id), properties=properties)


def unit_code(message: Message, store_timestamp_ms: int, levels_ms: Sequence[int]) -> int:
    """Return the third field of the queue entry.

    In the schedule topic it is the time when the message is due, elsewhere the code of its tags.
    """
    if message.topic == SCHEDULE_TOPIC:
        try:
            level = min(delay_level(message), len(levels_ms))
        except ValueError:
            level = 0  # it bypassed `scheduled` and is never delivered
        if level > 0:
            return store_timestamp_ms + levels_ms[level - 1]
    return tags_code(message.properties.get(TAGS))
