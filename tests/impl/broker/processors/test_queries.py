"""Tests the requests for offsets of queues and groups.

Source: docs/reference/protocol/offsets.md, "Offset requests".
"""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.broker.processors import queries
from mqproof.impl.broker.processors.queries import is_far_behind, offset_at_time
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    OffsetResponse,
    QueryOffsetRequest,
    QueueRequest,
    SearchOffsetRequest,
    StoreTimeResponse,
    UpdateOffsetRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.spec.events import Kind
from tests.impl.broker.memory_store import Events

TIMES = (1000, 1000, 2000, 3000, 4001)
CHANNEL: Any = object()


class Queue:
    """A queue of records of 100 bytes: `begin` is its first offset, and each message has a store time.

    Every method requires the topic and the queue, so that a swapped argument is an error.
    """

    log_begin = 0

    def __init__(self, *times_ms: int, begin: int = 0) -> None:
        self.times_ms = dict(enumerate(times_ms, begin))
        self.begin = begin
        self.log_end = 100 * (begin + len(times_ms))

    def min_offset(self, topic: str, queue_id: int) -> int:
        assert (topic, queue_id) == ("T", 3)
        return self.begin

    def max_offset(self, topic: str, queue_id: int) -> int:
        assert (topic, queue_id) == ("T", 3)
        return self.begin + len(self.times_ms)

    def store_time_ms(self, topic: str, queue_id: int, offset: int) -> int | None:
        assert (topic, queue_id) == ("T", 3)
        return self.times_ms.get(offset)

    def commit_offset_at(self, topic: str, queue_id: int, offset: int) -> int | None:
        assert (topic, queue_id) == ("T", 3)
        return 100 * offset if offset in self.times_ms else None


class Offsets:
    """The offsets of group G in queue 3 of T."""

    def __init__(self, known: int | None) -> None:
        self.known = known

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        assert (group, topic, queue_id) == ("G", "T", 3)
        return self.known

    def commit(self, group: str, topic: str, queue_id: int, offset: int, *_: object) -> None:
        assert (group, topic, queue_id) == ("G", "T", 3)
        self.known = offset


def services(queue: Queue, memory_bytes: int = 1 << 30, known: int | None = None) -> Any:
    return SimpleNamespace(
        store=queue,
        runtime=SimpleNamespace(memory_bytes=memory_bytes),
        config=SimpleNamespace(memory_percent=40),
        offsets=Offsets(known),
        groups={"G": SubscriptionGroup(group_name="G")},
        topics={"T": TopicConfig("T")},
        events=None,
    )


def ask(processor: Any, given: Any, code: int, header: headers.Header) -> Command:
    answer: Command = processor(given, new_request(code, headers.write(header)), CHANNEL)
    assert answer.code == ResponseCode.SUCCESS
    return answer


# The offset at a time.


@pytest.mark.parametrize(
    ("timestamp_ms", "nearest", "lower", "upper"),
    [
        (0, 5, 5, 0),
        (999, 5, 5, 0),
        (1000, 5, 5, 6),
        (1001, 6, 7, 6),
        (1500, 6, 7, 6),
        (1501, 7, 7, 6),
        (2000, 7, 7, 7),
        (2500, 7, 8, 7),
        (2501, 8, 8, 7),
        (3500, 8, 9, 8),
        (3501, 9, 9, 8),
        (4001, 9, 9, 9),
        (4002, 9, 10, 9),
        (1 << 50, 9, 10, 9),
    ],
)
def test_a_search_by_time_finds_the_nearest_message_or_the_one_on_a_side(
    timestamp_ms: int, nearest: int, lower: int, upper: int
) -> None:
    given = services(Queue(*TIMES, begin=5))
    found = []
    for side in (None, "LOWER", "UPPER", "upper"):
        header = SearchOffsetRequest("T", 3, timestamp_ms, side)
        answer = ask(queries.search_offset, given, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        found.append(headers.read(OffsetResponse, answer.fields).offset)
    assert found == [nearest, lower, upper, upper]


@pytest.mark.parametrize("begin", [0, 7])
def test_a_search_in_an_empty_queue_finds_its_end(begin: int) -> None:
    assert offset_at_time(services(Queue(begin=begin)), "T", 3, 1000) == begin


@pytest.mark.parametrize(
    ("queue", "stored_ms"), [(Queue(), -1), (Queue(begin=7), -1), (Queue(0, 9), 0), (Queue(9, begin=7), 9)]
)
def test_the_store_time_of_the_first_message_is_returned(queue: Queue, stored_ms: int) -> None:
    answer = ask(
        queries.earliest_store_time,
        services(queue),
        RequestCode.GET_EARLIEST_MSG_STORETIME,
        QueueRequest("T", 3),
    )
    assert headers.read(StoreTimeResponse, answer.fields).timestamp == stored_ms


def test_the_extent_of_a_queue_is_returned() -> None:
    given = services(Queue(*TIMES, begin=5))
    ends = [
        ask(processor, given, code, QueueRequest("T", 3))
        for processor, code in (
            (queries.min_offset, RequestCode.GET_MIN_OFFSET),
            (queries.max_offset, RequestCode.GET_MAX_OFFSET),
        )
    ]
    assert [headers.read(OffsetResponse, answer.fields).offset for answer in ends] == [5, 10]


# Messages that may not be in memory.


@pytest.mark.parametrize(
    ("offset", "memory_bytes", "is_far"),
    [
        (0, 1250, False),  # 40 % of it are the 500 bytes of the log
        (0, 1249, True),
        (1, 1249, False),
        (1, 1000, False),  # the record begins 400 bytes before the end
        (1, 999, True),
        (0, 0, True),
        (5, 0, False),  # there is no such message
    ],
)
def test_a_message_is_far_behind_beyond_a_share_of_the_memory(
    offset: int, memory_bytes: int, is_far: bool
) -> None:
    assert is_far_behind(services(Queue(*TIMES), memory_bytes), "T", 3, offset) is is_far


# Offsets of groups.


@pytest.mark.parametrize(
    ("known", "begin", "memory_bytes", "zero_if_none", "expected"),
    [
        (4, 0, 1 << 30, None, 4),
        (0, 7, 0, False, 0),
        (None, 0, 1 << 30, None, 0),
        (None, 0, 1 << 30, True, 0),
        (None, 0, 1 << 30, False, None),
        (None, 1, 1 << 30, None, None),
        (None, 0, 0, None, None),
    ],
)
def test_a_group_without_an_offset_begins_at_0_if_the_first_message_is_there_and_in_memory(
    known: int | None, begin: int, memory_bytes: int, zero_if_none: bool | None, expected: int | None
) -> None:
    given = services(Queue(*TIMES, begin=begin), memory_bytes, known)
    header = QueryOffsetRequest("G", "T", 3, zero_if_none)
    if expected is None:
        with pytest.raises(RefusedError, match="group G has no offset in queue 3 of T") as refused:
            ask(queries.query_offset, given, RequestCode.QUERY_CONSUMER_OFFSET, header)
        assert refused.value.code == ResponseCode.QUERY_NOT_FOUND
    else:
        answer = ask(queries.query_offset, given, RequestCode.QUERY_CONSUMER_OFFSET, header)
        assert headers.read(OffsetResponse, answer.fields).offset == expected


@pytest.mark.parametrize(
    ("known", "offset", "only_forward", "committed"),
    [
        (None, 0, False, 0),
        (None, 0, True, 0),
        (5, 3, False, 3),
        (5, 3, True, 5),
        (5, 5, True, 5),
        (5, 6, True, 6),
        (0, 1, True, 1),
    ],
)
def test_a_commit_replaces_the_offset_unless_it_may_only_increase(
    known: int | None, offset: int, only_forward: bool, committed: int
) -> None:
    given = services(Queue(*TIMES), known=known)
    header = UpdateOffsetRequest("G", "T", 3, offset, only_forward)
    ask(queries.update_offset, given, RequestCode.UPDATE_CONSUMER_OFFSET, header)
    assert given.offsets.known == committed


@pytest.mark.parametrize(
    ("header", "code", "remark"),
    [
        (UpdateOffsetRequest("G", "T", 3, -1), ResponseCode.SYSTEM_ERROR, "offset -1, 0 or more expected"),
        (UpdateOffsetRequest("", "T", 3, 1), ResponseCode.SYSTEM_ERROR, "cannot be a consumer group's name"),
        (UpdateOffsetRequest("G", "U", 3, 1), ResponseCode.TOPIC_NOT_EXIST, "topic U does not exist"),
        (UpdateOffsetRequest("G", "T", 16, 1), ResponseCode.SYSTEM_ERROR, "queue 16 of topic T"),
    ],
)
def test_a_commit_that_names_nothing_is_refused(
    header: UpdateOffsetRequest, code: ResponseCode, remark: str
) -> None:
    given = services(Queue(*TIMES))
    with pytest.raises(RefusedError, match=remark) as refused:
        ask(queries.update_offset, given, RequestCode.UPDATE_CONSUMER_OFFSET, header)
    assert (refused.value.code, given.offsets.known) == (code, None)


def test_a_commit_that_sets_an_offset_back_is_recorded_with_the_address_of_its_client() -> None:
    given = services(Queue(*TIMES), known=5)
    given.events, given.acl = Events(), None
    given.resets = SimpleNamespace(explains=lambda *_: False)
    given.pull_progress = SimpleNamespace(end=lambda *_: 0)
    given.clients = SimpleNamespace(consumer_channels=lambda _: [])
    fields = headers.write(UpdateOffsetRequest("G", "T", 3, 2))
    request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    queries.update_offset(given, request, cast("Any", SimpleNamespace(remote="10.0.0.1:7")))
    attrs = {"action": "update_consumer_offset", "address": "10.0.0.1:7"}
    assert given.events.kept[-1] == (Kind.ADMIN, {"topic": "T", "group": "G", "attrs": attrs})
