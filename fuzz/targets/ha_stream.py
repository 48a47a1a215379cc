"""SlaveIsPrefix, KeepsWholeRecords, ReportsWhatItHas, AcknowledgesWhatIsSaid, ChunkingIrrelevant: they hold
for any bytes that a master sends a slave, or a slave a master, on a replication connection.

An input selects the receiver and its log. It then contains either the bytes to receive, or a program of
frames that the right master sends, some of them at wrong positions.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cache
from itertools import chain, islice, pairwise
from typing import ClassVar, Final

from mqproof.fuzz.target import Finding, unobserved
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import LogCheck
from mqproof.impl.replication.feed import Feed
from mqproof.impl.replication.follow import DivergedError, Follow
from mqproof.impl.replication.stream import StreamError, Transfer, write_position, write_transfer
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.files import record

SEGMENT_BYTES: Final = 1024
RECORD_BYTES_MAX: Final = 600
RECORDS: Final = 12

TO_SLAVE, TO_SLAVE_BY_PROGRAM, TO_MASTER = range(3)
DIVERGED: Final = 0x80
"""A bit of the second byte: the slave's last record differs from its master's."""


class Step(IntEnum):
    """A step of a program; the byte after it is its number."""

    SEND = 0
    BEAT = 1
    SEND_ELSEWHERE = 2
    REPEAT = 3
    RECONNECT = 4
    SPOIL = 5


_PROGRAMS: Final = (
    (
        (Step.SEND, 9),
        (Step.RECONNECT, 0),
        (Step.BEAT, 0),
        (Step.SEND, 255),
        (Step.REPEAT, 0),
        (Step.SEND, 255),
    ),
    ((Step.SEND, 20), (Step.SEND, 255), (Step.SEND_ELSEWHERE, 129)),
    ((Step.SEND_ELSEWHERE, 127), (Step.SEND, 255)),
    *(((Step.SPOIL, at), (Step.SEND, 60)) for at in (3, 35, 95)),  # a record's size, place and body
)
"""Programs to begin with."""

_BORN_MS: Final = 1_700_000_000_000
_STEPS_MAX: Final = 32
_BYTEWISE_MAX: Final = 64
"""Streams of at most this size are compared byte by byte."""
_BODY_LENGTH_AT: Final = 84  # in a record with IPv4 hosts, as all records in these logs are
_IPV6: Final = 0x30


class Log:
    """A log in memory with the methods that both ends of a connection need."""

    def __init__(self, records: Iterable[tuple[int, bytes]]) -> None:
        self.data = bytearray()
        self.log_last_record: int | None = None
        for position, data in records:
            self._append(position, data)

    log_begin: ClassVar = 0
    log_segment_bytes: ClassVar = SEGMENT_BYTES

    @property
    def log_end(self) -> int:
        return len(self.data)

    def log_read(self, position: int, size: int) -> bytes:
        return bytes(self.data[position : position + size])

    def damaged_record(self, _commit_offset: int, _count: int) -> None:
        """Return None: these logs have no damage."""

    def append_replicated(self, records: Sequence[tuple[bytes, StoredMessage]]) -> None:
        for data, stored in records:
            self._append(stored.commit_offset, data)

    def _append(self, position: int, data: bytes) -> None:
        room = -len(self.data) % SEGMENT_BYTES
        if position == len(self.data) + room and room:
            self.data += record.filler(room).ljust(room, b"\0")
        self.log_last_record = len(self.data)
        self.data += data


class HaStream:
    name: ClassVar = "ha-stream"
    invariants: ClassVar = {
        "SlaveIsPrefix": "a slave keeps a prefix of its master's frames, and none if its log diverges",
        "KeepsWholeRecords": "a slave keeps only complete records, at the positions that they name",
        "ReportsWhatItHas": "a slave reports only the end of its log, or the position that it first requests",
        "AcknowledgesWhatIsSaid": "a master counts the valid positions that a slave reports after its first",
        "ChunkingIrrelevant": "a stream has the same effect whole and byte by byte",
    }
    watched: ClassVar = (
        "mqproof.impl.replication.follow",
        "mqproof.impl.replication.feed",
        "mqproof.impl.replication.stream",
    )
    input_bytes_max: ClassVar = 2048

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self._tested: Counter[str] = Counter()

    def seeds(self) -> Iterable[bytes]:
        whole = masters_log().data
        for kept in (0, 1, 5, RECORDS):
            begin = _slaves_log(kept).log_last_record or (1 if kept else 0)
            sent = [whole[at : at + 200] for at in range(begin, min(begin + 400, len(whole)), 200)]
            frames, at = b"", begin
            for body in sent:
                frames += write_transfer(Transfer(at, bytes(body)))
                at += len(body)
            yield bytes([TO_SLAVE, kept]) + frames + write_transfer(Transfer(at, b""))
            for steps in _PROGRAMS:
                yield bytes([TO_SLAVE_BY_PROGRAM, kept, *chain(*steps)])
            yield bytes([TO_SLAVE_BY_PROGRAM, kept | DIVERGED, *chain(*_PROGRAMS[0])])
            end = _slaves_log(kept).log_end
            for said in ((0, end), (end, end, end + 1), (end, 0), (begin, end - 1, 0), (end + 8,), (-8, end)):
                yield bytes([TO_MASTER, kept]) + b"".join(map(write_position, said))

    def run(self, data: bytes) -> None:
        self._tested.clear()
        to, state = (data + b"\0\0")[:2]
        try:
            (self._bytes_to_slave, self._frames_to_slave, self._bytes_to_master)[to % 3](state, data[2:])
        finally:
            self.checked.update(list(+self._tested))  # inputs are counted, not frames

    # To a slave.

    def _bytes_to_slave(self, state: int, data: bytes) -> None:
        log, single = _slaves_log(state), _slaves_log(state)
        before = log.log_end
        error, verified = self._feed(log, [data])
        self._tested["ChunkingIrrelevant"] += len(data) > 1
        with unobserved():
            divided = self._feed(single, _chunks(data))
        if (error, verified, log.data) != (*divided, single.data):
            raise Finding("ChunkingIrrelevant", f"{error!r} with {log.log_end} bytes, else {divided}")
        self._tested["KeepsWholeRecords"] += log.log_end > before
        if problem := _first_problem(bytes(log.data), before):
            raise Finding("KeepsWholeRecords", problem)

    def _feed(self, log: Log, chunks: Iterable[bytes]) -> tuple[str, bool]:
        """Return the error that ended the connection, if any, and whether the logs were found to agree."""
        follow = Follow(log, RECORD_BYTES_MAX, LogCheck.COMPARED)
        try:
            for chunk in chunks:
                self._pass_to(follow, log, chunk)
        except (StreamError, DivergedError) as error:
            return str(error), follow.verified
        return "", follow.verified

    def _pass_to(self, follow: Follow, log: Log, data: bytes) -> None:
        """Pass the bytes of a master to the slave, which answers each transfer that it stores."""
        while said := follow.received(data):
            self._judge_report(follow, log, said)
            data = b""
        self._judge_report(follow, log, b"")

    def _judge_report(self, follow: Follow, log: Log, said: bytes) -> None:
        for report in filter(None, (said, follow.report())):
            self._tested["ReportsWhatItHas"] += 1
            allowed = {log.log_end} if follow.verified else {follow.first_position}
            if int.from_bytes(report, "big") not in allowed:
                raise Finding("ReportsWhatItHas", f"{int.from_bytes(report, 'big')} of {log.log_end} bytes")

    def _frames_to_slave(self, state: int, program: bytes) -> None:
        """Check frames that the slave's own master sends. Those at wrong positions must not be accepted."""
        log, master = _slaves_log(state), masters_log()
        before = bytes(log.data)
        follow = Follow(log, RECORD_BYTES_MAX, LogCheck.COMPARED)
        at, last, is_spoiled, judged = follow.first_position, b"", False, len(before)
        for what, number in islice(zip(program[::2], program[1::2], strict=False), _STEPS_MAX):
            match Step(what % len(Step)):
                case Step.SEND:
                    body = master.log_read(at, 1 + 8 * number)
                    last = write_transfer(Transfer(at, body))
                    at += len(body)
                case Step.BEAT:
                    last = write_transfer(Transfer(at, b""))
                case Step.SEND_ELSEWHERE:
                    elsewhere = max(0, at + number - 128)
                    last = write_transfer(Transfer(elsewhere, master.log_read(elsewhere, 64)))
                case Step.SPOIL:
                    last, is_spoiled = _spoiled(Transfer(at, master.log_read(at, 600)), number), True
                case Step.RECONNECT:
                    follow = Follow(log, RECORD_BYTES_MAX, LogCheck.COMPARED)
                    at, last = follow.first_position, b""
                case Step.REPEAT:
                    pass
            try:
                self._pass_to(follow, log, last)
            except (StreamError, DivergedError):
                follow = Follow(log, RECORD_BYTES_MAX, LogCheck.COMPARED)
                at, last = follow.first_position, b""
            with unobserved():
                self._judge_kept(log, before, state, judged, is_spoiled=is_spoiled)
            judged = log.log_end

    def _judge_kept(self, log: Log, before: bytes, state: int, judged: int, *, is_spoiled: bool) -> None:
        """Judge the log, of which the records before `judged` were judged already."""
        if is_spoiled:  # not every changed bit in a record's header can be detected
            self._tested["KeepsWholeRecords"] += 1
            if problem := _first_problem(bytes(log.data), judged):
                raise Finding("KeepsWholeRecords", problem)
            return
        self._tested["SlaveIsPrefix"] += 1
        slave_is_prefix(log, before if _is_other(state) else _masters_bytes())

    # To a master.

    def _bytes_to_master(self, state: int, data: bytes) -> None:
        log = _slaves_log(state & ~DIVERGED)
        whole = _feed_result(log, [data[:8], data[8:]])
        with unobserved():  # the log is sent after the first report, so no chunk has parts of two
            divided = _feed_result(log, [*_chunks(data[:8]), *_chunks(data[8:])])
        self._tested["ChunkingIrrelevant"] += len(data) > 1
        if whole != divided:
            raise Finding("ChunkingIrrelevant", f"whole: {whole}; divided: {divided}")
        self._tested["AcknowledgesWhatIsSaid"] += len(data) >= 16
        if whole[1] != _acknowledged(data, log.log_end):
            raise Finding("AcknowledgesWhatIsSaid", f"{whole[1]} of {data.hex()}, {log.log_end} bytes")


def slave_is_prefix(log: Log, whole: bytes | bytearray) -> None:
    """Check that the slave's log is a prefix of `whole`. Raises Finding."""
    if log.data != whole[: log.log_end]:
        raise Finding("SlaveIsPrefix", f"the slave's {log.log_end} bytes are not its master's")


def _spoiled(transfer: Transfer, place: int) -> bytes:
    """Return a transfer with one byte of its body changed."""
    body = bytearray(transfer.body)
    if body:
        body[place % len(body)] ^= 1
    return write_transfer(Transfer(transfer.position, bytes(body)))


def _feed_result(log: Log, chunks: Iterable[bytes]) -> tuple[str, int, int | None]:
    """Return the error that ended a slave's connection, if any; the position it acknowledged; and the
    position up to which the log was sent to it.

    All of the log is sent as soon as the slave has requested it, so that it may acknowledge all of it.
    """
    acks = Acks()
    feed = Feed(log, acks, LogCheck.COMPARED)
    try:
        for chunk in chunks:
            feed.received(chunk)
            while feed.next_frame():
                pass
    except StreamError as error:
        return str(error), acks.highest, feed.sent
    return "", acks.highest, feed.sent


def _acknowledged(data: bytes, end: int) -> int:
    """Restate the rule: the highest position after the first one, up to the first impossible one."""
    said = [int.from_bytes(data[at : at + 8], "big", signed=True) for at in range(0, len(data) - 7, 8)]
    highest = 0
    for number, position in enumerate(said):
        if not 0 <= position <= end:
            break
        highest = max(highest, position) if number else 0
    return highest


def _first_problem(data: bytes, at: int) -> str:
    """Describe the first bad record from `at` on; empty if there is none.

    The layout of a record is stated here independently of the code under test.
    """
    while at < len(data):
        size, magic = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if magic == b"\xcb\xd4\x31\x94" and size == SEGMENT_BYTES - at % SEGMENT_BYTES:
            at += size
            continue
        whole = data[at : at + size]
        if size < _BODY_LENGTH_AT or len(whole) < size:
            return f"the record at {at} is not complete"
        if int.from_bytes(whole[28:36], "big") != at:
            return f"the record at {at} names another position"
        if not int.from_bytes(whole[36:40], "big") & _IPV6:
            length = int.from_bytes(whole[_BODY_LENGTH_AT : _BODY_LENGTH_AT + 4], "big")
            body = whole[_BODY_LENGTH_AT + 4 :][:length]
            if zlib.crc32(body) & 0x7FFFFFFF != int.from_bytes(whole[8:12], "big"):
                return f"the body of the record at {at} is damaged"
        at += size
    return ""


@cache
def _records(store_timestamp_ms: int) -> tuple[tuple[int, bytes], ...]:
    """Return position and bytes of each record of a log.

    Records have several sizes and fill several segments.
    """
    made: list[tuple[int, bytes]] = []
    at = 0
    for number in range(RECORDS):
        host = Address("127.0.0.1", 10911)
        body = b"%d" % number * (1 + 60 * (number % 4))
        draft = record.encode(
            Message("T", body, {"KEYS": "k"}, born_timestamp_ms=_BORN_MS, born_host=host, store_host=host)
        )
        if at % SEGMENT_BYTES + len(draft) + record.FILLER_BYTES > SEGMENT_BYTES:
            at += SEGMENT_BYTES - at % SEGMENT_BYTES
        record.place(draft, number, at, store_timestamp_ms + number)
        made.append((at, bytes(draft)))
        at += len(draft)
    return tuple(made)


@cache
def _masters_bytes() -> bytes:
    return bytes(masters_log().data)


def _chunks(data: bytes) -> list[bytes]:
    """Divide the bytes of a stream: one by one if they are few, else in a few chunks that they select."""
    if len(data) <= _BYTEWISE_MAX:
        return [data[at : at + 1] for at in range(len(data))]
    chance = zlib.crc32(data)
    cuts = sorted((0, len(data), *(chance // divisor % len(data) for divisor in (1, 4099, 65537))))
    return [data[begin:end] for begin, end in pairwise(cuts)]


def masters_log() -> Log:
    return Log(_records(_BORN_MS))


def _slaves_log(state: int) -> Log:
    """Return a prefix of the master's log with as many records as the state says.

    With DIVERGED its last record differs.
    """
    kept = list(_records(_BORN_MS)[: (state & ~DIVERGED) % (RECORDS + 1)])
    if _is_other(state):
        kept[-1] = _records(_BORN_MS + 1)[len(kept) - 1]
    return Log(kept)


def _is_other(state: int) -> bool:
    return bool(state & DIVERGED and (state & ~DIVERGED) % (RECORDS + 1))


TARGET = HaStream
