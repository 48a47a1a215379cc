"""Encodes and decodes frames with the suite's own codec.

See docs/reference/protocol/framing.md, "Remoting command".

It writes whatever is requested, including invalid frames, and reads strictly.
"""

import json
import re
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

import msgspec

RESPONSE: Final = 1
ONEWAY: Final = 2

VERSION: Final = 409
"""4.9.8: old enough for every server, and new enough for standard JSON in routes."""
LANGUAGE: Final = "PYTHON"
_LANGUAGE_CODE: Final = 3

_OWN_ERROR: Final = re.compile(r"[A-Z]\w*Error: ")

_FIXED: Final = struct.Struct(">hbhii")
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class MalformedError(ValueError):
    """The received bytes are not a frame, or its header is invalid."""


class Header(IntEnum):
    """The serialization byte."""

    JSON = 0
    BINARY = 1


class Frame(msgspec.Struct, frozen=True):
    """A request or a response. `msgspec.structs.replace` returns a changed copy."""

    code: int
    opaque: int = 0
    flag: int = 0
    fields: Mapping[str, str] = {}
    body: bytes = b""
    remark: str | None = None
    version: int = VERSION
    header: Header = Header.JSON
    language: str = LANGUAGE
    """Language in a JSON header; binary headers that we write always say Python."""

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE)

    @property
    def is_own_error(self) -> bool:
        """Return whether a server in Python failed at the request; a refusal has only its reason."""
        return _OWN_ERROR.match(self.remark or "") is not None


class _Members(msgspec.Struct):
    """The members of a JSON header that are read."""

    code: int
    opaque: int
    flag: int
    fields: dict[str, Any] | None = msgspec.field(default=None, name="extFields")
    remark: Any = None
    version: int = 0
    language: Any = ""


_DECODER: Final = msgspec.json.Decoder(_Members, strict=False)


def encode(frame: Frame) -> bytes:
    """Return the whole frame with its length field."""
    header = _binary_header(frame) if frame.header is Header.BINARY else _json_header(frame)
    return framed(header, frame.body, frame.header)


def framed(header: bytes, body: bytes = b"", serialization: int = Header.JSON) -> bytes:
    """Return a frame around arbitrary header bytes."""
    size = 4 + len(header) + len(body)
    return struct.pack(">iI", size, serialization << 24 | len(header)) + header + body


def _json_header(frame: Frame) -> bytes:
    members: dict[str, Any] = {
        "code": frame.code,
        "extFields": dict(frame.fields),
        "flag": frame.flag,
        "language": frame.language,
        "opaque": frame.opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": frame.version,
    }
    if frame.remark is not None:
        members["remark"] = frame.remark
    return _ENCODER.encode(members).encode()


def _binary_header(frame: Frame) -> bytes:
    entries = b"".join(map(entry, frame.fields, frame.fields.values()))
    remark = (frame.remark or "").encode()
    fixed = _FIXED.pack(frame.code, _LANGUAGE_CODE, frame.version, frame.opaque, frame.flag)
    return fixed + struct.pack(">i", len(remark)) + remark + struct.pack(">i", len(entries)) + entries


def entry(name: str, value: str) -> bytes:
    """Return one field of a binary header."""
    key, text = name.encode(), value.encode()
    return struct.pack(">h", len(key)) + key + struct.pack(">i", len(text)) + text


def take(buffer: bytearray) -> Frame | None:
    """Remove the first frame from the buffer and return it; None if more bytes are needed.

    Raises:
        MalformedError: these bytes are not a frame, or its header is invalid.
    """
    if len(buffer) < 4:
        return None
    end = 4 + int.from_bytes(buffer[:4], "big", signed=True)
    if not 8 <= end <= 1 << 28:
        raise MalformedError(f"a frame with a length of {end} bytes")
    if len(buffer) < end:
        return None
    payload = bytes(buffer[4:end])
    del buffer[:end]
    return _decode(payload)


def _decode(payload: bytes) -> Frame:
    end = 4 + int.from_bytes(payload[1:4], "big")
    if end > len(payload):
        raise MalformedError(f"a header of {end - 4} bytes in a frame of {len(payload)}")
    header, body = payload[4:end], payload[end:]
    try:
        match payload[0]:
            case Header.JSON:
                return _read_json(header, body)
            case Header.BINARY:
                return _read_binary(header, body)
    except (ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
        raise MalformedError(f"an inconsistent header: {error!r}") from None
    raise MalformedError(f"header serialization {payload[0]}")


def _read_json(header: bytes, body: bytes) -> Frame:
    members = _DECODER.decode(header)
    fields = members.fields or {}
    if wrong := [name for name, value in fields.items() if not isinstance(value, str)]:
        raise MalformedError(f"extFields {wrong[0]!r} is not a string")
    return Frame(
        code=members.code,
        opaque=members.opaque,
        flag=members.flag,
        fields=fields,
        body=body,
        remark=members.remark,
        version=members.version,
        language=str(members.language),
    )


def _read_binary(header: bytes, body: bytes) -> Frame:
    code, _, version, opaque, flag = _FIXED.unpack_from(header)
    remark, at = _sized(header, _FIXED.size, 4)
    entries, end = _sized(header, at, 4)
    if end != len(header):
        raise MalformedError(f"{len(header) - end} bytes after the fields of a binary header")
    fields, at = {}, 0
    while at < len(entries):
        name, at = _sized(entries, at, 2)
        value, at = _sized(entries, at, 4)
        fields[name.decode()] = value.decode()
    return Frame(
        code=code, opaque=opaque, flag=flag, fields=fields, body=body,
        remark=remark.decode() or None, version=version, header=Header.BINARY,
    )  # fmt: skip


def _sized(data: bytes, at: int, width: int) -> tuple[bytes, int]:
    """Return the bytes after a length of this width, and where they end."""
    begin = at + width
    end = begin + int.from_bytes(data[at:begin], "big")
    if end > len(data) or begin > len(data):
        raise MalformedError(f"a length at byte {at} goes beyond the header's {len(data)}")
    return data[begin:end], end
