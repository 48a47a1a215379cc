"""Makes a history of what the clients of the chaos proxy did and saw, from the proxy's capture.

The history is the view of the clients: a lost answer is an operation without an end, and a crash that the
proxy feigned is a fault. The rules for histories therefore judge whether the specification permits all of it.

- An operation is a request and its answer. A process is a slot of a connection, which one request uses at a
  time.
- The answer to a poll counts only if the member has not polled the queue again meanwhile.
- A member that continues at another offset than its last answer said has moved there itself (`seek`).
- A commit below the known offset is the client's decision, and counts as a reset.
- Half messages are sends with an unknown outcome.
- A consumer that sends a failed message to its retry topic itself sends no new message.
- Delays are not judged: the proxy does not change them, and their levels are not in the capture.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from mqproof.conformance.faults.capture_file import entries_of
from mqproof.conformance.faults.chaos_facts import (
    PULLS,
    SENDS,
    Facts,
    facts_of,
    header_of_send,
    sent_messages,
    stored_messages,
)
from mqproof.conformance.history import lines
from mqproof.conformance.history.lines import (
    DEAD,
    RETRY,
    AssignValue,
    CommitValue,
    Delivered,
    FaultValue,
    Line,
    Message,
    PollValue,
    QueryValue,
    SendValue,
    SetupValue,
    Type,
)
from mqproof.impl.chaos.capture import Entry, NodeChange, Opened, Recorded
from mqproof.impl.chaos.frame_head import command_of
from mqproof.impl.remoting.codes import RequestCode, ResponseCode, response_name
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.message import (
    DELAY,
    SYS_TRANSACTION_MASK,
    TAGS,
    TIMER_REQUESTS,
    StoredMessage,
    tags_code,
)

_MS: Final = 1_000_000
_SKEW_MS: Final = 1000
_SHARDING_KEY: Final = "__SHARDINGKEY"
_HALF: Final = "TRAN_MSG"
"""The property of a half message."""
_NO_VALUE: Final = -1
_LATER: Final = 1
"""The earliest time of a delayed message, whose real one is not known."""
_STATUS: Final[dict[int, str]] = {
    ResponseCode.SUCCESS: "SEND_OK",
    ResponseCode.FLUSH_DISK_TIMEOUT: "FLUSH_DISK_TIMEOUT",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "FLUSH_SLAVE_TIMEOUT",
    ResponseCode.SLAVE_NOT_AVAILABLE: "SLAVE_NOT_AVAILABLE",
}
_PULLED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)
_MAY_BE_STORED: Final = frozenset({ResponseCode.SYSTEM_ERROR})
"""Refusals of a send after which the message may be stored."""

_KINDS: Final[dict[type, Any]] = {
    SendValue: lines.Send,
    PollValue: lines.Poll,
    CommitValue: lines.Commit,
    QueryValue: lines.Query,
    AssignValue: lines.Assign,
}


def history_of(path: Path, name: str = "chaos", seed: int = 0) -> Iterator[Line]:
    """Yield the history of a capture, which is read twice. If records are missing, so is a line.

    Raises:
        CaptureError: the file is not a capture. OSError: it cannot be read.
        FrameError: a frame of a client or a server cannot be read.
    """
    facts = facts_of(path)
    writer = _Writer(facts)
    setup = SetupValue(
        name=name, seed=seed, flush_mode="ASYNC_FLUSH", replication="async", groups=facts.groups,
        skew_ms=_SKEW_MS,
    )  # fmt: skip
    for entry in entries_of(path):
        if not writer.has_begun:
            yield from writer.begin(setup, entry.time_ns)
        yield from writer.lines_of(entry)
    yield from writer.end()


class _Asked(NamedTuple):
    """A request without an answer so far."""

    process: str
    request: Command
    value: Any


class _Place(NamedTuple):
    group: str
    client: str
    queue: str


@dataclass(slots=True)
class _Connection:
    number: int
    opened: Opened
    asked: dict[int, _Asked] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    slots: int = 0

    def take(self) -> str:
        """Return the process of a new operation: the lowest slot that is free."""
        if self.free:
            slot = min(self.free)
            self.free.remove(slot)
        else:
            slot, self.slots = self.slots, self.slots + 1
        return f"{self.number}.{slot}"

    def give_back(self, process: str) -> None:
        self.free.append(int(process.partition(".")[2]))


@dataclass(slots=True)
class _Writer:
    _facts: Facts
    has_begun: bool = False
    _index: int = 0
    _time: int = 0
    _connections: dict[int, _Connection] = field(default_factory=dict)
    _next: dict[_Place, int] = field(default_factory=dict)
    """Where each member continues in each queue."""
    _latest: dict[_Place, _Asked] = field(default_factory=dict)
    """The last poll of each member in each queue."""
    _attempts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How often each message was sent so far, by its id."""
    _owned: dict[tuple[str, str], dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    _committed: dict[tuple[str, str], int] = field(default_factory=dict)
    """The known offsets of groups in queues."""

    def begin(self, setup: SetupValue, time_ns: int) -> Iterator[Line]:
        self.has_begun, self._time = True, time_ns
        yield lines.Setup(self._take_index(), time_ns, lines.NEMESIS, Type.INFO, setup)
        for id_, topic in self._facts.earlier.items():
            value = SendValue(topic, (Message(id_),))
            yield self._line("before", value, Type.INVOKE)
            yield self._line("before", SendValue(), Type.INFO, "sent before the capture began")

    def end(self) -> Iterator[Line]:
        if not self._facts.is_complete:
            self._index += 1  # the rules take it for a missing line
            value = FaultValue("torn capture")
            yield lines.Fault(self._take_index(), self._time, lines.NEMESIS, Type.INFO, value)

    def lines_of(self, entry: Entry) -> Iterator[Line]:
        self._time = max(self._time, entry.time_ns)
        match entry.kind:
            case Recorded.OPENED:
                opened = msgspec.json.decode(entry.payload, type=Opened)
                self._connections[entry.connection] = _Connection(entry.connection, opened)
            case Recorded.CLOSED:
                yield from self._closed(self._connections.pop(entry.connection, None))
            case Recorded.NODE:
                change = msgspec.json.decode(entry.payload, type=NodeChange)
                if change.kind == "kill":
                    self._committed.clear()
                value = FaultValue(change.kind, change.node)
                yield lines.Fault(self._take_index(), self._time, lines.NEMESIS, Type.INFO, value)
            case Recorded.TO_SERVER | Recorded.TO_CLIENT:
                connection = self._connections.get(entry.connection)
                if connection is not None and connection.opened.server:
                    step = self._request if entry.kind is Recorded.TO_SERVER else self._response
                    yield from step(connection, command_of(entry.payload))

    def _closed(self, connection: _Connection | None) -> Iterator[Line]:
        for asked in connection.asked.values() if connection is not None else ():
            value = asked.value
            if isinstance(value, SendValue):
                value = SendValue(attempts=2)  # it may have been stored, and be sent again
            elif isinstance(value, PollValue):
                value = PollValue()
            yield self._line(asked.process, value, Type.INFO, "the connection closed")

    # Requests.

    def _request(self, connection: _Connection, request: Command) -> Iterator[Line]:
        if request.is_response:
            return
        begin = self._begins().get(request.code)
        value = begin(connection, request) if begin is not None else None
        if value is None:
            return
        if isinstance(value, PollValue):
            yield from self._assigned(value)
        process = connection.take()
        asked = connection.asked[request.opaque] = _Asked(process, request, value)
        if isinstance(value, PollValue):
            self._latest[_Place(value.group, value.client, value.queue)] = asked
        yield self._line(process, value, Type.INVOKE)
        if request.is_oneway:
            del connection.asked[request.opaque]
            connection.give_back(process)
            yield self._line(process, value, Type.INFO, "no answer was asked for")

    def _begins(self) -> dict[int, Callable[[_Connection, Command], Any]]:
        return {
            **dict.fromkeys(SENDS, self._send),
            **dict.fromkeys(PULLS, self._poll),
            RequestCode.UPDATE_CONSUMER_OFFSET: self._commit,
            RequestCode.QUERY_CONSUMER_OFFSET: self._query,
        }

    def _send(self, connection: _Connection, request: Command) -> SendValue | None:
        header, sent = header_of_send(request), sent_messages(request)
        if header is None or not sent or header.topic.startswith((RETRY, DEAD)):
            return None
        messages = tuple(
            Message(
                id_ or f"{connection.number}-{request.opaque}-{place}",
                _digest(part.body),
                part.properties.get(TAGS, ""),
                part.properties.get(_SHARDING_KEY, ""),
                _LATER if _is_delayed(part.properties) else 0,
            )
            for place, (id_, part) in enumerate(sent)
        )
        is_chosen = header.queue_id >= 0 and not any(message.deliver_at for message in messages)
        queue = f"{header.topic}/{connection.opened.server}/{header.queue_id}" if is_chosen else ""
        self._attempts[messages[0].id] += 1
        return SendValue(header.topic, messages, queue=queue)

    def _poll(self, connection: _Connection, request: Command) -> PollValue | None:
        place, offset = self._place(connection, request), _number(request, "queueOffset")
        if place is None or place.group in self._facts.unjudged:
            return None
        seek = self._next.get(place) != offset
        return PollValue(place.group, place.queue, offset, place.client, seek)

    def _commit(self, connection: _Connection, request: Command) -> CommitValue | None:
        place, offset = self._place(connection, request), _number(request, "commitOffset")
        if place is None or connection.opened.broker_id != 0:
            return None
        known = self._committed.get((place.group, place.queue), _NO_VALUE)
        if offset < known and request.fields.get("onlyForward", "").lower() == "true":
            return None  # the broker keeps its own
        if offset < known:
            self._committed[place.group, place.queue] = offset
        return CommitValue(place.group, place.queue, offset, place.client, reset=offset < known)

    def _query(self, connection: _Connection, request: Command) -> QueryValue | None:
        place = self._place(connection, request)
        if place is None or connection.opened.broker_id != 0:
            return None
        return QueryValue(place.group, place.queue, client=place.client)

    def _assigned(self, value: PollValue) -> Iterator[Line]:
        owned = self._owned[value.group, value.client]
        if value.queue not in owned:
            owned[value.queue] = None
            process = f"{value.group} {value.client}"
            assigned = AssignValue(value.group, value.client, tuple(owned))
            yield self._line(process, assigned, Type.INVOKE)
            yield self._line(process, assigned, Type.OK)

    def _place(self, connection: _Connection, request: Command) -> _Place | None:
        fields = request.fields
        group, topic, queue = (fields.get(name) for name in ("consumerGroup", "topic", "queueId"))
        if not (group and topic and queue):
            return None
        client = self._facts.clients.get(connection.number) or f"connection {connection.number}"
        return _Place(group, client, f"{topic}/{connection.opened.server}/{queue}")

    # Answers.

    def _response(self, connection: _Connection, answer: Command) -> Iterator[Line]:
        if not answer.is_response:
            return
        asked = connection.asked.pop(answer.opaque, None)
        if asked is None:
            return
        connection.give_back(asked.process)
        match asked.value:
            case SendValue():
                yield self._sent(connection, asked, answer)
            case PollValue():
                yield self._polled(connection, asked, answer)
            case CommitValue() as value:
                yield self._committed_line(asked, value, answer)
            case QueryValue() as value:
                yield self._queried(asked, value, answer)

    def _sent(self, connection: _Connection, asked: _Asked, answer: Command) -> Line:
        status = _STATUS.get(answer.code)
        header = header_of_send(asked.request)
        if status is None or header is None:
            is_open = answer.code in _MAY_BE_STORED
            return self._line(
                asked.process, SendValue(), Type.INFO if is_open else Type.FAIL, _refusal(answer)
            )
        if header.sys_flag & SYS_TRANSACTION_MASK or _HALF in (header.properties or ""):
            return self._line(asked.process, SendValue(), Type.INFO, "a half message")
        value: SendValue = asked.value
        attempts = self._attempts[value.messages[0].id]
        offset = _number(answer, "queueOffset")
        if any(message.deliver_at for message in value.messages) or offset < 0:
            return self._line(asked.process, SendValue(status=status, attempts=attempts), Type.OK)
        queue = f"{header.topic}/{connection.opened.server}/{answer.fields.get('queueId', '')}"
        offset_id = answer.fields.get("msgId", "").partition(",")[0]
        done = SendValue(status=status, queue=queue, offset=offset, offset_id=offset_id, attempts=attempts)
        return self._line(asked.process, done, Type.OK)

    def _polled(self, connection: _Connection, asked: _Asked, answer: Command) -> Line:
        if answer.code not in _PULLED:
            return self._line(asked.process, PollValue(), Type.FAIL, _refusal(answer))
        value: PollValue = asked.value
        if self._latest.get(_Place(value.group, value.client, value.queue)) is not asked:
            return self._line(asked.process, PollValue(), Type.INFO, "the member has polled again since")
        body = answer.body if answer.code == ResponseCode.SUCCESS else b""
        topic, _, rest = value.queue.partition("/")
        found = tuple(
            _delivered(stored, topic, rest)
            for stored in stored_messages(body)
            if self._is_wanted(value.group, stored)
        )
        following = _number(answer, "nextBeginOffset")
        self._next[_Place(value.group, value.client, value.queue)] = following
        replica = connection.opened.broker_id
        done = PollValue(
            messages=found,
            next=following,
            min=_number(answer, "minOffset"),
            max=_number(answer, "maxOffset"),
            node=f"{connection.opened.server}/{replica}" if replica else "",
        )
        return self._line(asked.process, done, Type.OK)

    def _is_wanted(self, group: str, stored: StoredMessage) -> bool:
        """Return whether the client keeps the message. Brokers select by the hash code of a tag only."""
        known = self._facts.groups.get(group)
        tag = stored.message.properties.get(TAGS, "")
        if known is None or not known.tags or tag in known.tags:
            return True
        return tags_code(tag) not in {tags_code(one) for one in known.tags}

    def _committed_line(self, asked: _Asked, value: CommitValue, answer: Command) -> Line:
        if answer.code != ResponseCode.SUCCESS:
            return self._line(asked.process, value, Type.FAIL, _refusal(answer))
        place = value.group, value.queue
        self._committed[place] = max(value.offset, self._committed.get(place, _NO_VALUE))
        return self._line(asked.process, value, Type.OK)

    def _queried(self, asked: _Asked, value: QueryValue, answer: Command) -> Line:
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return self._line(asked.process, QueryValue(offset=_NO_VALUE), Type.OK)
        if answer.code != ResponseCode.SUCCESS:
            return self._line(asked.process, QueryValue(), Type.FAIL, _refusal(answer))
        offset = _number(answer, "offset")
        self._committed[value.group, value.queue] = offset
        return self._line(asked.process, QueryValue(offset=offset), Type.OK)

    # Lines.

    def _line(self, process: str, value: Any, how: Type, error: str = "") -> Line:
        line: Line = _KINDS[type(value)](self._take_index(), self._time, process, how, value, error)
        return line

    def _take_index(self) -> int:
        index, self._index = self._index, self._index + 1
        return index


def _delivered(stored: StoredMessage, topic: str, rest: str) -> Delivered:
    message = stored.message
    broker, _, queue_id = rest.rpartition("/")
    is_elsewhere = (message.topic, str(message.queue_id)) != (topic, queue_id)
    return Delivered(
        stored.message_id,
        stored.queue_offset,
        _digest(message.body),
        message.properties.get(TAGS, ""),
        message.properties.get(_SHARDING_KEY, ""),
        message.reconsume_times,
        stored=stored.store_timestamp_ms * _MS,
        offset_id=stored.offset_message_id,
        queue=f"{message.topic}/{broker}/{message.queue_id}" if is_elsewhere else "",
    )


def _digest(body: bytes) -> str:
    return f"{len(body):x}-{crc32(body):08x}"


def _is_delayed(properties: Any) -> bool:
    return any(properties.get(name) for name in (DELAY, *TIMER_REQUESTS))


def _number(command: Command, field_name: str) -> int:
    """Return a field that is a number of at most 18 digits, or -1."""
    text = command.fields.get(field_name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else _NO_VALUE


def _refusal(answer: Command) -> str:
    return f"{response_name(answer.code)}: {(answer.remark or '')[:200]}"
