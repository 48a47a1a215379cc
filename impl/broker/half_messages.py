"""Half messages, and the messages that the broker makes of them: copies, final messages, operations.

See docs/reference/protocol/transactions.md, "Half messages", "Operations" and "Checks".
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from mqproof.impl.remoting.message import (
    DELAY,
    NAME_END,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    SYS_TRANSACTION_COMMIT,
    SYS_TRANSACTION_MASK,
    TAGS,
    UNIQUE_KEY,
    VALUE_END,
    Address,
    Message,
    StoredMessage,
)
from mqproof.impl.store.files.record import PROPERTIES_BYTES_MAX

HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OPERATION_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARD_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
PROGRESS_GROUP: Final = "CID_RMQ_SYS_TRANS"
"""The group whose consumer offsets are the progress in the half and operation queues."""

HALF_MARK: Final = "TRAN_MSG"
PRODUCER_GROUP: Final = "PGROUP"
CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
ORIGINAL: Final = "TRAN_PREPARED_QUEUE_OFFSET"
"""In a copy: the offset of the original in the half queue."""
IMMUNITY_S: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
SCAN_FROM: Final = "SCAN_FROM"
"""In an operation: the commit offset from which the log may have ends that no operation shows."""

OPERATION_BYTES_MAX: Final = 4096
"""The largest body of one operation."""

_OPERATION_TAG: Final = "d"
_OFFSET: Final = re.compile(r"[0-9]{1,18}")
_COPY_BYTES: Final = len(CHECK_TIMES) + 10 + len(ORIGINAL) + 19 + 4
"""The most bytes that the properties of a copy have more than those of its original."""
_INTERNAL: Final = (HALF_MARK, REAL_TOPIC, REAL_QUEUE_ID, CHECK_TIMES, ORIGINAL)


def is_half(properties: Mapping[str, str]) -> bool:
    """Return whether a producer sends this as a half message."""
    return properties.get(HALF_MARK, "").lower() == "true"


def half(message: Message) -> Message:
    """Return a producer's half message as it is stored: in the half queue, with its real queue noted.

    A client cannot make it look like a copy of another half message.
    """
    left_out = (CHECK_TIMES, ORIGINAL, DELAY)
    properties = {name: value for name, value in message.properties.items() if name not in left_out}
    properties[REAL_TOPIC], properties[REAL_QUEUE_ID] = message.topic, str(message.queue_id)
    sys_flag = message.sys_flag & ~SYS_TRANSACTION_MASK
    return replace(message, topic=HALF_TOPIC, queue_id=0, sys_flag=sys_flag, properties=properties)


def has_room_for_copies(message: Message) -> bool:
    """Return whether the copies of a half message can be stored. Otherwise no check could ever end it."""
    text = VALUE_END.join(map(NAME_END.join, message.properties.items()))
    return len(text.encode()) + len(VALUE_END) + _COPY_BYTES <= PROPERTIES_BYTES_MAX


def key_of(message: Message) -> str | None:
    """Return the unique key, which is the id of the transaction."""
    return message.properties.get(UNIQUE_KEY)


def original_of(stored: StoredMessage) -> int:
    """Return the offset of the original in the half queue; it identifies the transaction."""
    text = stored.message.properties.get(ORIGINAL, "")
    return int(text) if _OFFSET.fullmatch(text) else stored.queue_offset


def check_times(message: Message) -> int:
    """Return how often the transaction was checked before this copy was written, and by it."""
    text = message.properties.get(CHECK_TIMES, "")
    return int(text) if _OFFSET.fullmatch(text) else 0


def immunity_ms(message: Message) -> int | None:
    """Return the message's own immunity time, or None if it has none that is valid."""
    text = message.properties.get(IMMUNITY_S, "")
    return int(text) * 1000 if _OFFSET.fullmatch(text) else None


def real_queue(message: Message) -> tuple[str, int]:
    """Return the topic and the queue that the message is for.

    Raises:
        ValueError: a property is missing or invalid.
    """
    topic, queue_id = message.properties.get(REAL_TOPIC, ""), message.properties.get(REAL_QUEUE_ID, "")
    if not topic or not _OFFSET.fullmatch(queue_id) or int(queue_id) > 2**31 - 1:
        raise ValueError(f"{REAL_TOPIC} is {topic!r}, {REAL_QUEUE_ID} {queue_id[:40]!r}: a queue expected")
    return topic, int(queue_id)


def final(stored: StoredMessage, store_host: Address) -> Message:
    """Return the message that a commit makes visible. Raises ValueError as `real_queue`."""
    message = stored.message
    topic, queue_id = real_queue(message)
    return replace(
        message,
        topic=topic,
        queue_id=queue_id,
        store_host=store_host,
        sys_flag=message.sys_flag & ~SYS_TRANSACTION_MASK | SYS_TRANSACTION_COMMIT,
        prepared_transaction_offset=stored.commit_offset,
        properties={name: value for name, value in message.properties.items() if name not in _INTERNAL},
    )


def is_final_of(message: Message, half: Message) -> bool:
    """Return whether the commit of `half` stored this message.

    The flag of a commit alone does not show it: a message that a consumer sends back keeps that flag.
    """
    names = half.properties.get(REAL_TOPIC), half.properties.get(REAL_QUEUE_ID)
    return names == (message.topic, str(message.queue_id)) and key_of(message) == key_of(half)


def checked_copy(stored: StoredMessage, store_host: Address) -> Message:
    """Return the copy that is appended before the next check."""
    times = {CHECK_TIMES: str(check_times(stored.message) + 1), ORIGINAL: str(original_of(stored))}
    return replace(stored.message, store_host=store_host, properties={**stored.message.properties, **times})


def discarded(stored: StoredMessage, store_host: Address) -> Message:
    """Return the message that is kept of a half message that is not checked any more."""
    original = {ORIGINAL: str(original_of(stored))}
    properties = {**stored.message.properties, **original}
    return replace(
        stored.message, topic=DISCARD_TOPIC, queue_id=0, store_host=store_host, properties=properties
    )


def resumed(message: Message, store_host: Address) -> Message:
    """Return a discarded message as a half message that was not checked yet."""
    left_out = (CHECK_TIMES, ORIGINAL)
    properties = {name: value for name, value in message.properties.items() if name not in left_out}
    return replace(message, topic=HALF_TOPIC, queue_id=0, store_host=store_host, properties=properties)


def for_producer(message: Message) -> Message:
    """Return the half message as a check shows it: in its real queue. Raises ValueError as `real_queue`."""
    topic, queue_id = real_queue(message)
    return replace(message, topic=topic, queue_id=queue_id)


def operation(offsets: Iterable[int], scan_from: int, born_ms: int, host: Address) -> Message:
    """Return the operation that marks these places of the half queue as done."""
    return Message(
        topic=OPERATION_TOPIC,
        body=",".join(map(str, offsets)).encode(),
        properties={TAGS: _OPERATION_TAG, SCAN_FROM: str(scan_from)},
        born_timestamp_ms=born_ms,
        born_host=host,
        store_host=host,
    )


def done_by(message: Message) -> list[int]:
    """Return the places of the half queue that an operation marks as done; invalid ones are left out."""
    texts = (
        message.body.decode(errors="replace").split(",")
        if message.properties.get(TAGS) == _OPERATION_TAG
        else []
    )
    return [int(text) for text in texts if _OFFSET.fullmatch(text)]


def scan_from(message: Message) -> int | None:
    """Return from where the log may have ends that no operation shows; None if a release wrote it."""
    text = message.properties.get(SCAN_FROM, "")
    return int(text) if _OFFSET.fullmatch(text) else None
