"""Tests that each decoder, for any bytes, returns a value or raises only the error that it documents.

Method: valid inputs of every decoder, changed by insertions that are difficult for parsers; no decoder is
exempt.
"""

import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqproof.impl.client.connection import records, routes
from mqproof.impl.namesrv.registration_body import read_body
from mqproof.impl.remoting import address_server, bodies, headers, java_json
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.command import Command, Serialization, decode, encode
from mqproof.impl.remoting.frame import LENGTH_BYTES, FrameError, read_frame
from mqproof.impl.remoting.headers import Header, HeaderError, RegisterBrokerRequest
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.remoting.message import Message, decode_properties
from mqproof.impl.store.files import record
from mqproof.impl.store.files.record import RecordError

INSERTS = [
    *(bytes([byte]) for byte in (0, 1, 2, 0x7F, 0x80, 0xC3, 0xED, 0xF9, 0xFF)),
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"'", b"{0:", b'{"":1,"\xf9"'),
    *(
        b"null",
        b"true",
        b"NaN",
        b"-1",
        b"1.5",
        b"1e999",
        b"9" * 20,
        b"9" * 5000,
        b'"\\ud800"',
        b"\xed\xa0\x80",
    ),
    *(b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"[" * 1500, b'{"a":' * 1500),
]
"""Insertions that are difficult for parsers: bad UTF-8, lone surrogates, long numbers, wrong lengths."""
LONG_BYTES, LONG_STEP = 1000, 7
"""Long insertions go to every seventh position only, because a parser takes a millisecond for one."""


def spoilt(valid: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Return `valid` with insertions that replace its bytes or go between them."""
    for place, over, insert in edits:
        at = place % (len(valid) + 1)
        valid = valid[:at] + insert + valid[at + over :]
    return valid


_edits = st.lists(
    st.tuples(st.integers(0, 4095), st.integers(0, 6), st.sampled_from(INSERTS) | st.binary(max_size=6)),
    max_size=3,
)


@dataclass(frozen=True)
class Decoder:
    read: Callable[[bytes], Any]
    errors: tuple[type[Exception], ...]
    valid: tuple[bytes, ...]


def _payload(command: Command) -> bytes:
    return encode(command)[LENGTH_BYTES:]


def _json_header(text: str) -> bytes:
    return len(text).to_bytes(4, "big") + text.encode()


def _record() -> bytes:
    draft = record.encode(Message("T", b"hello", {"TAGS": "TagA"}, 3, born_timestamp_ms=1_700_000_000_000))
    record.place(draft, 7, 1024, 1_700_000_000_123)
    return bytes(draft)


def _messages(body: bytes) -> None:
    """Decode an answer's body as a pull consumer does, and report it."""
    for stored in records.read_records(body):
        assert stored.message_id


_TOPICS = bodies.TopicConfigs(bodies.DataVersion(1, 2), {"T": bodies.TopicConfig("T")})
_ROUTE = bodies.TopicRoute(
    [bodies.BrokerData({0: "10.0.0.1:10911"}, "b", "C")], [bodies.QueueData("b", 6, 4, 0, 4)]
)
BODIES: dict[type[Any], Any] = {
    bodies.TopicConfigs: _TOPICS,
    bodies.RegisterBrokerBody: bodies.RegisterBrokerBody(_TOPICS),
    bodies.TopicRoute: _ROUTE,
    bodies.ClusterInfo: bodies.ClusterInfo({"b": _ROUTE.broker_datas[0]}, {"C": ["b"]}),
    bodies.Heartbeat: bodies.Heartbeat(
        "c", [bodies.ConsumerData("G", subscription_data_set=[bodies.Subscription("T")])]
    ),
    bodies.ConsumerIds: bodies.ConsumerIds(["c"]),
}
_REGISTRATION = RegisterBrokerRequest("b", "1.2.3.4:5", "C", "1.2.3.4:6", 0, compressed=True)


def _deflated() -> bytes:
    fields = (b'{"counter":1,"timestamp":2}', b"T 4 4 6 SINGLE_TAG", b"[]")
    version, topic, filter_servers = (len(field).to_bytes(4, "big") + field for field in fields)
    return version + (1).to_bytes(4, "big") + topic + filter_servers


DECODERS = {
    "frame": Decoder(
        lambda data: read_frame(bytearray(data)), (FrameError,), (encode(Command(10, 1, body=b"x")),)
    ),
    "command": Decoder(
        decode,
        (FrameError,),
        (
            *(_payload(Command(10, 1, 0, {"a": "b"}, b"x", "r", serialization=s)) for s in Serialization),
            _json_header('{"code":11,"opaque":1,"extFields":{"a":1,"b":true,"c":null,"d":1.5},"x":[]}'),
        ),
    ),
    **{
        f"body {kind.__name__}": Decoder(
            lambda data, kind=kind: java_json.read(kind, data),  # type: ignore[misc]  # bound in the loop
            (BodyError,),
            (java_json.write(value), java_json.write(value, standard=True)),
        )
        for kind, value in BODIES.items()
    },
    "registration": Decoder(
        lambda data: read_body(_REGISTRATION, zlib.compress(data)), (BodyError,), (_deflated(),)
    ),
    "deflated registration": Decoder(
        lambda data: read_body(_REGISTRATION, data), (BodyError,), (zlib.compress(_deflated()),)
    ),
    "record": Decoder(record.decode, (RecordError,), (_record(),)),
    "pulled messages": Decoder(_messages, (ValueError,), (_record() * 2,)),
    "route": Decoder(
        lambda data: routes._read_route("T", data), (RemotingError,), (java_json.write(_ROUTE),)
    ),
    "name servers": Decoder(
        lambda data: address_server.parse_addresses(address_server._text(data)),
        (ValueError,),
        (b"HTTP/1.0 200 OK\r\n\r\n10.0.0.1:9876;10.0.0.2:9876\n",),
    ),
    "properties": Decoder(
        lambda data: decode_properties(data.decode(errors="replace")), (), (b"a\x01b\x02c\x01d\x02",)
    ),
}


def _is_read(decoder: Decoder, data: bytes) -> bool:
    """Return whether the decoder gave a value; False when it raised its documented error."""
    try:
        decoder.read(data)
    except decoder.errors as error:
        if isinstance(error, UnicodeError):
            raise
        return False
    return True


@pytest.mark.parametrize("name", DECODERS)
def test_each_insertion_at_each_position_gives_a_value_or_the_documented_error(name: str) -> None:
    decoder = DECODERS[name]
    outcomes = {
        _is_read(decoder, spoilt(valid, [(at, over, insert)]))
        for valid in decoder.valid
        for insert in INSERTS
        for at in range(0, len(valid) + 1, LONG_STEP if len(insert) > LONG_BYTES else 1)
        for over in (0, len(insert))
    }
    assert outcomes == ({True, False} if decoder.errors else {True})


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
def test_several_insertions_give_a_value_or_the_documented_error(name: str, data: st.DataObject) -> None:
    decoder = DECODERS[name]
    _is_read(decoder, spoilt(data.draw(st.sampled_from(decoder.valid)), data.draw(_edits)))


@pytest.mark.parametrize("name", DECODERS)
def test_every_input_is_valid_before_it_is_changed(name: str) -> None:
    for valid in DECODERS[name].valid:
        DECODERS[name].read(valid)


HEADERS = sorted(
    (kind for kind in vars(headers).values() if isinstance(kind, type) and issubclass(kind, Header)),
    key=lambda kind: kind.__name__,
)
_values = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "-1", "1.5", "1e999", "nan", "9" * 20, "9" * 5000, "TRUE", "\u0663", "1_0", " 1", "null"]
)


# All headers have the same reader, so a third of the examples is enough for each.
@pytest.mark.parametrize("kind", HEADERS)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_an_operation_header_is_read_or_refused(kind: type[Header], data: st.DataObject) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(kind)] + ["unknown"]
    fields = data.draw(st.dictionaries(st.sampled_from(names), _values))
    with suppress(HeaderError):
        headers.read(kind, fields)


@pytest.mark.parametrize(
    "header",
    [
        b'{"extFields":{"":1,"\xf9"',
        b'{"code":1,"extFields":{"a":1,"b":"\xff"}}',
        b'{"code":1,"extFields":{"a":1},"remark":"\xed\xa0\x80"}',
        b'{"code":1,"extFields":{"a":"\\ud800"}}',
    ],
)
def test_invalid_text_in_a_header_is_a_frame_error_in_both_decoders(header: bytes) -> None:
    with pytest.raises(FrameError, match="the header is not"):
        decode(len(header).to_bytes(4, "big") + header)
