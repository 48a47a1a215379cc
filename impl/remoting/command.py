"""A command: one request or one response, as bytes and as an object.

The header is JSON or the ROCKETMQ binary form. The first byte of each frame says which one, independently of
earlier frames. See docs/reference/protocol/framing.md, "Remoting command".
"""

import itertools
import struct
from enum import IntEnum
from typing import Annotated, Any, Final

import msgspec

from mqproof.impl.remoting.frame import LENGTH_BYTES, FrameError

VERSION: Final = 409
"""The protocol version that we announce: the ordinal of 4.9.8, whose behaviour we implement."""

VERSION_NAME: Final = "V4_9_8"
IMPLEMENTATION_KEY: Final = "implementation"
"""A key in a broker's runtime information; released brokers have no such key."""

LANGUAGE: Final = "PYTHON"

HEADER_BYTES_MAX: Final = 1 << 20
"""The maximum size of a header. Its length field could announce 16 times as much."""
FIELDS_MAX: Final = 1000
"""The maximum number of fields in a header."""

_FRONT: Final = struct.Struct(">II")
"""The length of the frame, then the serialization in one byte and the length of the header in three."""

_RESPONSE: Final = 1
_ONEWAY: Final = 2


class Serialization(IntEnum):
    JSON = 0
    BINARY = 1


class Command(msgspec.Struct, frozen=True):
    """One request or response. It is a msgspec struct, because tens of thousands are created per second."""

    code: int
    """A request code in a request, a response code in a response; see impl.remoting.codes."""
    opaque: int
    """The number that matches a response with its request."""
    flag: int = 0
    fields: dict[str, str] = {}
    """The operation's own header, flattened to strings."""
    body: bytes = b""
    """Empty and absent are the same on the wire."""
    remark: str | None = None
    """Text for people, usually the reason for a refusal."""
    version: int = VERSION
    language: str | None = LANGUAGE
    serialization: Serialization = Serialization.JSON

    @property
    def is_response(self) -> bool:
        return bool(self.flag & _RESPONSE)

    @property
    def is_oneway(self) -> bool:
        """Whether it is a request that must not be answered, not even with an error."""
        return bool(self.flag & _ONEWAY)

    def answer(
        self, code: int, fields: dict[str, str] | None = None, body: bytes = b"", remark: str | None = None
    ) -> "Command":
        """Return the response to this request, in the same serialization."""
        return Command(
            code, self.opaque, _RESPONSE, fields or {}, body, remark, VERSION, LANGUAGE, self.serialization
        )


_opaques = itertools.count()


def new_request(
    code: int, fields: dict[str, str] | None = None, body: bytes = b"", *, oneway: bool = False
) -> Command:
    """Return a request with its own opaque number, within the signed 32 bits that it has on the wire."""
    return Command(
        code=code,
        opaque=next(_opaques) & 0x7FFF_FFFF,
        flag=_ONEWAY if oneway else 0,
        fields=fields or {},
        body=body,
    )


def encode(command: Command) -> bytes:
    """Return the whole frame, including its length field, ready to be written.

    Raises:
        ValueError: the header exceeds HEADER_BYTES_MAX, or contains text that is not Unicode.
    """
    kind, body = command.serialization, command.body
    header = _encode_json(command) if kind is Serialization.JSON else _encode_binary(command)
    size = len(header)
    if size > HEADER_BYTES_MAX:
        raise ValueError(f"a header of {size} bytes, at most {HEADER_BYTES_MAX} expected")
    front = _FRONT.pack(_FRONT.size - LENGTH_BYTES + size + len(body), kind << 24 | size)
    return b"".join((front, header, body))


def decode(frame: bytes) -> Command:
    """Return the command in a frame, which is passed without its length field.

    Raises:
        FrameError: the frame is too short, the header is longer than the frame or a limit, it has too many
            fields, the serialization is unknown, or the header does not match its serialization.
    """
    if len(frame) < 4:
        raise FrameError(f"a frame of {len(frame)} bytes, at least 4 expected")
    kind = frame[0]
    end = 4 + int.from_bytes(frame[1:4], "big")
    if end - 4 > HEADER_BYTES_MAX:
        raise FrameError(f"a header of {end - 4} bytes announced, at most {HEADER_BYTES_MAX} expected")
    if end > len(frame):
        raise FrameError(f"a header of {end - 4} bytes announced in a frame of {len(frame)}")
    header, body = frame[4:end], frame[end:]
    if kind == Serialization.JSON:
        return _decode_json(header, body)
    if kind == Serialization.BINARY:
        return _decode_binary(header, body)
    raise FrameError(f"header serialization {kind}, 0 (JSON) or 1 (ROCKETMQ) expected")


# The JSON header.

_Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
_Scalar = str | int | float | bool | None


class _JsonHeader(msgspec.Struct, omit_defaults=True):
    """The JSON header. Its members are in the order in which RocketMQ writes them."""

    code: _Int32
    ext_fields: dict[str, str] | None = msgspec.field(name="extFields", default=None)
    flag: _Int32 = msgspec.field(default_factory=int)
    language: str | None = None
    opaque: _Int32 = msgspec.field(default_factory=int)
    remark: str | None = None
    serialization: str = msgspec.field(name="serializeTypeCurrentRPC", default="")
    version: _Int32 = msgspec.field(default_factory=int)


class _LooseJsonHeader(_JsonHeader):
    """A JSON header whose field values need not be strings, because some peers do not quote them."""

    ext_fields: dict[str, _Scalar] | None = msgspec.field(  # type: ignore[assignment]  # intentionally wider
        name="extFields", default=None
    )


_json_encoder = msgspec.json.Encoder()
_json_decoder = msgspec.json.Decoder(_JsonHeader)
_loose_json_decoder = msgspec.json.Decoder(_LooseJsonHeader, strict=False)


def _encode_json(command: Command) -> bytes:
    return _json_encoder.encode(
        _JsonHeader(
            command.code,
            command.fields or None,
            command.flag,
            command.language,
            command.opaque,
            command.remark,
            "JSON",
            command.version,
        )
    )


def _decode_json(header: bytes, body: bytes) -> Command:
    try:
        read = _json_decoder.decode(header)
        fields = read.ext_fields or {}
    except (msgspec.ValidationError, RecursionError):
        read, fields = _decode_loose_json(header)
    except ValueError as error:  # msgspec's own errors, and invalid UTF-8
        raise FrameError(f"the header is not JSON: {error}") from None
    _check_count(fields)
    return Command(
        read.code,
        read.opaque,
        read.flag,
        fields,
        body,
        read.remark or None,
        read.version,
        read.language,
        Serialization.JSON,
    )


def _decode_loose_json(header: bytes) -> tuple[_JsonHeader, dict[str, str]]:
    try:
        read = _loose_json_decoder.decode(header)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"the header is not a command: {error}") from None
    loose: dict[str, Any] = read.ext_fields or {}
    return read, {name: _as_text(value) for name, value in loose.items() if value is not None}


def _check_count(fields: dict[str, str]) -> None:
    if len(fields) > FIELDS_MAX:
        raise FrameError(f"{len(fields)} fields in a header, at most {FIELDS_MAX} expected")


def _as_text(value: _Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# The binary header.

# fmt: off
_LANGUAGES: Final = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY",
    "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
)
# fmt: on
"""The names, indexed by language code."""

_FIXED: Final = struct.Struct(">hbhii")  # code, language, version, opaque, flag
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def _encode_binary(command: Command) -> bytes:
    assert -(1 << 15) <= command.code < 1 << 15, f"code {command.code} does not fit the binary header"
    language = _LANGUAGES.index(command.language) if command.language in _LANGUAGES else 7
    remark = (command.remark or "").encode()
    fields = b"".join(_encode_field(name, value) for name, value in command.fields.items())
    return b"".join(
        (
            _FIXED.pack(command.code, language, command.version, command.opaque, command.flag),
            _INT32.pack(len(remark)),
            remark,
            _INT32.pack(len(fields)),
            fields,
        )
    )


def _encode_field(name: str, value: str) -> bytes:
    key, content = name.encode(), value.encode()
    return b"".join((_INT16.pack(len(key)), key, _INT32.pack(len(content)), content))


def _decode_binary(header: bytes, body: bytes) -> Command:
    try:
        code, language, version, opaque, flag = _FIXED.unpack_from(header)
        remark, at = _take(header, _FIXED.size, _INT32)
        pairs, _ = _take(header, at, _INT32)
        fields = _decode_fields(pairs)
        _check_count(fields)
        return Command(
            code,
            opaque,
            flag,
            fields,
            body,
            remark.decode() or None,
            version,
            _LANGUAGES[language] if 0 <= language < len(_LANGUAGES) else None,
            Serialization.BINARY,
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise FrameError(f"the binary header is invalid: {error}") from None


def _decode_fields(pairs: bytes) -> dict[str, str]:
    fields = {}
    at = 0
    while at < len(pairs):
        name, at = _take(pairs, at, _INT16)
        value, at = _take(pairs, at, _INT32)
        # RocketMQ reads an empty string as absent, and so do we.
        if name and value:
            fields[name.decode()] = value.decode()
    return fields


def _take(data: bytes, at: int, length: struct.Struct) -> tuple[bytes, int]:
    """Return the bytes at `at` that follow their length, and the position after them."""
    (size,) = length.unpack_from(data, at)
    start = at + length.size
    if size < 0 or start + size > len(data):
        raise FrameError(f"a length of {size} in a header with {len(data) - start} bytes left")
    return data[start : start + size], start + size
