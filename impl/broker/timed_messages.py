"""Messages that wait for a time, and what the broker makes of them: finals, copies, recalls, points.

See docs/reference/protocol/timers.md. The properties are those of 5.x, except DUE_MS, ORIGINAL and POINT.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from mqproof.impl.remoting.message import (
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TIMER_DELAY_S,
    TIMER_DELIVER_MS,
    TIMER_REQUESTS,
    UNIQUE_KEY,
    Address,
    Message,
    StoredMessage,
)
from mqproof.impl.remoting.recall_handle import RecallHandle
from mqproof.impl.store.files.record import PROPERTIES_BYTES_MAX

TIMER_TOPIC: Final = "rmq_sys_wheel_timer"
"""Queue 0 has the waiting messages and the recalls."""
POINT_QUEUE: Final = 1
"""The queue of the timer topic that has the points; only ours."""

OUT_MS: Final = "TIMER_OUT_MS"
"""The last full second before the message is due."""
ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
RECALLED_KEY: Final = "TIMER_DEL_UNIQKEY"
"""In a recall: the unique key of the message that is withdrawn."""
DUE_MS: Final = "TIMER_DUE_MS"
"""Ours: when the message is due, to the millisecond."""
ORIGINAL: Final = "TIMER_ORIGINAL"
"""Ours, in a copy: the offset of the original in the timer queue."""
POINT: Final = "TIMER_POINT"
"""Ours, in a point: `first read_end due_ms scan_from`."""

_OWN: Final = (OUT_MS, ROLL_TIMES, DUE_MS, ORIGINAL, POINT)
_COPY_BYTES: Final = len(ORIGINAL) + 19 + len(ROLL_TIMES) + 10 + 4
"""The most bytes that the properties of a copy have more than those of its original."""
_RECALL_TAG: Final = "_RECALL_TAG_"
_PRECISION_MS: Final = 1000
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_OFFSET: Final = re.compile(r"[0-9]{1,18}")


class Point(NamedTuple):
    """Which messages are done. The broker stores points as records of its log."""

    first: int = 0
    """The place in the timer queue below which all messages are done."""
    read_end: int = 0
    """The end of the part of the timer queue that the point covers."""
    due_ms: int = 0
    """The messages of that part that were due by this time are done."""
    scan_from: int = 0
    """The commit offset from which the log may have finals that the point does not cover."""


def asked(properties: Mapping[str, str]) -> str | None:
    """Return the property by which a producer asks for a time; None if there is none."""
    for name in TIMER_REQUESTS:  # a generator would take twice as long, and each message comes here
        if name in properties:
            return name
    return None


def asked_due_ms(properties: Mapping[str, str], name: str, now_ms: int) -> int:
    """Return when the message is due; not after `now_ms` means at once.

    Raises:
        ValueError: the property is not a number.
    """
    text = properties[name]
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{name} is {text[:40]!r}, a number expected")
    number = int(text)
    if name == TIMER_DELIVER_MS:
        return number
    return now_ms + number * (1000 if name == TIMER_DELAY_S else 1)


def waiting(message: Message, due_ms: int) -> Message:
    """Return the message as it is stored while it waits, with its real queue noted."""
    out_ms = (due_ms - 1) // _PRECISION_MS * _PRECISION_MS
    properties = {name: value for name, value in message.properties.items() if name not in _OWN}
    properties |= {
        OUT_MS: str(out_ms),
        DUE_MS: str(due_ms),
        REAL_TOPIC: message.topic,
        REAL_QUEUE_ID: str(message.queue_id),
    }
    return replace(message, topic=TIMER_TOPIC, queue_id=0, properties=properties)


def has_room_for_copies(message: Message) -> bool:
    """Return whether the copies of a waiting message can be stored, also when its log segment must go."""
    size = sum(len(name.encode()) + len(value.encode()) + 2 for name, value in message.properties.items())
    return size + _COPY_BYTES <= PROPERTIES_BYTES_MAX


def due_ms_of(message: Message) -> int | None:
    """Return when a waiting message is due; None if it has no valid time.

    Released brokers note only the second before, and deliver at the end of the next one.
    """
    text, out = message.properties.get(DUE_MS, ""), message.properties.get(OUT_MS, "")
    if _OFFSET.fullmatch(text):
        return int(text)
    return int(out) + _PRECISION_MS if _OFFSET.fullmatch(out) else None


def real_queue(message: Message) -> tuple[str, int]:
    """Return the topic and the queue that the message is for.

    Raises:
        ValueError: a property is missing or invalid.
    """
    topic, queue_id = message.properties.get(REAL_TOPIC, ""), message.properties.get(REAL_QUEUE_ID, "")
    if not topic or not _OFFSET.fullmatch(queue_id) or int(queue_id) > 2**31 - 1:
        raise ValueError(f"{REAL_TOPIC} is {topic!r}, {REAL_QUEUE_ID} {queue_id[:40]!r}: a queue expected")
    return topic, int(queue_id)


def key_of(message: Message) -> tuple[str, str] | None:
    """Return the topic and the unique key, by which a recall names the message; None if it has no key."""
    key = message.properties.get(UNIQUE_KEY)
    return (message.properties.get(REAL_TOPIC, ""), key) if key else None


def original_of(stored: StoredMessage) -> int:
    """Return the offset of the original in the timer queue; it identifies the message."""
    text = stored.message.properties.get(ORIGINAL, "")
    return int(text) if _OFFSET.fullmatch(text) else stored.queue_offset


def final(stored: StoredMessage, store_host: Address) -> Message:
    """Return the message for its consumers. It keeps the times, but does not ask for a time again.

    Its prepared transaction offset is one more than the commit offset of the waiting message; no client can
    set it. Raises ValueError as `real_queue`.
    """
    message = stored.message
    topic, queue_id = real_queue(message)
    left_out = (*TIMER_REQUESTS, REAL_TOPIC, REAL_QUEUE_ID, ORIGINAL, ROLL_TIMES)
    return replace(
        message,
        topic=topic,
        queue_id=queue_id,
        store_host=store_host,
        prepared_transaction_offset=stored.commit_offset + 1,
        properties={name: value for name, value in message.properties.items() if name not in left_out},
    )


def waiting_offset(message: Message) -> int | None:
    """Return the commit offset of the waiting message of which this may be the final; None if it is none."""
    is_final = OUT_MS in message.properties and message.topic != TIMER_TOPIC
    return message.prepared_transaction_offset - 1 if is_final else None


def is_final_of(message: Message, waits: Message) -> bool:
    """Return whether this is the final that the broker made of a waiting message."""
    names = waits.properties.get(REAL_TOPIC), waits.properties.get(REAL_QUEUE_ID)
    keys = message.properties.get(UNIQUE_KEY), waits.properties.get(UNIQUE_KEY)
    return names == (message.topic, str(message.queue_id)) and keys[0] == keys[1]


def rolled(stored: StoredMessage, store_host: Address) -> Message:
    """Return the copy that is appended before the record of a waiting message is deleted."""
    times = stored.message.properties.get(ROLL_TIMES, "")
    added = {
        ORIGINAL: str(original_of(stored)),
        ROLL_TIMES: str(int(times) + 1 if _OFFSET.fullmatch(times) else 1),
    }
    return replace(stored.message, store_host=store_host, properties={**stored.message.properties, **added})


def recall(handle: RecallHandle, group: str | None, now_ms: int, host: Address) -> Message:
    """Return the record that withdraws a message, as 5.x writes it."""
    out_ms = (handle.due_ms - 1) // _PRECISION_MS * _PRECISION_MS
    properties = {
        RECALLED_KEY: handle.key,
        UNIQUE_KEY: handle.key,
        REAL_TOPIC: handle.topic,
        REAL_QUEUE_ID: "0",
        TAGS: _RECALL_TAG,
        TIMER_DELIVER_MS: str(handle.due_ms),
        OUT_MS: str(out_ms),
    }
    if group:
        properties["PGROUP"] = group
    return Message(TIMER_TOPIC, b"0", properties, born_timestamp_ms=now_ms, born_host=host, store_host=host)


def recalled_by(message: Message) -> tuple[str, str] | None:
    """Return the topic and key that a record of the timer queue withdraws; None if it is no recall."""
    key = message.properties.get(RECALLED_KEY)
    return None if key is None else (message.properties.get(REAL_TOPIC, ""), key)


def point(point: Point, now_ms: int, host: Address) -> Message:
    """Return the record of a point."""
    properties = {POINT: " ".join(map(str, point))}
    return Message(
        TIMER_TOPIC, b"0", properties, POINT_QUEUE, born_timestamp_ms=now_ms, born_host=host, store_host=host
    )


def point_of(message: Message) -> Point | None:
    """Return what a point says; None if the record is not a valid point."""
    words = message.properties.get(POINT, "").split(" ")
    if len(words) != len(Point._fields) or not all(map(_OFFSET.fullmatch, words)):
        return None
    return Point(*map(int, words))


def handle_of(message: Message, broker: str) -> str | None:
    """Return the handle with which a waiting message can be recalled; None for other messages."""
    if message.topic != TIMER_TOPIC:
        return None
    due_ms, key = due_ms_of(message), key_of(message)
    return None if due_ms is None or key is None else RecallHandle(key[0], broker, due_ms, key[1]).encode()
