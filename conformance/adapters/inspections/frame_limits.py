"""Frames and headers at their limits, compared byte for byte with the answers; and tags of any characters.

See docs/reference/protocol/framing.md and messages.md, "Tag codes".
"""

import asyncio
import json
import struct
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import make_topic, records, send
from mqproof.conformance.answers.stored_record import java_hash
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame, Header, encode, entry, framed
from mqproof.impl.runtime.network import Connection

_OFFSET, _UNKNOWN = 30, 9999
_ASKED: Final = {"topic": "t", "queueId": "0"}
_FIELDS_MAX: Final = 1000
_HEADER_MAX: Final = 1 << 20
_FRAME_MAX: Final = 16 << 20
_CLOSED: Final = b"closed"
_TAGS: Final = ("zzzzzz", "ä", "\u20ac\U0001f600", "x" * 256, "y" * 257, "polygenelubricants")
"""Tags with codes of both signs, of several bytes, and longer than a table of powers."""


class _Line:
    """A connection that keeps the bytes which it receives."""

    def __init__(self) -> None:
        self.got = b""

    def opened(self, _connection: Connection) -> "_Line":
        return self

    def received(self, data: bytes) -> None:
        self.got += data

    def closed(self) -> None:
        self.got += _CLOSED

    def write_paused(self) -> None: ...

    def write_resumed(self) -> None: ...


async def frames(site: Site) -> None:
    """Send each frame on a connection of its own, and compare all that comes back."""
    await make_topic(site, "t")
    site.rule = chapters.REMOTING_FRAME
    network = site.cluster.internet.machine(HOST)
    for what, data, expected in _cases():
        line = _Line()
        connection = await network.connect(site.broker, line.opened)
        for part in data:
            connection.write(part)
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        site.compare(f"the answer to {what}", expected, line.got)
        connection.close()
    await _tags(site)


def _cases() -> list[tuple[str, list[bytes], bytes]]:
    """Return what is sent, in parts, and what comes back."""
    whole = _json({"code": _OFFSET, "extFields": _ASKED, "opaque": 7})
    return [*_sound(whole), *_limits(), *_broken(whole)]


def _sound(whole: bytes) -> list[tuple[str, list[bytes], bytes]]:
    answer = _answered(7, {"offset": "0"})
    remark = f" request type {_UNKNOWN} not supported"
    asked = {"code": _OFFSET, "opaque": 7}
    loose: dict[str, Any] = {"topic": "t", "queueId": 0, "a": True, "b": None, "c": 1.5}
    return [
        ("a request", [whole], answer),
        ("a request in single bytes", [whole[at : at + 1] for at in range(len(whole))], answer),
        ("three requests at once", [whole * 3], answer * 3),
        ("a request with values that are no text", [_json({**asked, "extFields": loose})], answer),
        ("a request without fields", [_json({"code": _UNKNOWN})], _answered(0, {}, 3, remark)),
        ("a request of another version",
         [_json({"code": _UNKNOWN, "version": 1, "opaque": -5, "remark": "r"})],
         _answered(-5, {}, 3, remark)),
        ("a binary request", [encode(Frame(_OFFSET, 7, fields=_ASKED, header=Header.BINARY))],
         _binary_answer(0, 7, "", {"offset": "0"})),
        ("an unknown binary request", [encode(Frame(_UNKNOWN, 8, header=Header.BINARY, remark="r"))],
         _binary_answer(3, 8, remark, {})),
        ("a one-way request", [encode(Frame(_UNKNOWN, 7, 2))], b""),
        ("an answer without a request", [encode(Frame(0, 7, 1))], b""),
    ]  # fmt: skip


def _limits() -> list[tuple[str, list[bytes], bytes]]:
    found: list[tuple[str, list[bytes], bytes]] = []
    for count, is_allowed in ((_FIELDS_MAX, True), (_FIELDS_MAX + 1, False)):
        fields = {**_ASKED, **{f"f{at}": "v" for at in range(count - len(_ASKED))}}
        answers = _answered(7, {"offset": "0"}), _binary_answer(0, 7, "", {"offset": "0"})
        for header, answer in zip((Header.JSON, Header.BINARY), answers, strict=True):
            data = encode(Frame(_OFFSET, 7, fields=fields, header=header))
            found.append(
                (f"{count} fields in a {header.name} header", [data], answer if is_allowed else _CLOSED)
            )
    for size in (_HEADER_MAX, _HEADER_MAX + 1):
        header_bytes = json.dumps({"code": _OFFSET, "extFields": _ASKED, "opaque": 7}).encode().ljust(size)
        answer = _answered(7, {"offset": "0"}) if size == _HEADER_MAX else _CLOSED
        found.append((f"a header of {size} bytes", [framed(header_bytes)], answer))
    begun = [struct.pack(">i", size - 4) for size in (_FRAME_MAX, _FRAME_MAX + 1)]
    found += [
        ("the begin of a frame of 16 MiB", [begun[0]], b""),
        ("the begin of a larger frame", [begun[1]], _CLOSED),
    ]
    for number, is_allowed in (
        ((1 << 31) - 1, True),
        (1 << 31, False),
        (-(1 << 31), True),
        (-(1 << 31) - 1, False),
    ):
        answer = _answered(number, {"offset": "0"}) if is_allowed else _CLOSED
        asked = _json({"code": _OFFSET, "extFields": _ASKED, "opaque": number})
        found.append((f"a request with opaque {number}", [asked], answer))
    return found


def _broken(whole: bytes) -> list[tuple[str, list[bytes], bytes]]:
    binary = encode(Frame(_OFFSET, 7, fields=_ASKED, header=Header.BINARY))
    cut = [binary[: at - 1] for at in (len(binary), len(binary) - 20, 30)]
    broken = {
        "an empty frame": struct.pack(">i", 0),
        "a frame of 3 bytes": struct.pack(">i", 3) + b"abc",
        "a header that is a byte longer than its frame": _longer(whole),
        "a header that is longer than its frame": struct.pack(">iI", 8, 5) + b"{}{}",
        "an unknown serialization": framed(b"{}", serialization=2),
        "a header that is no JSON": framed(b"{"),
        "a header that is a list": framed(b"[]"),
        "a header without a code": framed(b"{}"),
        "a header that is no UTF-8": framed(b'{"code":30,"remark":"\xff"}'),
        "a table in a field": _json({"code": _OFFSET, "extFields": {"topic": {}}}),
        **{f"a binary header of {len(each) - 8} bytes": framed(each[8:], serialization=1) for each in cut},
        "a binary header that is too short": framed(binary[8:20], serialization=1),
        "a remark with a negative length": framed(
            struct.pack(">hbhiiii", _UNKNOWN, 3, 409, 7, 0, -4, 0), serialization=1
        ),
        "a remark that is no UTF-8": framed(
            struct.pack(">hbhiii", _UNKNOWN, 3, 409, 7, 0, 1) + b"\xff" + bytes(4), serialization=1
        ),
        "a field that is no UTF-8": framed(_fixed(_UNKNOWN, 7, b"\0\x01a\0\0\0\x01\xff"), serialization=1),
        "a field with a negative length": framed(
            _fixed(_OFFSET, 7, b"\0\x01a\xff\xff\xff\xff"), serialization=1
        ),
    }
    return [(what, [whole + data], _answered(7, {"offset": "0"}) + _CLOSED) for what, data in broken.items()]


def _longer(frame: bytes) -> bytes:
    """Return a frame whose header is announced with a byte more than the frame has."""
    return frame[:4] + (int.from_bytes(frame[4:8], "big") + 1).to_bytes(4, "big") + frame[8:]


def _json(members: dict[str, Any]) -> bytes:
    return framed(json.dumps(members).encode())


def _answered(opaque: int, fields: dict[str, str], code: int = 0, remark: str | None = None) -> bytes:
    members = {
        "code": code, "extFields": fields or None, "flag": 1, "language": "PYTHON", "opaque": opaque,
        "remark": remark, "serializeTypeCurrentRPC": "JSON", "version": 409,
    }  # fmt: skip
    present = {name: value for name, value in members.items() if value is not None}
    return framed(json.dumps(present, separators=(",", ":")).encode())


def _fixed(code: int, opaque: int, entries: bytes, flag: int = 0, remark: str = "") -> bytes:
    text = remark.encode()
    front = struct.pack(">hbhiii", code, 3, 409, opaque, flag, len(text))
    return front + text + struct.pack(">i", len(entries)) + entries


def _binary_answer(code: int, opaque: int, remark: str, fields: dict[str, str]) -> bytes:
    entries = b"".join(map(entry, fields, fields.values()))
    return framed(_fixed(code, opaque, entries, 1, remark), serialization=1)


async def _tags(site: Site) -> None:
    """The queue has the code of each tag, and a pull by the tag returns its message."""
    site.rule = chapters.TAG_CODES
    for tag in _TAGS:
        await send(site, "t", tag, of={"TAGS": tag, "KEYS": f"key-{tag}"})
    shown = java_values.read(
        (await site.ask("QUERY_CONSUME_QUEUE", topic="t", queueId=0, index=0, count=len(_TAGS))).body
    )
    site.compare(
        "the tag codes", [java_hash(tag) for tag in _TAGS], [each["tagsCode"] for each in shown["queueData"]]
    )
    site.compare(
        "the tags", list(_TAGS), [each.properties.get("TAGS") for each in await records(site, "t", 0, 0)]
    )


FRAMES: Final = Inspection("frames", frames)
