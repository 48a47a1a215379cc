"""The body of a broker's registration, in its two forms: JSON, and the compressed form of newer brokers.

See docs/reference/protocol/name-server.md, "Registration".
"""

import json
import zlib
from typing import Final

import msgspec

from mqproof.impl.remoting.bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigs
from mqproof.impl.remoting.headers import RegisterBrokerRequest
from mqproof.impl.remoting.java_json import BodyError, read

_INFLATED_BYTES_MAX: Final = 64 * 1024 * 1024
_TOPICS_MAX: Final = 100_000


def read_body(header: RegisterBrokerRequest, body: bytes) -> RegisterBrokerBody | None:
    """Return the topics and filter servers that a broker registers, or None when it sent no body.

    Raises:
        BodyError: the checksum does not match, or the body has neither form.
    """
    if not body:
        return None
    if header.body_crc32 and zlib.crc32(body) & 0x7FFF_FFFF != header.body_crc32:
        raise BodyError(f"bodyCrc32 is {header.body_crc32}, the body's is {zlib.crc32(body) & 0x7FFF_FFFF}")
    if header.compressed:
        return _read_compressed(body)
    return read(RegisterBrokerBody, body)


def _read_compressed(body: bytes) -> RegisterBrokerBody:
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(body, _INFLATED_BYTES_MAX)
    except zlib.error as error:
        raise BodyError(f"the compressed registration does not inflate: {error}") from None
    if inflater.unconsumed_tail:
        raise BodyError(f"the registration inflates to more than {_INFLATED_BYTES_MAX} bytes")
    version_text, at = _field(text, 0)
    version = read(DataVersion, version_text)
    count, at = _int32(text, at)
    if not 0 <= count <= _TOPICS_MAX:
        raise BodyError(f"{count} topics in a registration, at most {_TOPICS_MAX} expected")
    topics = {}
    for _ in range(count):
        line, at = _field(text, at)
        topic = _topic(line.decode(errors="replace"))
        topics[topic.topic_name] = topic
    filter_servers, _ = _field(text, at)
    # From version 413 on, the mappings of static topics follow. We do not support them.
    return RegisterBrokerBody(TopicConfigs(version, topics), read(list[str], filter_servers))


def _topic(line: str) -> TopicConfig:
    """Parse `T1 4 4 6 SINGLE_TAG`. Newer brokers append attributes, which we do not use."""
    words = line.split(" ", 5)
    try:
        name, reads, writes, perm, filter_type = words[:5]
        read_queues, write_queues = int(reads), int(writes)
        fields = {"topicName": name, "readQueueNums": read_queues, "writeQueueNums": write_queues}
        return msgspec.convert({**fields, "perm": int(perm), "topicFilterType": filter_type}, TopicConfig)
    except ValueError:  # msgspec's own errors are ValueErrors too
        raise BodyError(
            f"{json.dumps(line[:200])} is not a topic, 'NAME READS WRITES PERM FILTER' expected"
        ) from None


def _field(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _int32(data, at)
    if not 0 <= size <= len(data) - at:
        raise BodyError(f"a field of {size} bytes at {at} in a registration of {len(data)} bytes")
    return data[at : at + size], at + size


def _int32(data: bytes, at: int) -> tuple[int, int]:
    if at + 4 > len(data):
        raise BodyError(f"the registration ends at {len(data)}, a number expected at {at}")
    return int.from_bytes(data[at : at + 4], "big", signed=True), at + 4
