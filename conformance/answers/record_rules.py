"""Rules about the records in answers: each record is the message that was sent, with what brokers add."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.answers.known import UNIQUE_KEY, Known, Sent
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.stored_record import (
    BORN_V6,
    COMMITTED,
    STORE_V6,
    TRANSACTION_MASK,
    StoredRecord,
    offset_message_id,
)
from mqproof.conformance.wire import chapters

_ADDED: Final = frozenset({"CLUSTER", "MSG_REGION", "TRACE_ON"})
"""The properties that brokers add to every message."""
_WAIT: Final = "WAIT"
_OF_THE_SYSTEM: Final = _ADDED | frozenset(
    (
        *(_WAIT, "DELAY", "REAL_TOPIC", "REAL_QID"),
        *("RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "RECONSUME_TIME", "MAX_RECONSUME_TIMES"),
        *("DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID"),
        *("TRAN_MSG", "PGROUP", "TRAN_PREPARED_QUEUE_OFFSET", "TRANSACTION_CHECK_TIMES"),
        *("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "TIMER_OUT_MS", "TIMER_DUE_MS"),
        *("TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", "TIMER_ORIGINAL", "TIMER_DELAY_LEVEL"),
        *("TIMER_DEL_UNIQKEY", "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET", "__CRC32#"),
    )
)
"""The properties by which brokers keep the state of a message; all others are the producer's."""
_OF_BROKERS: Final = BORN_V6 | STORE_V6 | 2
"""The bits of the system flag that a broker sets: kinds of addresses, and several tags."""
_SYSTEM_TOPICS: Final = ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_", "rmq_sys_", "TRANS_CHECK_MAX_TIME_TOPIC")

ANY_BROKER: Final = "*"
"""Stands for each broker of a group that elects its master: any of them stores messages."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The circumstances of an answer with records."""

    server: str
    """The broker that stored them, or ANY_BROKER."""
    topic: str
    now_ms: int


def record_is_true(known: Known, looked: Looked, record: StoredRecord) -> Iterator[Wrong]:
    """Compare one record with its place, with earlier answers, and with the message that was sent."""
    name = f"the record at commit offset {record.commit_offset}"
    if record.topic != looked.topic:
        yield Wrong(chapters.LOG_RECORD, f"{name} has topic {record.topic}, expected {looked.topic}")
    if looked.server not in (ANY_BROKER, record.store_host):
        yield Wrong(chapters.SEND_REQUESTS, f"{name} has store host {record.store_host}, not {looked.server}")
    if known.seen.setdefault(record.commit_offset, record.raw) != record.raw:
        yield Wrong(chapters.COMMIT_LOG, f"{name} has changed since an earlier answer")
    before, after = known.times_around(record)
    if not before <= record.store_ms <= after:
        text = f"{name} was stored at {record.store_ms}, the records around it at {before} and {after}"
        yield Wrong(chapters.COMMIT_LOG, text)
    if known.is_exact and record.store_ms > looked.now_ms:
        yield Wrong(chapters.COMMIT_LOG, f"{name} was stored at {record.store_ms}, after {looked.now_ms}")
    is_of_the_system = record.topic.startswith(_SYSTEM_TOPICS)
    if record.system_flag & TRANSACTION_MASK not in (0, COMMITTED) and not is_of_the_system:
        yield Wrong(chapters.HALF_MESSAGES, f"{name} has system flag {record.system_flag}")
    for wrong in _is_as_sent(known, record):
        yield Wrong(wrong.rule, f"{name}: {wrong.text}")


def _is_as_sent(known: Known, record: StoredRecord) -> Iterator[Wrong]:
    if direct := known.stored.get(record.commit_offset):
        yield from _content(known, record, direct)
        yield from _direct(known, record, direct)
        return
    candidates = known.by_key.get(record.properties.get(UNIQUE_KEY, ""), ())
    found = [[*_content(known, record, sent), *_later(known, record, sent)] for sent in candidates]
    if found and all(found):
        yield from min(found, key=len)


def _content(known: Known, record: StoredRecord, sent: Sent) -> Iterator[Wrong]:
    """What never changes, however often a broker stores the message again."""
    values = (
        ("body", sent.body, record.body),
        ("flag", sent.flag, record.flag),
        ("born time", sent.born_ms, record.born_ms),
        *([("born host", sent.born_host, record.born_host)] if known.is_exact else []),
        ("properties of the producer", _own(sent.properties), _own(record.properties)),
    )
    yield from _compared(chapters.SEND_REQUESTS, values)


def _direct(known: Known, record: StoredRecord, sent: Sent) -> Iterator[Wrong]:
    """What an ordinary message has besides."""
    mine = {name: value for name, value in sent.properties.items() if name != _WAIT}
    stored = {name: value for name, value in record.properties.items() if name not in _ADDED or name in mine}
    if not known.is_exact and stored.get(_WAIT) == sent.properties.get(_WAIT):
        stored.pop(_WAIT, None)  # released brokers of 5.x keep it
    values = (
        ("queue id", sent.queue_id, record.queue_id),
        ("queue offset", sent.queue_offset, record.queue_offset),
        ("reconsume times", sent.reconsume_times, record.reconsume_times),
        ("system flag", sent.system_flag & ~_OF_BROKERS, record.system_flag & ~_OF_BROKERS),
        ("prepared offset", 0, record.prepared_offset),
        ("properties", mine, stored),
    )
    yield from _compared(chapters.SEND_REQUESTS, values)
    missing = sorted((_ADDED if known.is_exact else {"CLUSTER"}) - record.properties.keys())
    if missing:
        yield Wrong(chapters.SEND_REQUESTS, f"the property {missing[0]} is missing")
    if known.is_exact and not sent.asked_ms <= record.store_ms <= sent.answered_ms:
        text = f"stored at {record.store_ms}, sent at {sent.asked_ms}, answered at {sent.answered_ms}"
        yield Wrong(chapters.COMMIT_LOG, text)


def _later(known: Known, record: StoredRecord, sent: Sent) -> Iterator[Wrong]:
    """What a message has that was delayed, committed, or sent back."""
    if record.topic == sent.topic and sent.queue_id >= 0 and record.queue_id != sent.queue_id:
        text = f"queue id {record.queue_id}, sent to {sent.queue_id}"
        yield Wrong(chapters.DELAYED_MESSAGES, text)
    if record.system_flag & TRANSACTION_MASK == COMMITTED:
        halves = known.halves.get(record.properties.get(UNIQUE_KEY, ""))
        if halves and record.prepared_offset not in halves:
            text = f"prepared offset {record.prepared_offset}, the half message is at {sorted(halves)}"
            yield Wrong(chapters.TRANSACTIONS, text)
    if record.topic.startswith("%RETRY%") and "RETRY_TOPIC" in record.properties:
        values = (
            ("RETRY_TOPIC", sent.topic, record.properties["RETRY_TOPIC"]),
            ("whether the first delivery is named", True, _names_a_delivery(known, record, sent)),
            ("whether it was sent back", True, record.reconsume_times > sent.reconsume_times),
        )
        yield from _compared(chapters.RETRIES, values)


def _names_a_delivery(known: Known, record: StoredRecord, sent: Sent) -> bool:
    """Return whether ORIGIN_MESSAGE_ID is the place of a record that is or may be the message."""
    origin = record.properties.get("ORIGIN_MESSAGE_ID", "")
    try:
        offset = int(origin[-16:], 16)
    except ValueError:
        return False
    direct = known.stored.get(offset)
    is_possible = direct is None or direct.properties.get(UNIQUE_KEY) == sent.properties.get(UNIQUE_KEY)
    return is_possible and origin == offset_message_id(record.store_host, offset)


def _own(properties: object) -> dict[str, str]:
    assert isinstance(properties, dict)
    return {name: value for name, value in properties.items() if name not in _OF_THE_SYSTEM}


def _compared(rule: str, values: tuple[tuple[str, object, object], ...]) -> Iterator[Wrong]:
    for name, expected, observed in values:
        if expected != observed:
            yield Wrong(rule, f"{name} {observed!r}, expected {expected!r}")
