"""Tests both formats of a registration's body.

Source: docs/reference/protocol/name-server.md, "Registration".
"""

import zlib

import pytest

from mqproof.impl.namesrv.registration_body import read_body
from mqproof.impl.remoting.headers import RegisterBrokerRequest
from mqproof.impl.remoting.java_json import BodyError

JSON = (
    b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":3,"timestamp":5},'
    b'"topicConfigTable":{"T":{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG",'
    b'"topicName":"T","topicSysFlag":0,"writeQueueNums":4}}}}'
)


def header(*, compressed: bool = False, crc: int = 0) -> RegisterBrokerRequest:
    return RegisterBrokerRequest("b", "1.2.3.4:5", "C", "1.2.3.4:6", 0, compressed, crc)


def field(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def compressed(*lines: bytes, count: int | None = None, tail: bytes = b"") -> bytes:
    number = len(lines) if count is None else count
    text = field(b'{"counter":3,"timestamp":5}') + number.to_bytes(4, "big") + b"".join(map(field, lines))
    return zlib.compress(text + field(b'["10.0.0.1:9999"]') + tail)


def test_a_json_body_is_read() -> None:
    found = read_body(header(), JSON)
    assert found is not None
    assert (
        found.topic_config_serialize_wrapper.data_version.counter,
        found.topic_config_serialize_wrapper.topic_config_table["T"].read_queue_nums,
    ) == (3, 4)


@pytest.mark.parametrize("line", [b"T 4 8 6 SINGLE_TAG", b"T 4 8 6 SINGLE_TAG {}"])
def test_the_compressed_format_is_read_with_and_without_attributes(line: bytes) -> None:
    found = read_body(header(compressed=True), compressed(line))
    assert found is not None
    topic = found.topic_config_serialize_wrapper.topic_config_table["T"]
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (4, 8, 6)


def test_the_compressed_format_has_filter_servers_and_may_have_more_data_after_them() -> None:
    found = read_body(header(compressed=True), compressed(b"T 4 8 6 SINGLE_TAG", tail=b"\0\0\0\0"))
    assert found is not None
    assert found.filter_server_list == ["10.0.0.1:9999"]


def test_an_empty_body_has_no_topics() -> None:
    assert read_body(header(), b"") is None


def test_a_checksum_is_verified_if_there_is_one() -> None:
    good = zlib.crc32(JSON) & 0x7FFF_FFFF
    assert read_body(header(crc=good), JSON) is not None
    with pytest.raises(BodyError, match="bodyCrc32"):
        read_body(header(crc=good ^ 1), JSON)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"not zlib", "does not inflate"),
        (zlib.compress(b"\x00\x00"), "ends at 2"),
        (zlib.compress(b"\x7f\xff\xff\xff{}"), "a field of"),
        (compressed(b"T 4"), "is not a topic"),
        (compressed(b"T x y z SINGLE_TAG"), "is not a topic"),
        (compressed(count=2_000_000), "2000000 topics"),
        (compressed(count=1), "is not a topic"),
    ],
)
def test_a_broken_compressed_body_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        read_body(header(compressed=True), body)


def test_a_registration_may_have_no_topics() -> None:
    found = read_body(header(compressed=True), compressed())
    assert found is not None
    assert found.topic_config_serialize_wrapper.topic_config_table == {}


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (100_000, "is not a topic"),  # the number is accepted, and the first topic is missing
        (100_001, "100001 topics in a registration, at most 100000 expected"),
        (2**32 - 1, "-1 topics in a registration"),
    ],
)
def test_the_number_of_topics_in_a_registration_is_limited(count: int, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        read_body(header(compressed=True), compressed(count=count))


@pytest.mark.parametrize(("extra", "is_refused"), [(0, False), (1, True)])
def test_a_registration_inflates_to_at_most_64_mib(extra: int, is_refused: bool) -> None:
    start = field(b'{"counter":3,"timestamp":5}') + bytes(4) + field(b"[]")
    body = zlib.compress(start + bytes(64 * 1024 * 1024 - len(start) + extra), 1)
    if is_refused:
        with pytest.raises(BodyError, match="inflates to more than 67108864 bytes"):
            read_body(header(compressed=True), body)
    else:
        assert read_body(header(compressed=True), body) is not None
