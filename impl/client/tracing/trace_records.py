"""The records of message trace, and their text. See docs/reference/protocol/event-log.md, "Message trace"."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
"""The topic of released clients."""

_FIELD: Final = "\x01"
_RECORD: Final = "\x02"
_ABSENT: Final = "null"
_TIME_MS_END: Final = 253_402_300_800_000
"""The end of the year 9999."""


class MessageType(IntEnum):
    NORMAL = 0
    HALF = 1
    DELAYED = 3


class Context(IntEnum):
    """How a call of a listener ended."""

    SUCCESS = 0
    EXCEPTION = 2
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Published:
    """`Pub`: a broker stored a message, or all messages of a batch."""

    time_ms: int
    region: str | None
    group: str
    topic: str
    message_ids: tuple[str, ...]
    tag: str | None
    keys: str | None
    store_host: str
    body_bytes: int
    took_ms: int
    message_type: int
    offset_ids: str
    ok: bool
    """Whether the status was SEND_OK."""


@dataclass(frozen=True, slots=True)
class CallBegan:
    """`SubBefore`: a listener is called with a message."""

    time_ms: int
    region: str | None
    group: str
    request_id: str
    message_id: str
    redeliveries: int
    keys: str | None


@dataclass(frozen=True, slots=True)
class CallEnded:
    """`SubAfter`: the call has ended."""

    request_id: str
    message_id: str
    took_ms: int
    ok: bool
    keys: str | None
    context: int
    time_ms: int
    group: str


TraceRecord = Published | CallBegan | CallEnded


def encode(record: TraceRecord) -> str:
    """Return the record with its end."""
    fields: tuple[str | int | None, ...]
    match record:
        case Published():
            fields = (
                "Pub", record.time_ms, record.region, record.group, record.topic,
                ",".join(record.message_ids), record.tag, record.keys, record.store_host, record.body_bytes,
                record.took_ms, int(record.message_type), record.offset_ids, record.ok,
            )  # fmt: skip
        case CallBegan():
            fields = (
                "SubBefore", record.time_ms, record.region, record.group, record.request_id,
                record.message_id, record.redeliveries, record.keys,
            )  # fmt: skip
        case CallEnded():
            fields = (
                "SubAfter", record.request_id, record.message_id, record.took_ms, record.ok, record.keys,
                int(record.context), record.time_ms, record.group,
            )  # fmt: skip
    return _FIELD.join(map(_text, fields)) + _RECORD


def _text(value: str | int | bool | None) -> str:
    if value is None or value == "":
        return _ABSENT
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def keys_of(records: Iterable[TraceRecord]) -> list[str]:
    """Return the keys by which a trace message with these records is found: message ids and keys."""
    found: dict[str, None] = {}
    for record in records:
        ids = record.message_ids if isinstance(record, Published) else (record.message_id,)
        found.update(dict.fromkeys((*ids, *(record.keys or "").split())))
    return list(found)


def decode(body: bytes) -> list[TraceRecord]:
    """Return the records of a trace message. Other types, and records that cannot be read, are left out."""
    text = body.decode("utf-8", errors="replace")
    found = (_read(part.split(_FIELD)) for part in text.split(_RECORD) if part.strip())
    return [record for record in found if record is not None]


def _read(fields: Sequence[str]) -> TraceRecord | None:
    kind, count = fields[0].strip(), len(fields)
    try:
        if kind == "Pub" and count >= 13:
            return _published(fields)
        if kind == "SubBefore" and count >= 8:
            return CallBegan(
                _time(fields[1]), _or_none(fields[2]), fields[3], fields[4], fields[5], int(fields[6]),
                _or_none(fields[7]),
            )  # fmt: skip
        if kind == "SubAfter" and count >= 6:
            ok = fields[4] == "true"
            context = int(fields[6]) if count > 6 else (Context.SUCCESS if ok else Context.FAILED)
            time_ms, group = (_time(fields[7]), fields[8]) if count > 8 else (0, "")
            return CallEnded(
                fields[1], fields[2], int(fields[3]), ok, _or_none(fields[5]), context, time_ms, group
            )
    except ValueError:  # not a number
        pass
    return None


def _published(fields: Sequence[str]) -> Published:
    # Old releases write no offset id, and the result in its place.
    offset_ids, ok = ("", fields[12]) if len(fields) == 13 else (fields[12], fields[13])
    return Published(
        _time(fields[1]), _or_none(fields[2]), fields[3], fields[4], tuple(fields[5].split(",")),
        _or_none(fields[6]), _or_none(fields[7]), fields[8], int(fields[9]), int(fields[10]),
        int(fields[11]), offset_ids, ok == "true",
    )  # fmt: skip


def _time(text: str) -> int:
    """Return a time in milliseconds. Raises ValueError outside the years 1970 to 9999."""
    time_ms = int(text)
    if not 0 <= time_ms < _TIME_MS_END:
        raise ValueError(f"time {text}")
    return time_ms


def _or_none(text: str) -> str | None:
    return None if text in (_ABSENT, "") else text
