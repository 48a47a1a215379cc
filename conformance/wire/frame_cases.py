"""Cases about frames and headers that belong to no operation, at brokers and name servers.

Each requests the route of a topic. A broker does not support that, and a name server has no such route. So
the answer's code does not matter here, only its existence.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any, Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import LANGUAGE, VERSION, Header, entry, framed
from mqproof.conformance.wire.model import ANY, Call, Case, Expect, Request, Server, Step, Strength, Written

_ROUTE: Final = 105
_OPAQUE: Final = 77
_ANSWERED: Final = {
    Server.BROKER: Expect(codes=(3,)),
    Server.NAME_SERVER: Expect(codes=(17,)),
}
_WITHOUT_TOPIC: Final = {**_ANSWERED, Server.NAME_SERVER: ANY}
"""For a route query without its topic, which a name server may refuse with any code."""
_SLUGS: Final = {Server.BROKER: "frame", Server.NAME_SERVER: "frame-of-name-server"}
_FRAME: Final = chapters.REMOTING_FRAME
_COMMAND: Final = chapters.REMOTING_COMMAND
_FIXED: Final = struct.Struct(">hbhii")


def frame_cases() -> Iterator[Case]:
    for server in _SLUGS:
        for number, (title, source, strength, steps) in enumerate(_cases(server), 1):
            yield Case(f"remoting/{_SLUGS[server]}/{number}", title, server, source, steps, strength=strength)


_Row = tuple[str, str, Strength, tuple[Step, ...]]


def _cases(server: Server) -> Iterator[_Row]:
    """Yield the cases.

    Add new ones at the end of each function, and new functions at the end: numbers are stable.
    """
    yield from _broken_frames(server)
    yield from _json_headers(server)
    yield from _binary_headers(server)
    yield from _whole_frames(server)


def _broken_frames(server: Server) -> Iterator[_Row]:
    header = _json()
    for title, data in (
        ("a length of zero", struct.pack(">i", 0) + bytes(64)),
        ("a length of three, less than the header word", struct.pack(">i", 3) + bytes(64)),
        ("a negative length", struct.pack(">i", -1) + bytes(64)),
        ("the smallest length", struct.pack(">i", -(2**31)) + bytes(64)),
        ("a frame of 16 MiB and a byte", struct.pack(">i", (1 << 24) - 3) + bytes(1 << 16)),
        ("the greatest length", struct.pack(">i", 2**31 - 1) + bytes(1 << 16)),
        ("a header longer than its frame", struct.pack(">iI", 4 + len(header), len(header) + 1) + header),
        ("the greatest header length", struct.pack(">iI", 4 + len(header), (1 << 24) - 1) + header),
        ("header serialization 2", framed(header, serialization=2)),
        ("header serialization 255", framed(header, serialization=255)),
        ("text instead of a frame", b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
    ):
        steps = (Written(data, closes=True), _call(server))
        yield f"{title} closes the connection, and no other one", _FRAME, Strength.SHOULD, steps


def _json_headers(server: Server) -> Iterator[_Row]:
    for title, header in (
        ("an empty JSON header", b""),
        ("a header that is not JSON", b"{code:"),
        ("a JSON header that is an array", b"[]"),
        ("a JSON header whose code is a text", _json(code="x")),
    ):
        steps: tuple[Step, ...] = (Written(framed(header)), _call(server, "b"))
        yield f"{title} does not affect other connections", _COMMAND, Strength.MUST, steps
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("a header without extFields", {"extFields": None}),
        ("a header without remark and serializeTypeCurrentRPC", {"serializeTypeCurrentRPC": None}),
        ("an empty remark, as Go and C++ clients send it", {"remark": ""}),
        ("an unknown member of the header", {"wireUnknown": [1]}),
        ("numbers and booleans in extFields", {"extFields": {"topic": "wire_absent", "n": 1, "b": True}}),
        ("version 0", {"version": 0}),
        ("the greatest version", {"version": 2**31 - 1}),
        ("the version of Go clients", {"version": 317}),
        ("the language CPP", {"language": "CPP"}),
        ("the language OTHER", {"language": "OTHER"}),
        ("a flag with undefined bits", {"flag": 16}),
        ("a negative opaque", {"opaque": -5}),
    )
    for title, members in changes:
        opaque = members.get("opaque", _OPAQUE)
        expect = (_WITHOUT_TOPIC if "extFields" in members and not members["extFields"] else _ANSWERED)[
            server
        ]
        steps = (Written(framed(_json(**members)), answers=opaque, expect=expect),)
        yield f"{title} is answered", _COMMAND, Strength.MUST, steps
    spaced = json.dumps(json.loads(_json()), indent=2).encode()
    steps = (Written(framed(spaced), answers=_OPAQUE, expect=_ANSWERED[server]),)
    yield "a JSON header with spaces and line breaks is answered", _COMMAND, Strength.MUST, steps
    unknown = framed(_json(language="WIRE"))
    yield (
        "an unknown language is answered", _COMMAND, Strength.SHOULD,
        (Written(unknown, answers=_OPAQUE, expect=_ANSWERED[server]),),
    )  # fmt: skip


def _binary_headers(server: Server) -> Iterator[_Row]:
    topic = entry("topic", "wire_absent")
    for title, header in (
        ("a binary header", _binary(topic)),
        ("a binary header of an unknown language", _binary(topic, language=99)),
        ("a binary header with a remark", _binary(topic, remark=b"wire")),
        ("a binary header with an unknown field", _binary(topic + entry("wire", "1"))),
        ("a binary header with an empty value", _binary(topic + entry("wire", ""))),
        ("a binary header with a repeated field", _binary(entry("topic", "other") + topic)),
    ):
        steps: tuple[Step, ...] = (Written(_as_binary(header), answers=_OPAQUE, expect=_ANSWERED[server]),)
        yield f"{title} is answered", _COMMAND, Strength.MUST, steps
    bare = Written(_as_binary(_binary(b"")), answers=_OPAQUE, expect=_WITHOUT_TOPIC[server])
    yield "a binary header without fields is answered", _COMMAND, Strength.MUST, (bare,)
    for title, header in (
        ("a binary header of 20 bytes", _binary(b"")[:-1]),
        ("a remark longer than the binary header", _binary(b"", remark_size=1 << 20)),
        ("fields longer than the binary header", _binary(topic, fields_size=1 << 20)),
        (
            "a value longer than the fields",
            _binary(struct.pack(">h", 1) + b"k" + struct.pack(">i", 99) + b"v"),
        ),
    ):
        steps = (Written(_as_binary(header)), _call(server, "b"))
        yield f"{title} does not affect other connections", _COMMAND, Strength.MUST, steps


def _whole_frames(server: Server) -> Iterator[_Row]:
    plain = framed(_json())
    large = framed(_json(), bytes(1 << 20))
    answered = _ANSWERED[server]
    yield (
        "a body that the operation does not know is ignored", _COMMAND, Strength.MUST,
        (Written(framed(_json(), b"wire"), answers=_OPAQUE, expect=answered),),
    )  # fmt: skip
    yield (
        "a body of 1 MiB is accepted", _FRAME, Strength.MUST,
        (Written(large, answers=_OPAQUE, expect=answered), _call(server)),
    )  # fmt: skip
    yield (
        "the next frame is read after one of the other serialization", _COMMAND, Strength.MUST,
        (
            Written(_as_binary(_binary(entry("topic", "wire_absent"))) + framed(_json(opaque=78)),
                    answers=_OPAQUE, expect=answered),
            Written(b"", answers=78, expect=answered),
        ),
    )  # fmt: skip
    yield (
        "an answer without a request is ignored", _COMMAND, Strength.MUST,
        (Written(framed(_json(flag=1, opaque=12345, code=0))), _call(server)),
    )  # fmt: skip
    yield (
        "a connection closed in the middle of a frame does not affect others", _FRAME, Strength.MUST,
        (Written(plain[:30]), _call(server, "b")),
    )  # fmt: skip


def _call(server: Server, connection: str = "a") -> Call:
    return Call(Request(_ROUTE, {"topic": "wire_absent"}), _ANSWERED[server], connection=connection)


def _json(**changed: Any) -> bytes:
    """Return the header of a route query with changed members; members that are None are omitted."""
    members = {
        "code": _ROUTE, "extFields": {"topic": "wire_absent"}, "flag": 0, "language": LANGUAGE,
        "opaque": _OPAQUE, "serializeTypeCurrentRPC": "JSON", "version": VERSION, **changed,
    }  # fmt: skip
    present = {name: value for name, value in members.items() if value is not None}
    return json.dumps(present, separators=(",", ":")).encode()


def _binary(
    entries: bytes,
    *,
    language: int = 3,
    remark: bytes = b"",
    remark_size: int | None = None,
    fields_size: int | None = None,
) -> bytes:
    fixed = _FIXED.pack(_ROUTE, language, VERSION, _OPAQUE, 0)
    remark_bytes = struct.pack(">i", len(remark) if remark_size is None else remark_size) + remark
    return (
        fixed
        + remark_bytes
        + struct.pack(">i", len(entries) if fields_size is None else fields_size)
        + entries
    )


def _as_binary(header: bytes) -> bytes:
    return framed(header, serialization=Header.BINARY)
