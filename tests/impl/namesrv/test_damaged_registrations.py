"""Compressed registrations of brokers that end early or have a wrong part.

Source: docs/reference/protocol/name-server.md, "Registration".
"""

import json
import struct
import zlib

from mqproof.impl.namesrv.registration_body import read_body
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import RegisterBrokerBody
from mqproof.impl.remoting.headers import RegisterBrokerRequest
from mqproof.impl.remoting.java_json import BodyError
from tests.impl.compared import Compared


def _sized(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


def test_a_registration_that_ends_early_or_is_wrong_is_refused() -> None:
    """A compressed registration is refused if it ends early at any place, or a part of it is wrong."""
    site = Compared()
    header = RegisterBrokerRequest("b", "a", "c", "h", 0, compressed=True)
    version, servers = b'{"counter":7,"timestamp":8}', b'["s1","s2"]'
    first = [_sized(version), struct.pack(">i", 2)]
    parts = [_sized(b"t 4 5 6 SINGLE_TAG"), _sized(b"u 1 2 3 MULTI_TAG {} more"), _sized(servers)]
    whole = b"".join(first + parts)

    def read(text: bytes) -> RegisterBrokerBody | None:
        try:
            return read_body(header, zlib.compress(text))
        except BodyError:
            return None

    expected = java_json.read(RegisterBrokerBody, json.dumps({
        "topicConfigSerializeWrapper": {
            "dataVersion": {"counter": 7, "timestamp": 8},
            "topicConfigTable": {
                "t": {"topicName": "t", "readQueueNums": 4, "writeQueueNums": 5, "perm": 6},
                "u": {"topicName": "u", "readQueueNums": 1, "writeQueueNums": 2, "perm": 3,
                      "topicFilterType": "MULTI_TAG"},
            },
        },
        "filterServerList": ["s1", "s2"],
    }).encode())  # fmt: skip
    for more in (b"", b"more"):
        site.compare(f"a compressed registration with {more!r} behind it", expected, read(whole + more))
    for at in range(len(whole)):
        site.compare(f"a compressed registration of {at} bytes", None, read(whole[:at]))
    for count in (3, -1, 100_001):
        site.compare(
            f"one of {count} topics", None, read(first[0] + struct.pack(">i", count) + b"".join(parts))
        )
    for line in (b"t 4 5 6", b"t", b"", b"t x 5 6 F", b"t 4 x 6 F", b"t 4 5 x F", b"t 4 5 2147483648 F",
                 b"x" * 1025 + b" 4 5 6 F", b"t 4 5 -2147483649 F", b"t 2147483648 5 6 F"):  # fmt: skip
        text = first[0] + struct.pack(">i", 1) + _sized(line) + _sized(servers)
        site.compare(f"one with the topic {line[:30]!r}", None, read(text))
    for wrong in (b"{}", b"[1]", b"", b"["):
        text = first[0] + struct.pack(">i", 0) + _sized(wrong)
        site.compare(f"one with the filter servers {wrong!r}", None, read(text))
    site.compare("a registration that is not compressed", None, read_body(header, b""))
