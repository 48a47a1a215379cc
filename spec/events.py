"""The event log: one vocabulary for the events that brokers, clients and test harnesses record.

An event log is NDJSON (one event a line) or Parquet (one event a row). The trace of our brokers and clients,
TLC's trace validation and the audit all use this format and no other. docs/reference/event-log.md describes
it for users. Histories of clients have a format of their own (docs/reference/history-format.md).
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

SCHEMA_VERSION: Final = 2
"""The version written into `attrs["schema"]` of a node's first event. A reader refuses a newer version.

Version 2 adds the column `tags` and the kinds subscribe, unsubscribe, admin, recall and gap. Logs of version
1 are valid.
"""


class EventError(ValueError):
    """A row is not an event. The message names the file, the line and the field."""


class Kind(StrEnum):
    """The kind of event. The comment names the node that reports it."""

    SEND = "send"  # client: a send attempt begins
    SEND_ACK = "send_ack"  # client and broker: answered with one of the four stored statuses
    SEND_FAIL = "send_fail"  # client: refused (status = response name) or unknown (status = "unknown")
    APPEND = "append"  # broker: in the page cache, commit_offset = first byte, attrs.size = bytes
    FLUSH = "flush"  # broker: durable up to commit_offset (exclusive); attrs.file = log | queues | checkpoint
    DISPATCH = "dispatch"  # broker: the record at commit_offset has its consume-queue entry
    HA_TRANSFER = "ha_transfer"  # master: sent on a slave's connection up to commit_offset (exclusive)
    HA_ACK = "ha_ack"  # master: a slave reported that its log reaches commit_offset (exclusive)
    DELIVER = "deliver"  # client: delivered to the application
    CONSUME_OK = "consume_ok"
    CONSUME_FAIL = "consume_fail"
    OFFSET_COMMIT = "offset_commit"  # client: acknowledged by the broker; broker: stored; queue_offset = next
    REBALANCE = "rebalance"
    SUBSCRIBE = "subscribe"  # client and broker: a group's new or changed subscription; attrs.expression
    UNSUBSCRIBE = "unsubscribe"
    RETRY = "retry"
    DEAD_LETTER = "dead_letter"
    HALF = "half"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    CHECK = "check"
    ADMIN = "admin"  # broker: carried out an administrative request; attrs.action
    RECALL = "recall"
    REGISTER = "register"
    HEARTBEAT = "heartbeat"
    UNREGISTER = "unregister"
    EXPIRE = "expire"
    ROUTE = "route"
    VOTE = "vote"
    BECOME_LEADER = "become_leader"
    STEP_DOWN = "step_down"
    RAFT_APPEND = "raft_append"
    RAFT_COMMIT = "raft_commit"
    GAP = "gap"  # any node: rows between attrs.since and ts are missing; attrs.dropped = how many, if known
    CRASH = "crash"  # harness, or the broker that finds its abort file; attrs.kind = process | os | power
    RECOVER = "recover"  # broker: serves again, commit_offset = end of the recovered log
    TRUNCATE = "truncate"  # broker: the log was cut at commit_offset


NUMBER_MAX: Final = (1 << 62) - 1
"""The limit of numbers in both directions: readers can add or subtract any two of them in 64 bits."""

Number = Annotated[int, msgspec.Meta(ge=-NUMBER_MAX, le=NUMBER_MAX)]


class Event(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=False):
    """One row. `None` means "does not apply" or "was not recorded", never zero."""

    ts: Number
    """The node's wall clock, in microseconds since the epoch."""
    seq: Number
    """A number per node, from 0 without gaps, that continues across restarts of the node."""
    node: str
    kind: Kind
    msg_id: str | None = None
    """The producer's unique key: the same on every retry of a send."""
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: Number | None = None
    commit_offset: Number | None = None
    """Byte offset in the commit log."""
    group: str | None = None
    client: str | None = None
    term: Number | None = None
    status: str | None = None
    attempt: int | None = None
    keys: str | None = None
    tags: str | None = None
    """The property TAGS of the message; empty if it has none. None: the writer does not record tags."""
    born_ts: Number | None = None
    """When the producer created the message, in microseconds on its own clock."""
    attrs: dict[str, str] = {}


COLUMNS: Final[dict[str, str]] = {
    "ts": "int64",
    "seq": "int64",
    "node": "string",
    "kind": "string",
    "msg_id": "string",
    "topic": "string",
    "queue_id": "int32",
    "queue_offset": "int64",
    "commit_offset": "int64",
    "group": "string",
    "client": "string",
    "term": "int64",
    "status": "string",
    "attempt": "int32",
    "keys": "string",
    "tags": "string",
    "born_ts": "int64",
    "attrs": "map<string,string>",
}
"""Maps column names to Arrow types, in the order of a Parquet event log."""

NUMBERS: Final = tuple(name for name, kind in COLUMNS.items() if kind == "int64")

REQUIRED: Final = ("ts", "seq", "node", "kind")
"""The columns that every event has; a log without one of them is refused."""

_SCHEMAS: Final = frozenset(map(str, range(SCHEMA_VERSION + 1)))

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """Return one NDJSON line, with its newline. Fields that are None are left out."""
    return _encoder.encode(event) + b"\n"


def decode(line: bytes, where: str) -> Event:
    """Return the event of one NDJSON line; `where` ("FILE:LINE") is used in the error message.

    Raises:
        EventError: not JSON, a required field is missing, a type is wrong, or the schema is newer than ours.
    """
    try:
        event = _decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # ValueError: broken UTF-8
        raise EventError(f"{where}: not an event: {error}") from None
    schema = event.attrs.get("schema", str(SCHEMA_VERSION))
    if schema not in _SCHEMAS:
        raise EventError(f"{where}: event schema {schema[:20]!r}, at most {SCHEMA_VERSION} expected")
    return event


def read_log(path: Path) -> Iterator[Event]:
    """Yield the events of one NDJSON file, in file order.

    A last line without its newline is a torn write of a killed node and is left out.

    Raises:
        EventError: as `decode`. OSError: the file cannot be read.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            yield decode(line, f"{path}:{number}")


def as_row(event: Event) -> dict[str, Any]:
    """Return the event as a row with every column of COLUMNS present."""
    return {name: getattr(event, name) for name in COLUMNS}
