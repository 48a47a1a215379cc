"""Mutants of the wire: our name server and broker, on loopback in this process, with one wrong protocol rule.

The wrong rule concerns frames, headers or codes. Each mutant names the wire case that must detect it.
"""

import re
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from msgspec import structs

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.hosts.loopback_servers import loopback_servers
from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.remoting import command, headers, request_handler
from mqproof.impl.remoting.channel import Channel, Handler, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.frame import LENGTH_BYTES, read_frame
from mqproof.impl.remoting.headers import Header, HeaderError, OffsetResponse

H = TypeVar("H", bound=Header)


@contextmanager
def serving() -> Iterator[str]:
    """Yield the name server address of our cluster, which runs in a thread until the block ends."""
    with expected_warnings("mqproof.impl"), loopback_servers() as servers:
        yield str(servers.name_server)


# Frames


def _whatever_came(buffer: bytearray, frame_bytes_max: int) -> bytes | None:
    if len(buffer) <= LENGTH_BYTES:
        return None
    end = LENGTH_BYTES + int.from_bytes(buffer[:LENGTH_BYTES], "big")
    buffer[:LENGTH_BYTES] = (min(end, len(buffer)) - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "big")
    return read_frame(buffer, frame_bytes_max)


def _one_frame_a_read(channel: Channel) -> None:
    frame = read_frame(channel._buffer, channel._limits.frame_bytes_max)
    if frame is not None:
        channel._take(command.decode(frame), len(frame))
    channel._account()


# Answers


_answer, _encode_json = Command.answer, command._encode_json


def _without_sign(request: Command, *arguments: Any, **named: Any) -> Command:
    unsigned = structs.replace(request, opaque=request.opaque & 0x7FFF_FFFF)
    return _answer(unsigned, *arguments, **named)


def _one_way_too(channel: Channel, _request: Command, reply: Reply) -> None:
    if reply is not None:
        channel._write(reply)


# Headers


def _bare_offset(answer: Command) -> bytes:
    return re.sub(rb'"offset":"(-?\d+)"', rb'"offset":\1', _encode_json(answer))


def _long_key(name: str, value: str) -> bytes:
    key, content = name.encode(), value.encode()
    return b"".join((len(key).to_bytes(4, "big"), key, len(content).to_bytes(4, "big"), content))


_read, _write = headers.read, headers.write


def _known_fields_only(kind: type[H], fields: dict[str, str]) -> H:
    if unknown := fields.keys() - set(kind.__struct_encode_fields__):
        raise HeaderError(f"{kind.__name__}: unknown fields {', '.join(sorted(unknown))}")
    return _read(kind, fields)


def _without_zero(header: Header) -> dict[str, str]:
    fields = _write(header)
    return {} if isinstance(header, OffsetResponse) and fields["offset"] == "0" else fields


# Codes


_handler = request_handler.handler


def _unknown_fails(processors: Mapping[int, Handler]) -> Handler:
    known = _handler(processors)

    def handle(request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
        if request.code in processors:
            return known(request, channel)
        return request.answer(ResponseCode.SYSTEM_ERROR, remark="unknown request")

    return handle


def _unknown_ends_it(processors: Mapping[int, Handler]) -> Handler:
    known = _handler(processors)

    def handle(request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
        if request.code not in processors:
            channel._loop.call_soon(channel.close)
        return known(request, channel)

    return handle


_CHANNEL: Final = "mqproof.impl.remoting.channel"
_COMMAND: Final = "mqproof.impl.remoting.command"
_HEADERS: Final = "mqproof.impl.remoting.headers"
_BROKER: Final = "mqproof.impl.broker.broker"

MUTANTS: Final = by_name(
    Mutant(
        "cut-frame-taken", "the received part of a frame is treated as the whole frame",
        "remoting/max-offset/7",
        f"{_CHANNEL}:read_frame", _whatever_came,
    ),
    Mutant(
        "one-frame-a-read", "if several frames arrive together, all but the first wait for further bytes",
        "remoting/max-offset/6", f"{_CHANNEL}:Channel._read_frames", _one_frame_a_read,
    ),
    Mutant(
        "opaque-unsigned", "the sign of an opaque is lost", "remoting/max-offset/8",
        f"{_COMMAND}:Command.answer", _without_sign,
    ),
    Mutant(
        "one-way-answered", "a one-way request is answered", "remoting/max-offset/5",
        f"{_CHANNEL}:Channel._answer", _one_way_too,
    ),
    Mutant(
        "number-unquoted", "a numeric field is not encoded as a string", "remoting/max-offset/1",
        f"{_COMMAND}:_encode_json", _bare_offset,
    ),
    Mutant(
        "zero-left-out", "an offset of 0 is omitted", "remoting/min-offset/1",
        f"{_HEADERS}:write", _without_zero,
    ),
    Mutant(
        "long-key", "a key of the binary header has a length of four bytes", "remoting/max-offset/2",
        f"{_COMMAND}:_encode_field", _long_key,
    ),
    Mutant(
        "unknown-field-refused", "a request with an unknown field is refused",
        "remoting/max-offset/3", f"{_HEADERS}:read", _known_fields_only,
    ),
    Mutant(
        "unknown-code-fails", "an unknown request code is answered with SYSTEM_ERROR",
        "remoting/code/batch", f"{_BROKER}:handler", _unknown_fails,
    ),
    Mutant(
        "unknown-code-hangs-up", "an unknown request code closes the connection",
        "remoting/code/goes-on", f"{_BROKER}:handler", _unknown_ends_it,
    ),
)  # fmt: skip
"""The mutants by name; the wire case with the id in `breaks` detects each one."""
