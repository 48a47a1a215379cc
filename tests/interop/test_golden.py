"""Tests that bytes written by Apache RocketMQ (golden/README.md) are decoded, and encoded again unchanged."""

import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqproof.impl.broker.delayed import DelayOffsets
from mqproof.impl.broker.state.durable_table import read_config
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.subscription_groups import SubscriptionGroupTable
from mqproof.impl.broker.state.topics import TopicTable
from mqproof.impl.namesrv.registration_body import read_body
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ClusterInfo,
    ConsumedDirectly,
    ConsumerConnection,
    ConsumerIds,
    ConsumeStats,
    GroupList,
    Heartbeat,
    LockedQueues,
    ProducerConnection,
    QueueLocks,
    QueueOffsets,
    RegisterBrokerBody,
    RunningInfo,
    SubscriptionGroup,
    Table,
    TopicConfig,
    TopicList,
    TopicRoute,
    TopicStats,
)
from mqproof.impl.remoting.command import Command, decode, encode
from mqproof.impl.remoting.headers import Header
from mqproof.impl.remoting.java_json import BodyError
from mqproof.impl.remoting.message import KEYS, TAGS, UNIQUE_KEY, StoredMessage, tags_code
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from mqproof.impl.store.dispatch import takes_queue_offset
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import Checkpoint
from mqproof.impl.store.files.consume_queue import Unit
from mqproof.impl.store.files.index import key_hash
from mqproof.impl.store.files.index_file import Header as IndexHeader
from mqproof.impl.store.files.index_file import IndexFile, IndexShape

GOLDEN = Path(__file__).with_name("golden")
RELEASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
FRAMES = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.glob("*/*-[0-9]*-[ro]*.hex"))

REQUESTS: dict[int, type[Header]] = {
    10: headers.SendRequest,
    11: headers.PullRequest,
    12: headers.QueryMessageRequest,
    14: headers.QueryOffsetRequest,
    15: headers.UpdateOffsetRequest,
    17: headers.UpdateTopicRequest,
    30: headers.QueueRequest,
    31: headers.QueueRequest,
    35: headers.UnregisterClientRequest,
    36: headers.SendBackRequest,
    38: headers.ConsumerGroupRequest,
    40: headers.ConsumerGroupRequest,
    100: headers.PutKvRequest,
    102: headers.KvRequest,
    103: headers.RegisterBrokerRequest,
    104: headers.UnregisterBrokerRequest,
    105: headers.RouteRequest,
    202: headers.TopicRequest,
    203: headers.ConsumerGroupRequest,
    205: headers.BrokerNameRequest,
    207: headers.DeleteGroupRequest,
    208: headers.ConsumeStatsRequest,
    215: headers.TopicRequest,
    216: headers.DeleteRoutedTopicRequest,
    220: headers.ResetOffsetRequest,
    222: headers.ResetOffsetRequest,
    300: headers.TopicRequest,
    307: headers.ConsumerRequest,
    309: headers.ConsumerRequest,
    327: headers.BrokerNameRequest,
    351: headers.TopicRequest,
    361: headers.PullRequest,
}
RESPONSES: dict[int, type[Header]] = {
    10: headers.SendResponse,
    11: headers.PullResponse,
    12: headers.QueryMessageResponse,
    14: headers.OffsetResponse,
    30: headers.OffsetResponse,
    31: headers.OffsetResponse,
    205: headers.WipeWriteResponse,
    327: headers.AddWriteResponse,
    310: headers.SendResponse,
    320: headers.SendResponse,
    361: headers.PullResponse,
}
BODIES: dict[tuple[int, bool], type[Any]] = {
    (28, True): Table,
    (34, False): Heartbeat,
    (38, True): ConsumerIds,
    (41, False): QueueLocks,
    (41, True): LockedQueues,
    (42, False): QueueLocks,
    (103, False): RegisterBrokerBody,
    (105, True): TopicRoute,
    (106, True): ClusterInfo,
    (200, False): SubscriptionGroup,
    (202, True): TopicStats,
    (203, True): ConsumerConnection,
    (204, True): ProducerConnection,
    (206, True): TopicList,
    (208, True): ConsumeStats,
    (220, False): QueueOffsets,
    (222, True): QueueOffsets,
    (300, True): GroupList,
    (307, True): RunningInfo,
    (309, True): ConsumedDirectly,
    (351, True): TopicConfig,
}
"""Maps (request code, whether it is the response's body) to the type of the body."""


def golden(name: str) -> bytes:
    return bytes.fromhex((GOLDEN / name).read_text(encoding="ascii"))


def frame(name: str) -> tuple[Command, int]:
    """Return the command in the file, and its request code."""
    return decode(golden(name)[4:]), int(Path(name).stem.split("-")[1])


def test_no_recorded_file_is_missing() -> None:
    assert RELEASES
    for release in RELEASES:
        names = [name for name in FRAMES if name.startswith(f"{release}/")]
        assert len(names) >= 40, release
        codes = {frame(name)[1] for name in names}
        assert codes >= {11, 14, 15, 34, 35, 38, 40, 41, 42, 103, 104, 105, 310, 320}, release
        assert codes >= {10, 17, 30, 31, 36, 100, 102, 106, 200, 202, 203, 204, 205, 206, 207, 208}, release
        assert codes >= {215, 216, 222, 300, 307, 309, 327}, release


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_encoded_as_recorded(name: str) -> None:
    command, _ = frame(name)
    expected = golden(name)
    # Some peers send empty fields or remarks where others omit them; we omit them.
    said = expected
    for nothing in (b'"extFields":{},', b'"remark":"",'):
        expected = expected.replace(nothing, b"", 1)
    if expected != said:
        header_bytes = expected.index(b'"version":') + len(f'"version":{command.version}}}') - 8
        expected = (len(expected) - 4).to_bytes(4, "big") + header_bytes.to_bytes(4, "big") + expected[8:]
    assert encode(command) == expected


@pytest.mark.parametrize("name", FRAMES)
def test_an_operation_header_is_encoded_as_recorded(name: str) -> None:
    command, code = frame(name)
    if command.is_response:
        kind = RESPONSES.get(code)
        written = headers.write(headers.read(kind, command.fields)) if kind and command.fields else {}
    elif code in (310, 320):
        sent = msgspec.structs.asdict(headers.read_send_v2(command.fields))
        written = headers.write_send_v2(headers.SendRequest(**sent))
    else:
        kind = REQUESTS.get(code)
        written = headers.write(headers.read(kind, command.fields)) if kind else {}
    given = {key: value for key, value in written.items() if key in command.fields}
    assert given == {key: command.fields[key] for key in given}
    # We add only defaults that the peer omitted.
    assert set(written) - set(given) <= {"compressed", "bodyCrc32", "acceptStandardJsonOnly"}


BODY_FRAMES = [
    name
    for name in FRAMES
    if "compressed" not in name and (frame(name)[1], frame(name)[0].is_response) in BODIES
]


@pytest.mark.parametrize("name", BODY_FRAMES)
def test_a_body_is_encoded_as_recorded(name: str) -> None:
    command, code = frame(name)
    kind = BODIES[code, command.is_response]
    value = java_json.read(kind, command.body)
    again = java_json.write(value)
    assert java_json.read(kind, again) == value
    _assert_agree(_parsed(again), _parsed(command.body), newer=not name.startswith("4."))


def _assert_agree(ours: Any, theirs: Any, *, newer: bool) -> None:
    """We encode the same body, without the members that only 5.x has."""
    if isinstance(ours, dict):
        assert newer or set(theirs) <= set(ours)
        for key in ours.keys() & theirs.keys():
            _assert_agree(ours[key], theirs[key], newer=newer)
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            _assert_agree(our, their, newer=newer)
    else:
        assert ours == theirs


def _parsed(body: bytes) -> Any:
    return json.loads(java_json.quote_keys(body.decode()))


@pytest.mark.parametrize("release", RELEASES)
def test_a_compressed_registration_has_the_topics_of_a_plain_one(release: str) -> None:
    packed, _ = frame(f"{release}/json-103-request-compressed.hex")
    plain, _ = frame(f"{release}/json-103-request.hex")
    header = headers.read(headers.RegisterBrokerRequest, packed.fields)
    if release.startswith("5."):
        assert not header.compressed, "5.x no longer says that it did not compress what it compressed"
        with pytest.raises(BodyError):
            read_body(header, packed.body)
        header = headers.read(headers.RegisterBrokerRequest, {**packed.fields, "compressed": "true"})
    assert zlib.decompress(packed.body)
    found = read_body(header, packed.body)
    expected = read_body(headers.read(headers.RegisterBrokerRequest, plain.fields), plain.body)
    assert found is not None
    assert expected is not None
    assert found.filter_server_list == expected.filter_server_list == []
    new, old = (body.topic_config_serialize_wrapper.topic_config_table for body in (found, expected))
    assert len(new) == len(old)
    for name, topic in old.items():
        found_topic = new[name.replace("apache-a", "packed")]  # names of brokers occur in names of topics
        assert (found_topic.perm, found_topic.read_queue_nums) == (topic.perm, topic.read_queue_nums)


def records(release: str) -> Iterator[tuple[bytes, StoredMessage]]:
    """Return the records at the start of the commit log, each with its bytes."""
    log, position = golden(f"{release}/commitlog.hex"), 0
    while position < len(log):
        size, _ = record.peek(log[position : position + 8])
        data = log[position : position + size].ljust(size, b"\0")
        yield data, record.decode(data, position)
        position += size


@pytest.mark.parametrize("release", RELEASES)
def test_a_record_is_encoded_as_recorded(release: str) -> None:
    exact = 0
    for data, stored in records(release):
        draft = record.encode(stored.message)
        record.place(draft, stored.queue_offset, stored.commit_offset, stored.store_timestamp_ms)
        front, properties = _parted(data)
        our_front, our_properties = _parted(bytes(draft))
        assert our_front[4:] == front[4:]  # all but the size
        # Releases end the properties differently, and put WAIT twice into each message of a batch.
        assert our_properties == properties.removesuffix(b"\x02").removesuffix(b"\x02WAIT\x01true")
        exact += bytes(draft) == data
    assert exact >= 8 or release.startswith("5.")


def _parted(data: bytes) -> tuple[bytes, bytes]:
    """Split a record that has IPv4 hosts: return the part before the properties, and the properties."""
    topic_at = 88 + int.from_bytes(data[84:88], "big")
    at = topic_at + 1 + data[topic_at]
    return data[:at], data[at + 2 :]


@pytest.mark.parametrize("release", RELEASES)
def test_consume_queues_match_the_log(release: str) -> None:
    queues: dict[int, bytes] = {}
    for data, stored in records(release):
        message = stored.message
        if message.topic == "Golden" and takes_queue_offset(message.sys_flag):
            unit = Unit(stored.commit_offset, len(data), tags_code(message.properties.get(TAGS)))
            entry = unit.commit_offset.to_bytes(8, "big") + unit.size.to_bytes(4, "big")
            queues[message.queue_id] = (
                queues.get(message.queue_id, b"") + entry + unit.tags_code.to_bytes(8, "big", signed=True)
            )
    assert set(queues) == {0, 1, 2, 3}
    for queue_id, expected in queues.items():
        assert golden(f"{release}/consumequeue-{queue_id}.hex") == expected


class _Memory:
    """The part of a file that an index file needs."""

    def __init__(self) -> None:
        self.data: dict[int, bytes] = {}

    def write(self, offset: int, data: bytes) -> None:
        self.data[offset] = bytes(data)

    def read(self, offset: int, size: int) -> bytes:
        found = bytearray(size)
        for at, data in self.data.items():
            begin, end = max(at, offset), min(at + len(data), offset + size)
            if begin < end:
                found[begin - offset : end - offset] = data[begin - at : end - at]
        return bytes(found)


@pytest.mark.parametrize("release", RELEASES)
def test_the_index_matches_the_log(release: str) -> None:
    shape = IndexShape()
    memory: Any = _Memory()
    index = IndexFile(0, memory, shape, IndexHeader())
    for _, stored in records(release):
        properties = stored.message.properties
        keys = [properties[UNIQUE_KEY], *properties[KEYS].split()]
        if release.startswith("5."):
            keys.append(f"T#{properties[TAGS]}")  # found with 5.5.0
        for key in keys:
            hashed = key_hash(stored.message.topic, key)
            index.put([(hashed, stored.commit_offset, stored.store_timestamp_ms)])
    assert index.header.encode() == golden(f"{release}/index-header.hex")
    index.write_out()
    end = index.header.entry_next
    entries = memory.read(shape.entry_at(1), 20 * (end - 1))
    assert bytes(20) + entries == golden(f"{release}/index-entries.hex").ljust(20 * end, b"\0")


@pytest.mark.parametrize("release", RELEASES)
def test_the_checkpoint_matches_the_log(release: str) -> None:
    data = golden(f"{release}/checkpoint.hex").ljust(4096, b"\0")
    checkpoint = Checkpoint.decode(data)
    (*_, (_, last)) = records(release)
    assert checkpoint.log_timestamp_ms == checkpoint.queues_timestamp_ms == last.store_timestamp_ms
    assert checkpoint.queue_count is None
    assert checkpoint.encode()[:24] == data[:24]
    if release.startswith(
        "5."
    ):  # after the times there are offsets; that of 5.5.0 at 40 is the last record's
        assert data[24:48] == bytes(16) + last.commit_offset.to_bytes(8, "big")
    assert data[48:] == bytes(4096 - 48)


@pytest.mark.parametrize("release", RELEASES)
def test_the_configuration_files_are_read(release: str) -> None:
    disk = SimulatedDisk()
    for name in ("topics.json", "consumerOffset.json", "subscriptionGroup.json", "delayOffset.json"):
        write_durably(disk, f"/config/{name}", (GOLDEN / release / name).read_bytes())
    with closing(SimulatedLoop()) as loop:
        runtime = simulated(loop, SimulatedNetwork(), disk=disk)
        topics = TopicTable("/config/topics.json", runtime, topics_max=100, queues_max=100)
        topics.load([])
        offsets = OffsetTable("/config/consumerOffset.json", runtime)
        offsets.load()
        groups = SubscriptionGroupTable("/config/subscriptionGroup.json", runtime, groups_max=100)
        groups.load()
    golden_topic, schedule = topics.get("Golden"), topics.get("SCHEDULE_TOPIC_XXXX")
    assert golden_topic is not None
    assert schedule is not None
    assert (golden_topic.write_queue_nums, golden_topic.perm, schedule.read_queue_nums) == (4, 6, 18)
    queues = (len(golden(f"{release}/consumequeue-{queue_id}.hex")) // 20 for queue_id in range(4))
    for queue_id, end in enumerate(queues):
        assert offsets.query("Golden1_orderly", "Golden", queue_id) == end
    group = groups.get("Golden0_orderly")
    assert group is not None
    assert group.retry_max_times == 16
    delayed = read_config(disk, "/config/delayOffset.json", DelayOffsets)
    assert delayed is not None
    assert delayed.offset_table == {1: 4}
