"""Builds a message from the application's values, and the body of one request from several messages.

See docs/reference/protocol/messages.md, "Properties"; docs/reference/protocol/sending.md, "Batches".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from mqproof.impl.client.model import MessageError
from mqproof.impl.remoting import batch
from mqproof.impl.remoting.batch import Part
from mqproof.impl.remoting.message import (
    DELAY,
    KEYS,
    RETRY_PREFIX,
    TAGS,
    TIMER_DELAY_MS,
    TIMER_DELIVER_MS,
    TIMER_REQUESTS,
    WAIT,
    Message,
)
from mqproof.impl.remoting.topic_names import NOT_FOR_CLIENTS, name_problem

_SECONDS_MAX: Final = 10**12

# fmt: off
_RESERVED: Final = frozenset({
    "KEYS", "TAGS", "WAIT", "DELAY", "UNIQ_KEY", "INSTANCE_ID", "CLUSTER", "MSG_REGION", "TRACE_ON",
    "RETRY_TOPIC", "RECONSUME_TIME", "MAX_RECONSUME_TIMES", "ORIGIN_MESSAGE_ID", "CONSUME_START_TIME",
    "REAL_TOPIC", "REAL_QID", "MIN_OFFSET", "MAX_OFFSET", "TRAN_MSG", "PGROUP", "TRANSACTION_CHECK_TIMES",
    "TRAN_PREPARED_QUEUE_OFFSET", "CHECK_IMMUNITY_TIME_IN_SECONDS",
    "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "TIMER_OUT_MS", "TIMER_DUE_MS", "TIMER_ORIGINAL",
    "TIMER_ROLL_TIMES", "TIMER_DEL_UNIQKEY", "TIMER_POINT", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS",
    "BUYER_ID", "TRANSFER_FLAG", "CORRECTION_FLAG",
    "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "MSG_TYPE", "PUSH_REPLY_TIME", "ARRIVE_TIME",
})
# fmt: on
"""Property names reserved by the protocol."""


def new_message(
    topic: str,
    body: bytes | bytearray | memoryview,
    *,
    tag: str | None = None,
    keys: str | Iterable[str] = (),
    delay_level: int = 0,
    delay: timedelta | float | None = None,
    deliver_at: datetime | float | None = None,
    wait_for_flush: bool = True,
    properties: Mapping[str, str] | None = None,
) -> Message:
    """Return a message to send.

    Consumers select messages by `tag`, and tools look messages up by `keys`: one key, or several.
    `delay_level`, 1 to 18, delays the delivery by 1 s to 2 h (docs/reference/protocol/retries-and-delays.md,
    "Retries"). `delay`, in seconds, or `deliver_at`, an aware datetime or seconds since the epoch, delays it
    to the millisecond. Brokers before 5.0 ignore these two, and deliver at once. `properties` are the
    application's own. Without `wait_for_flush` the broker responds before the message is on disk, whatever
    its flush mode.

    Raises:
        MessageError: the body is not bytes, the topic is not allowed, a property name is reserved by the
            protocol, a name or value is blank or no text, a key is empty or contains a space, the tag
            could never be selected, or there are two delays or an invalid one.
    """
    found = dict(properties or {})
    for name, value in found.items():
        if name in _RESERVED:
            raise MessageError(f"property {name!r} is reserved by RocketMQ, another name expected")
        check_text_property(name, value)
        if not name.strip() or not value.strip():
            raise MessageError(f"property {name!r} is {value!r}: name and value must not be blank")
    listed = [keys] if isinstance(keys, str) else list(keys)
    for key in listed:
        if not isinstance(key, str) or not key or " " in key:
            raise MessageError(f"key {key!r}: some text without spaces expected")
    _check_tag(tag)
    if type(delay_level) is not int or delay_level < 0:
        raise MessageError(f"delay_level is {delay_level!r}, 0 (no delay) or a level from 1 expected")
    if tag:
        found[TAGS] = tag
    if listed:
        found[KEYS] = " ".join(listed)
    if sum((bool(delay_level), delay is not None, deliver_at is not None)) > 1:
        raise MessageError("more than one of delay_level, delay and deliver_at, at most one expected")
    if delay_level:
        found[DELAY] = str(delay_level)
    if delay is not None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        found[TIMER_DELAY_MS] = _milliseconds("delay", seconds, "timedelta")
    if deliver_at is not None:
        found[TIMER_DELIVER_MS] = _milliseconds("deliver_at", _since_epoch(deliver_at), "datetime")
    if not wait_for_flush:
        found[WAIT] = "false"
    whole = bytes(body) if isinstance(body, (bytearray, memoryview)) else body
    message = Message(topic, whole, found)
    check_destination(message)
    return message


def _since_epoch(at: datetime | float) -> float:
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise MessageError(f"deliver_at is {at}, a datetime with a time zone expected")
        return at.timestamp()
    return at


def _milliseconds(name: str, seconds: object, or_else: str) -> str:
    """Return the seconds as whole milliseconds, rounded up: a message is not delivered early."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _SECONDS_MAX:
        raise MessageError(f"{name} is {seconds!r}, seconds from 0 or a {or_else} expected")
    return str(math.ceil(round(seconds * 1000, 3)))


def check_destination(message: Message) -> None:
    """Check the types of topic and body, and that clients may send to the topic.

    Raises MessageError when they may not.
    """
    topic, body = message.topic, message.body
    if not isinstance(topic, str):
        raise MessageError(f"the topic is {topic!r}, a text expected")
    if problem := name_problem(topic):
        raise MessageError(problem)
    if topic in NOT_FOR_CLIENTS:
        raise MessageError(f"topic {topic} is used by brokers, and no client may send to it")
    if not isinstance(body, bytes):
        raise MessageError(
            f"the body is of type {type(body).__name__}, bytes expected; encode a text with text.encode()"
        )


def check_text_property(name: object, value: object) -> None:
    """Check that a property is a text with a text as its name. Raises MessageError when it is not."""
    if not isinstance(name, str) or not isinstance(value, str):
        expected = "name and value must be texts" + ("" if value is None else f", such as {str(value)!r}")
        raise MessageError(f"property {name!r} is {value!r}: {expected}")


def _check_tag(tag: object) -> None:
    if tag is None or tag == "":
        return
    if not isinstance(tag, str) or tag != tag.strip() or "||" in tag or tag == "*":
        raise MessageError(f"tag {tag!r}: one text without || and without spaces at its ends expected")


def is_delayed(message: Message) -> bool:
    """Return whether the message has a delay level, or asks for a time."""
    is_timed = not message.properties.keys().isdisjoint(TIMER_REQUESTS)
    return is_timed or message.properties.get(DELAY, "0") != "0"


def check_batch(messages: Sequence[Message]) -> None:
    """Check that these messages can be sent in one request. Raises MessageError when they cannot."""
    if not messages:
        raise MessageError("a batch without messages")
    first = messages[0]
    for message in messages:
        if message.topic != first.topic:
            raise MessageError(f"a batch of topics {first.topic} and {message.topic}: one topic expected")
        if message.properties.get(WAIT, "true") != first.properties.get(WAIT, "true"):
            raise MessageError("a batch in which some messages wait for the flush and others do not")
        if is_delayed(message):
            raise MessageError("a delayed message in a batch")
    if first.topic.startswith(RETRY_PREFIX):
        raise MessageError("a batch for a retry topic")


def encode_batch(messages: Sequence[Message]) -> bytes:
    """Return the body of a batch.

    The WAIT property is omitted: the request header has it, once for all messages.
    """
    return batch.encode_batch(
        Part(
            message.body,
            {name: value for name, value in message.properties.items() if name != WAIT},
            message.flag,
        )
        for message in messages
    )
