"""Tests encoding and decoding commands in both serializations; the expected bytes are written by field.

Source: docs/reference/protocol/framing.md, "Remoting command".
"""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqproof.impl.remoting.command import Command, Serialization, decode, encode, new_request
from mqproof.impl.remoting.frame import FrameError

ROUTE_REQUEST = Command(code=105, opaque=7, fields={"topic": "T1"})

JSON_VECTOR = (
    b"\x00\x00\x00\x82"  # 130 bytes follow
    b"\x00\x00\x00\x7e"  # JSON, a header of 126 bytes
    b'{"code":105,"extFields":{"topic":"T1"},"flag":0,"language":"PYTHON","opaque":7,'
    b'"serializeTypeCurrentRPC":"JSON","version":409}'
)

BINARY_VECTOR = (
    b"\x00\x00\x00\x26"  # 38 bytes follow
    b"\x01\x00\x00\x22"  # binary, a header of 34 bytes
    b"\x00\x69"  # code 105
    b"\x03"  # language 3, PYTHON
    b"\x01\x99"  # version 409
    b"\x00\x00\x00\x07"  # opaque
    b"\x00\x00\x00\x00"  # flag
    b"\x00\x00\x00\x00"  # no remark
    b"\x00\x00\x00\x0d"  # 13 bytes of fields
    b"\x00\x05topic\x00\x00\x00\x02T1"
)


def test_a_request_is_written_as_json() -> None:
    assert encode(ROUTE_REQUEST) == JSON_VECTOR


def test_a_json_request_is_read() -> None:
    assert decode(JSON_VECTOR[4:]) == ROUTE_REQUEST


def test_a_request_is_written_in_binary() -> None:
    binary = Command(105, 7, fields={"topic": "T1"}, serialization=Serialization.BINARY)
    assert encode(binary) == BINARY_VECTOR
    assert decode(BINARY_VECTOR[4:]) == binary


_int32 = st.integers(-(2**31), 2**31 - 1)
_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    code=st.integers(-(2**15), 2**15 - 1),
    opaque=_int32,
    flag=_int32,
    fields=st.dictionaries(_texts, _texts, max_size=4),
    body=st.binary(max_size=50),
    remark=st.none() | _texts,
    serialization=st.sampled_from(Serialization),
)
def test_every_command_is_decoded_unchanged(
    code: int,
    opaque: int,
    flag: int,
    fields: dict[str, str],
    body: bytes,
    remark: str | None,
    serialization: Serialization,
) -> None:
    command = Command(code, opaque, flag, fields, body, remark, serialization=serialization)
    assert decode(encode(command)[4:]) == command


@given(st.binary(max_size=80))
def test_garbage_is_a_frame_error_or_a_command(frame: bytes) -> None:
    with suppress(FrameError):
        decode(frame)


@given(st.binary(max_size=60), st.integers(0, 1))
def test_a_garbage_header_is_a_frame_error_or_a_command(header: bytes, kind: int) -> None:
    with suppress(FrameError):
        decode(bytes([kind]) + len(header).to_bytes(3, "big") + header)


def test_field_values_without_quotes_become_text() -> None:
    header = b'{"code":11,"opaque":1,"flag":0,"extFields":{"a":3,"b":true,"c":null,"d":"x"},"other":[1]}'
    command = decode(struct.pack(">I", len(header)) + header)
    assert command.fields == {"a": "3", "b": "true", "d": "x"}


def test_an_empty_remark_equals_no_remark() -> None:
    header = b'{"code":0,"opaque":1,"flag":1,"remark":"","extFields":{}}'
    assert decode(struct.pack(">I", len(header)) + header).remark is None


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "at least 4"),
        (b"\x00\x00\x00\x05{}", "5 bytes announced in a frame of 6"),
        (b"\x02\x00\x00\x00", "serialization 2"),
        (b"\xff" + JSON_VECTOR[5:], "serialization 255"),
        (b"\x00\x00\x00\x02{}", "code"),
        (b"\x00\x00\x00\x02[]", "not a command"),
        (b"\x00\x00\x00\x01{", "not JSON"),
        (b'\x00\x00\x00\x20{"code":99999999999,"opaque":1 }', "<= 2147483647 - at `\\$.code`"),
        (b'\x00\x00\x00\x21{"code":-99999999999,"opaque":1 }', ">= -2147483648 - at `\\$.code`"),
        (b'\x00\x00\x00\x20{"code":1,"opaque":99999999999 }', "<= 2147483647 - at `\\$.opaque`"),
        (b'\x00\x00\x00\x21{"code":1,"version":99999999999 }', "<= 2147483647 - at `\\$.version`"),
        (b'\x00\x00\x00\x1f{"code":1,"flag":-99999999999 }', ">= -2147483648 - at `\\$.flag`"),
        (b"\x01\x00\x00\x04\x00\x69\x03\x01", "is invalid"),
        (BINARY_VECTOR[4:25] + b"\x7f\xff\xff\xff" + BINARY_VECTOR[29:], "a length of"),
    ],
)
def test_bytes_that_are_not_a_command_are_refused(frame: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        decode(frame)


@pytest.mark.parametrize("language", [14, 99, -1, -128])
def test_an_unknown_language_code_becomes_no_language(language: int) -> None:
    frame = bytearray(BINARY_VECTOR[4:])
    frame[6] = language & 0xFF
    assert decode(bytes(frame)).language is None


def test_an_empty_value_is_lost_in_the_binary_header() -> None:
    command = Command(1, 1, fields={"empty": "", "full": "x"}, serialization=Serialization.BINARY)
    assert decode(encode(command)[4:]).fields == {"full": "x"}


def test_an_answer_keeps_opaque_and_serialization_and_is_a_response() -> None:
    request = Command(105, 9, serialization=Serialization.BINARY)
    answer = request.answer(17, remark="no")
    assert (answer.opaque, answer.code, answer.is_response, answer.is_oneway) == (9, 17, True, False)
    assert answer.serialization is Serialization.BINARY


def test_each_request_has_its_own_opaque() -> None:
    assert new_request(1).opaque != new_request(1).opaque
    assert new_request(1, oneway=True).is_oneway
