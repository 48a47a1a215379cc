"""A load generator for any broker: prebuilt frames over one connection.

It implements the protocol itself, so every broker receives the same bytes, and no broker's own client is
measured. Layouts: docs/reference/protocol/framing.md, "Remoting frame" and "Remoting command";
docs/reference/protocol/storing.md, "Commit log record". Times are in seconds, counts are messages.
"""

import asyncio
import json
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final, cast

import msgspec

_SEND: Final = 310
_SEND_BATCH: Final = 320
_PULL: Final = 11
_CREATE_TOPIC: Final = 17
_SUCCESS: Final = 0
_BUSY: Final = 2  # a broker under flow control: the request may be repeated
_FOUND: Final = 0
_RETRYABLE: Final = (19, 20, 21)  # nothing found, now or yet; or the offset is corrected
FIRST_OPAQUE: Final = 1_000_000_000  # ten digits, like all that follow
_HOLE: Final = "1000000000"
_STAMP: Final = struct.Struct(">q")
_BATCH_HEAD: Final = struct.Struct(">IIIiI")  # size, magic, CRC, flag, length of the body
_OFFSET_AT: Final = 20  # in a record: its offset in its queue
_BODY_AT: Final = 88  # in a record with IPv4 hosts; the four bytes before have its length
_MAY_BE_HELD: Final = 2
_HAS_SUBSCRIPTION: Final = 4
_HELD_MS: Final = 5_000
_BATCH: Final = 32
STALL_S: Final = 60.0
"""How long a measurement waits without progress. A busy Java broker may pause for seconds."""


class LoadError(RuntimeError):
    """The broker refused a request or closed the connection; the message quotes it."""


class BrokenConnectionError(LoadError):
    """The broker closed the connection."""


class Answer(msgspec.Struct):
    code: int
    opaque: int
    remark: str | None = None
    extFields: dict[str, str] | None = None  # noqa: N815  # the wire's name


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool = False
    """Whether to encrypt connections. The server's certificate is not checked."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages to send, to each of the topics' queues in turn."""

    topics: tuple[str, ...] = ("bench",)
    queues: int = 8
    size: int = 1024
    """Bytes of a body."""
    batch: int = 1
    """Messages in each send."""
    properties: tuple[str, ...] = ("",)
    """The additional properties, encoded. Successive messages have them in turn."""
    sys_flag: int = 0


OnAnswer = Callable[[Answer, memoryview], None]


@dataclass
class Wire(asyncio.Protocol):
    """Sends frames and receives answers; frames of one turn are sent in one write."""

    on_answer: OnAnswer
    transport: asyncio.Transport | None = None
    lost: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    _received: bytearray = field(default_factory=bytearray)
    _out: list[bytes] = field(default_factory=list)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_exception(BrokenConnectionError(f"the broker closed the connection: {exc}"))

    def send(self, frame: bytes) -> None:
        self._out.append(frame)

    def flush(self) -> None:
        assert self.transport is not None
        self.transport.write(b"".join(self._out))
        self._out.clear()

    def data_received(self, data: bytes) -> None:
        self._received += data
        at, have = 0, len(self._received)
        with memoryview(self._received) as view:
            while have - at >= 8:
                end = at + 4 + int.from_bytes(view[at : at + 4], "big")
                if end > have:
                    break
                body = at + 8 + int.from_bytes(view[at + 5 : at + 8], "big")
                answer = msgspec.json.decode(view[at + 8 : body], type=Answer)
                with view[body:end] as content:
                    self._dispatch(answer, content)
                at = end
        del self._received[:at]
        if self._out:
            self.flush()

    def _dispatch(self, answer: Answer, body: memoryview) -> None:
        try:
            self.on_answer(answer, body)
        except LoadError as error:
            if not self.lost.done():
                self.lost.set_exception(error)


def header_of(code: int, fields: dict[str, Any], opaque: int = FIRST_OPAQUE) -> str:
    ext = {name: str(value) for name, value in fields.items()}
    command = {
        "code": code,
        "extFields": ext,
        "flag": 0,
        "language": "JAVA",
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": 401,
    }
    return json.dumps(command, separators=(",", ":"))


def frame_of(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(header) + len(body), len(header)) + header + body


def sends(messages: Messages, first: int = 0) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield (opaque, frame bytes before the body, body) endlessly, from message number `first` on."""
    templates = [
        _template(messages, topic, queue, properties)
        for queue in range(messages.queues)
        for topic in messages.topics
        for properties in messages.properties
    ]
    body = _body(messages).split(_HOLE.encode())
    for number in count(first):
        opaque = FIRST_OPAQUE + number
        text = str(opaque).encode()
        yield opaque, text.join(templates[number % len(templates)]), text.join(body)


def _body(messages: Messages) -> bytes:
    """Return the body of a send. In a batch, each message has a unique key with a place for the number."""
    body = bytes(messages.size)
    if messages.batch == 1:
        return body
    parts = []
    for number in range(messages.batch):
        properties = f"UNIQ_KEY\x010A0B0C0D0E0F0A0B0C{number:04X}{_HOLE}".encode()
        head = _BATCH_HEAD.pack(_BATCH_HEAD.size + len(body) + 2 + len(properties), 0, 0, 0, len(body))
        parts += [head, body, len(properties).to_bytes(2, "big"), properties]
    return b"".join(parts)


def _template(messages: Messages, topic: str, queue: int, more_properties: str) -> list[bytes]:
    """Return the bytes of a send before its body, split where its number is inserted.

    The number is part of the unique key and the opaque.
    """
    properties = f"UNIQ_KEY\x010A0B0C0D0E0F0A0B0C0D0E{_HOLE}\x02WAIT\x01true"
    if more_properties:
        properties += f"\x02{more_properties}"
    is_batch = messages.batch > 1
    fields = {
        "a": "bench", "b": topic, "c": "TBW102", "d": messages.queues, "e": queue,
        "f": messages.sys_flag, "g": int(time.time() * 1000), "h": 0, "i": properties, "j": 0, "k": "false",
        "m": "true" if is_batch else "false",
    }  # fmt: skip
    header = header_of(_SEND_BATCH if is_batch else _SEND, fields).encode()
    whole = frame_of(header, _body(messages))
    return whole[: 8 + len(header)].split(_HOLE.encode())


@asynccontextmanager
async def connected(address: Address, on_answer: OnAnswer) -> AsyncIterator[Wire]:
    loop = asyncio.get_running_loop()
    transport, wire = await loop.create_connection(
        lambda: Wire(on_answer), address.host, address.port, ssl=_unchecked_tls() if address.tls else None
    )
    try:
        yield wire
    finally:
        wire.lost.cancel()
        transport.abort()
        await asyncio.sleep(0)  # the socket is closed in the loop's next iteration


def _unchecked_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def until_done(
    done: "asyncio.Future[None]", *wires: Wire, progress: Callable[[], str] = lambda: "no answer"
) -> None:
    """Wait until `done`. `progress` says how far the work is.

    Raises LoadError if a connection is lost before, or if the progress has not changed for STALL_S.
    """
    ends, reached = [done, *(wire.lost for wire in wires)], ""
    while not done.done():
        if reached == (now := progress()):
            raise LoadError(f"{now}, and nothing more for {STALL_S:g} s")
        reached = now
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=STALL_S)
        for wire in wires:
            if wire.lost.done():
                wire.lost.result()


async def send_request(address: Address, code: int, fields: dict[str, Any]) -> None:
    """Send one request. Raises LoadError if the answer is not SUCCESS, OSError if there is no server."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_answer(answer: Answer, _body: memoryview) -> None:
        expect(answer)
        done.set_result(None)

    async with connected(address, on_answer) as wire:
        wire.send(frame_of(header_of(code, fields).encode()))
        wire.flush()
        await until_done(done, wire)


async def create_topics(address: Address, messages: Messages) -> None:
    """Create the topics, with as many queues as the messages need."""
    for topic in messages.topics:
        fields = {
            "topic": topic, "defaultTopic": "TBW102", "readQueueNums": messages.queues,
            "writeQueueNums": messages.queues, "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0,
            "order": "false",
        }  # fmt: skip
        await send_request(address, _CREATE_TOPIC, fields)


def expect(answer: Answer) -> None:
    if answer.code != _SUCCESS:
        raise LoadError(f"code {answer.code}: {answer.remark}")


async def send_rate(
    address: Address, messages: Messages, total: int, outstanding: int, connections: int = 1
) -> float:
    """Return the messages stored per second by `total` sends, with a constant number of unanswered sends.

    The unanswered sends are divided among the connections. If a busy broker refuses a send, another is
    made, up to `total` times.

    Raises:
        LoadError: the broker refused for another reason, or too often, or closed a connection, or stopped
            answering.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    frames = sends(messages)
    answered, refused, sent = 0, 0, min(outstanding, total)
    wires: list[Wire] = []

    def on_answer(place: int, answer: Answer, _body: memoryview) -> None:
        nonlocal answered, refused, sent
        if answer.code == _BUSY and refused < total:
            refused += 1
            sent -= 1
        else:
            expect(answer)
            answered += 1
        if sent < total:
            sent += 1
            _, head, body = next(frames)
            wires[place].send(head + body)
        elif answered == total:
            done.set_result(None)

    async with AsyncExitStack() as stack:
        receivers = [partial(on_answer, place) for place in range(connections)]
        wires += [await stack.enter_async_context(connected(address, each)) for each in receivers]
        began = time.perf_counter()
        for number, (_, head, body) in zip(range(sent), frames, strict=False):
            wires[number % connections].send(head + body)
        for wire in wires:
            wire.flush()
        await until_done(done, *wires, progress=lambda: f"{answered} of {total} sends were answered")
        return total * messages.batch / (time.perf_counter() - began)


@dataclass(slots=True)
class Sent:
    """The outcome of messages 0, 1, 2, ...; each was sent to queue `number % queues`."""

    count: int = 0
    acked: set[int] = field(default_factory=set)
    """Numbers of acknowledged messages; for the others it is unknown whether they were stored."""


async def send_until_lost(address: Address, messages: Messages, outstanding: int, sent: Sent) -> None:
    """Continue after the messages sent earlier, until the broker closes the connection.

    A body has its number.

    Raises:
        LoadError: the broker refused a message.
        OSError: there is no server.
    """

    def on_answer(answer: Answer, _body: memoryview) -> None:
        expect(answer)
        sent.acked.add(answer.opaque - FIRST_OPAQUE)
        send_next()

    def send_next() -> None:
        opaque, head, _ = next(frames)
        wire.send(head + body_of(opaque - FIRST_OPAQUE, messages.size))
        sent.count += 1

    frames = sends(messages, sent.count)
    async with connected(address, on_answer) as wire:
        for _ in range(outstanding):
            send_next()
        wire.flush()
        with suppress(BrokenConnectionError):
            await asyncio.shield(wire.lost)


def body_of(number: int, size: int) -> bytes:
    """Return the body of a message of `send_until_lost`."""
    return _STAMP.pack(number) * (size // _STAMP.size) + bytes(size % _STAMP.size)


async def read_queue(address: Address, messages: Messages, queue: int) -> list[tuple[int, bytes]]:
    """Return (queue offset, body) of all messages in a queue of the only topic, in the received order."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    found: list[tuple[int, bytes]] = []

    def on_answer(answer: Answer, body: memoryview) -> None:
        if answer.code not in (_FOUND, *_RETRYABLE):
            expect(answer)
        if answer.code != _FOUND:
            done.set_result(None)
            return
        for record in records_of(body):
            size = int.from_bytes(record[_BODY_AT - 4 : _BODY_AT], "big")
            offset = int.from_bytes(record[_OFFSET_AT : _OFFSET_AT + 8], "big")
            found.append((offset, bytes(record[_BODY_AT : _BODY_AT + size])))
        wire.send(_pull(opaque, topic, queue, int((answer.extFields or {})["nextBeginOffset"]), 0))

    (topic,), opaque = messages.topics, FIRST_OPAQUE
    async with connected(address, on_answer) as wire:
        wire.send(_pull(opaque, topic, queue, 0, 0))
        wire.flush()
        await until_done(done, wire, progress=lambda: f"{len(found)} messages were read")
    return found


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds for each message, from when it was due: a late generator counts against the broker, too."""

    answered: list[float]
    delivered: list[float]
    refused: list[int]
    """Numbers of the messages that a busy broker refused."""


async def latencies(address: Address, messages: Messages, rate: float, seconds: float) -> Latencies:
    """Send at a constant rate, while a consumer reads every queue with held pulls.

    Raises:
        LoadError: the broker refused for another reason than being busy, or refused all, or closed the
            connection, or did not deliver all messages.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    total = int(rate * seconds)
    due: dict[int, float] = {}
    found = Latencies([], [], [])

    def on_send_answer(answer: Answer, _body: memoryview) -> None:
        if answer.code == _BUSY and len(found.refused) < total - 1:
            found.refused.append(answer.opaque - FIRST_OPAQUE)
            end_when_all_came()
            return
        expect(answer)
        found.answered.append(time.perf_counter() - due.pop(answer.opaque))

    def on_body(body: memoryview) -> None:
        now = time.perf_counter_ns()
        for record in records_of(body):
            stamp = _STAMP.unpack_from(record, _BODY_AT)[0]
            found.delivered.append((now - stamp) / 1e9)
        end_when_all_came()

    def end_when_all_came() -> None:
        if len(found.delivered) + len(found.refused) >= total and not done.done():
            done.set_result(None)

    async with connected(address, on_send_answer) as producer, pulling(address, messages, on_body) as pulls:
        began = time.perf_counter()
        for number, (opaque, head, body) in zip(range(total), sends(messages), strict=False):
            at = began + number / rate
            if at > time.perf_counter():
                producer.flush()
                await asyncio.sleep(at - time.perf_counter())
            due[opaque] = at
            producer.send(head + _STAMP.pack(int(at * 1e9)) + body[_STAMP.size :])
        producer.flush()
        await until_done(
            done,
            producer,
            pulls,
            progress=lambda: f"{len(found.delivered)} of {total} messages were delivered",
        )
    return found


def records_of(body: memoryview) -> Iterator[memoryview]:
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        yield body[at : at + size]
        at += size


async def pull_rate(address: Address, messages: Messages, total: int, sql: str = "") -> float:
    """Return the messages per second that one consumer reads, with one pull per queue at a time.

    With an SQL92 expression in `sql`, it reads the selected messages only.

    Raises LoadError: the broker has fewer than `total` messages, or refused, or closed the connection.
    """
    began = time.perf_counter()
    async with reading(address, messages, total, "read", sql) as all_read:
        read = await all_read()
        return read / (time.perf_counter() - began)


@asynccontextmanager
async def reading(
    address: Address, messages: Messages, total: int, what: str, sql: str = ""
) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """Read all queues; yield what waits for `total` messages, and returns how many were read.

    `what` says in errors what happens to the messages.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    read = 0

    def on_body(body: memoryview) -> None:
        nonlocal read
        read += sum(1 for _ in records_of(body))
        if read >= total and not done.done():
            done.set_result(None)

    async with pulling(address, messages, on_body, sql) as pulls:

        async def all_read() -> int:
            await until_done(done, pulls, progress=lambda: f"{read} of {total} messages were {what}")
            return read

        yield all_read


@asynccontextmanager
async def pulling(
    address: Address, messages: Messages, on_body: Callable[[memoryview], None], sql: str = ""
) -> AsyncIterator[Wire]:
    """Read all queues from their beginning; the next pull of a queue follows the answer to the last one."""
    open_pulls: dict[int, tuple[str, int, int]] = {}
    opaques = count(FIRST_OPAQUE)

    def on_answer(answer: Answer, body: memoryview) -> None:
        topic, queue, offset = open_pulls.pop(answer.opaque)
        if answer.code not in (_FOUND, *_RETRYABLE):
            expect(answer)
        if answer.code == _FOUND:
            on_body(body)
        pull(topic, queue, int((answer.extFields or {}).get("nextBeginOffset", offset)))

    def pull(topic: str, queue: int, offset: int) -> None:
        opaque = next(opaques)
        open_pulls[opaque] = topic, queue, offset
        wire.send(_pull(opaque, topic, queue, offset, _HELD_MS, sql))

    async with connected(address, on_answer) as wire:
        for topic in messages.topics:
            for queue in range(messages.queues):
                pull(topic, queue, 0)
        wire.flush()
        yield wire


def _pull(opaque: int, topic: str, queue: int, offset: int, held_ms: int, sql: str = "") -> bytes:
    fields = {
        "consumerGroup": "bench", "topic": topic, "queueId": queue, "queueOffset": offset,
        "maxMsgNums": _BATCH, "sysFlag": _HAS_SUBSCRIPTION | (_MAY_BE_HELD if held_ms else 0),
        "commitOffset": 0, "suspendTimeoutMillis": held_ms,
        "subscription": sql or "*", "subVersion": 0, "expressionType": "SQL92" if sql else "TAG",
    }  # fmt: skip
    return frame_of(header_of(_PULL, fields, opaque).encode())


def percentile(values: list[float], fraction: float) -> float:
    """Return the value that this fraction of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(fraction * len(ordered)), len(ordered) - 1)]
