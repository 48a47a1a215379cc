"""What clients see of the messages of a broker: by queue offset, with a tag, and by commit offset."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from mqproof.conformance.hostile.attack import Names
from mqproof.conformance.hostile.attack_requests import pull_fields, send_fields
from mqproof.conformance.wire.frames import Frame, encode
from mqproof.conformance.wire.server_connection import Address, Connection, connected

SECONDS_MAX: Final = 20.0
_SEND, _PULL, _STATUS, _VIEW = 10, 11, 28, 33
_STATUS_OPAQUE: Final = 900
_FOUND, _BUSY, _NOT_FOUND, _RETRY, _MOVED, _NO_TOPIC = 0, 2, 19, 20, 21, 17
_READS_MAX: Final = 60
_POLL_S: Final = 0.05
_FRONT: Final = Struct(">iiiiiqq")
_BODY_AT: Final = 84
"""The place of the length of the body in a record whose hosts are IPv4 addresses."""
TAG: Final = "TagA"


@dataclass(frozen=True, slots=True)
class Record:
    """A record as a client received it, with the fields that a checksum or a rule of the format covers."""

    data: bytes
    queue_id: int
    queue_offset: int
    commit_offset: int
    body: bytes
    topic: str

    @property
    def covered(self) -> tuple[object, ...]:
        return self.queue_id, self.queue_offset, self.commit_offset, self.body, self.topic


@dataclass(frozen=True, slots=True)
class Stored:
    """A message that was answered with SEND_OK, as clients received it before the damage."""

    topic: str
    record: Record

    @property
    def offset(self) -> int:
        return self.record.queue_offset


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was sent after the damage."""

    topic: str
    offset: int
    """The queue offset of the answer."""
    body: bytes


@dataclass
class Seen:
    """What clients saw after one damage, over all starts."""

    truth: tuple[Stored, ...]
    got: list[tuple[Stored | None, bytes]] = field(default_factory=list)
    """Each delivered record, with the stored message of its place."""
    passed: set[tuple[str, int]] = field(default_factory=set)
    """Topic and offset of the stored messages that a consumer did not receive."""
    sent: list[Sent] = field(default_factory=list)
    received: dict[tuple[str, int], bytes] = field(default_factory=dict)
    """The bodies that consumers received from the offsets of `sent`."""
    refusal: str | None = None
    """The error of a start that was refused; None if the broker started."""
    report: str | None = ""
    """What the broker's log says since the damage; None if there is no log to read."""
    files: tuple[str, ...] = ()
    """The files of the store, relative to its directory."""


def send(connection: Connection, topic: str, body: bytes, opaque: int) -> int:
    """Send a message to queue 0; return its queue offset. Raises ValueError if it is refused."""
    fields = send_fields(Names(topic, "damage_producer"), properties=f"TAGS\x01{TAG}\x02")
    connection.write(encode(Frame(_SEND, opaque, fields=fields, body=body)))
    answer = connection.answer(opaque)
    if answer.code != _FOUND:
        raise ValueError(f"a send to {topic} returned {answer.code}: {answer.remark}")
    return int(answer.fields["queueOffset"])


def consume(connection: Connection, topic: str, *, tag: str = "*") -> dict[int, Record | bytes]:
    """Return what a consumer receives from queue 0 by queue offset, from offset 0 on.

    Bytes that are no record are returned as they are, with a negative number.
    """
    names = Names(topic, "damage_group")
    got: dict[int, Record | bytes] = {}
    offset = 0
    for opaque in range(1, _READS_MAX):
        fields = pull_fields(names, queueOffset=offset, subscription=tag)
        connection.write(encode(Frame(_PULL, opaque, fields=fields)))
        answer = connection.answer(opaque)
        if answer.code == _FOUND:
            for data in split(answer.body):
                found = parse(data)
                got[found.queue_offset if isinstance(found, Record) else -opaque] = found
        elif answer.code == _BUSY:
            time.sleep(_POLL_S)
            continue
        elif answer.code not in (_RETRY, _MOVED):
            return got
        after = int(answer.fields.get("nextBeginOffset", offset))
        if after <= offset:
            return got
        offset = after
    return got


def view(connection: Connection, commit_offset: int, opaque: int) -> bytes | None:
    """Return the bytes of the message that begins at a commit offset; None if the query fails."""
    connection.write(encode(Frame(_VIEW, opaque, fields={"offset": str(commit_offset)})))
    answer = connection.answer(opaque)
    return answer.body if answer.code == _FOUND else None


def wait_for(address: Address, wanted: Mapping[str, int]) -> dict[str, dict[int, Record]]:
    """Return the records of each topic, as soon as all are there. Raises TimeoutError."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        with connected(address, SECONDS_MAX) as connection:
            found = {
                topic: {
                    offset: each for offset, each in consume(connection, topic).items()
                    if isinstance(each, Record)
                }
                for topic in wanted
            }  # fmt: skip
        if all(len(found[topic]) == count for topic, count in wanted.items()):
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"consumers received { ({t: len(r) for t, r in found.items()}) }, sent: {wanted}"
            )
        time.sleep(_POLL_S)


def is_dispatched(connection: Connection, stalled_s: float) -> bool:
    """Wait until the broker has dispatched its log; return whether it has.

    False if it dispatches nothing for `stalled_s`, or does not say how far it is.
    """
    behind, deadline = None, time.monotonic() + stalled_s
    while True:
        connection.write(encode(Frame(_STATUS, _STATUS_OPAQUE)))
        answer = connection.answer(_STATUS_OPAQUE)
        found = re.search(rb'"dispatchBehindBytes"\s*:\s*"(-?\d+)"', answer.body)
        if found is None:
            return False
        if (now := int(found[1])) <= 0:
            return True
        if now != behind:
            behind, deadline = now, time.monotonic() + stalled_s
        elif time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)


def split(body: bytes) -> list[bytes]:
    """Return the records of a response body. A rest that is no record is returned as one."""
    found = []
    while body:
        size = int.from_bytes(body[:4], "big")
        if not _BODY_AT < size <= len(body):
            size = len(body)
        found.append(body[:size])
        body = body[size:]
    return found


def parse(data: bytes) -> Record | bytes:
    """Return the record in the bytes, or the bytes if they are none."""
    if len(data) < _BODY_AT + 4:
        return data
    size, _, _, queue_id, _, queue_offset, commit_offset = _FRONT.unpack_from(data)
    length = int.from_bytes(data[_BODY_AT : _BODY_AT + 4], "big")
    body_end = _BODY_AT + 4 + length
    if size != len(data) or not body_end < len(data):
        return data
    topic = data[body_end + 1 : body_end + 1 + data[body_end]].decode(errors="replace")
    return Record(data, queue_id, queue_offset, commit_offset, data[_BODY_AT + 4 : body_end], topic)
