"""Tests administration and display of consumer offsets, on a store of one queue per test.

Source: docs/reference/protocol/administration.md, "Administration of a broker".
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from mqproof.impl.broker.processors import offset_admin
from mqproof.impl.broker.state.clients import Member
from mqproof.impl.broker.state.pull_progress import PullProgress
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ConsumeStats,
    ListedOffset,
    ListedOffsets,
    MessageQueue,
    QueueExtent,
    QueueOffsets,
    QueueProgress,
    SubscriptionGroup,
    TimeSpan,
    TimeSpans,
    TopicConfig,
    TopicStats,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    CloneOffsetRequest,
    ConsumeStatsRequest,
    ResetOffsetRequest,
    TopicGroupRequest,
    TopicRequest,
)
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.spec.events import Kind
from tests.impl.broker.memory_store import Events
from tests.impl.broker.requests.test_checks import Groups

TIMES = (1000, 2000, 4000)
NOW_MS = 10_000
CHANNEL: Any = object()
RESET = ResetOffsetRequest("T", "G", 0, False)


class Store:
    """The topics T and U: queue 0 has the offsets 5, 6 and 7, all other queues are empty."""

    def min_offset(self, topic: str, queue_id: int) -> int:
        return 5 if self._has(topic, queue_id) else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        return 8 if self._has(topic, queue_id) else 0

    def store_time_ms(self, topic: str, queue_id: int, offset: int) -> int | None:
        return TIMES[offset - 5] if self._has(topic, queue_id) and 5 <= offset < 8 else None

    def now_ms(self) -> int:
        return NOW_MS

    def _has(self, topic: str, queue_id: int) -> bool:
        assert topic in ("T", "U")
        return queue_id == 0


class Offsets:
    """The offsets by group and topic."""

    def __init__(self, **of_g: int) -> None:
        self.table: dict[tuple[str, str], dict[int, int]] = {
            ("G", topic): {0: offset, 1: 0} for topic, offset in of_g.items()
        }

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        return self.of_group(group, topic).get(queue_id)

    def of_group(self, group: str, topic: str) -> dict[int, int]:
        return dict(self.table.get((group, topic), {}))

    def topics_of(self, group: str) -> list[str]:
        return [topic for of, topic in self.table if of == group]

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self.table.setdefault((group, topic), {})[queue_id] = offset

    def clone(self, source: str, destination: str, topic: str) -> None:
        self.table[destination, topic] = self.of_group(source, topic)


class Consumer:
    """A member's channel, which records what is sent."""

    def __init__(self) -> None:
        self.asked: list[Command] = []

    def send_oneway(self, request: Command) -> None:
        self.asked.append(request)


class Resets:
    def __init__(self) -> None:
        self.expected: list[tuple[str, str, dict[int, int]]] = []

    def expect(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        self.expected.append((group, topic, offsets))


def services(committed: int = 7, *, versions: tuple[int, ...] = (), log: bool = True, **more: object) -> Any:
    """Return services; each version makes a member of group G, which subscribes to T."""
    members = {Consumer(): Member(f"c{at}", "JAVA", version, 0) for at, version in enumerate(versions)}
    group = SimpleNamespace(members=members, subscriptions={"T": None}) if versions else None

    async def offload(work: Any) -> Any:
        return work()

    return SimpleNamespace(
        **{
            "config": SimpleNamespace(name="broker-a"),
            "runtime": SimpleNamespace(offload=offload),
            "store": Store(),
            "topics": {
                topic: TopicConfig(topic, read_queue_nums=2, write_queue_nums=2) for topic in ("T", "U")
            },
            "groups": {name: SubscriptionGroup(group_name=name) for name in ("G", "H")},
            "offsets": Offsets(T=committed),
            "clients": SimpleNamespace(consumer_group=lambda name: group if name == "G" else None),
            "events": Events() if log else None,
            "resets": Resets(),
            "pull_progress": PullProgress(10),
            "members": members,
            **more,
        }
    )


def key(queue_id: int, topic: str = "T") -> ObjectKey:
    return ObjectKey(MessageQueue("broker-a", queue_id, topic))


def reset(given: Any, header: ResetOffsetRequest = RESET, language: str = "JAVA") -> dict[int, int]:
    """Return the offsets of the answer by queue."""
    request = new_request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, headers.write(header))
    request = Command(
        request.code, request.opaque, request.flag, request.fields, b"", None, request.version, language
    )
    answer: Any = offset_admin.reset_offsets(given, request, CHANNEL)
    assert answer.code == ResponseCode.SUCCESS
    table = java_json.read(QueueOffsets, answer.body).offset_table
    by_key = {key(queue_id): queue_id for queue_id in (0, 1)}
    return {by_key[one]: offset for one, offset in table.items()}


def of(header: ResetOffsetRequest, **changes: Any) -> ResetOffsetRequest:
    return msgspec.structs.replace(header, **changes)


# Resets.


@pytest.mark.parametrize(
    ("changes", "offset"),
    [
        ({"queue_id": 0, "offset": 8}, 8),
        ({"queue_id": 0, "offset": 0}, 0),
        ({"queue_id": 0, "offset": -1}, 5),  # no offset: the time decides
        ({"queue_id": 0}, 5),
        ({"queue_id": 0, "timestamp": 2000}, 6),
        ({"queue_id": 0, "timestamp": -1}, 7),  # not beyond what is committed
        ({"queue_id": 0, "timestamp": -1, "is_force": True}, 8),
        ({"queue_id": 0, "timestamp": 4000, "is_force": True}, 7),
    ],
)
@pytest.mark.parametrize("versions", [(), (409,)])
def test_a_named_queue_is_reset_at_the_broker_and_recorded(
    changes: dict[str, Any], offset: int, versions: tuple[int, ...]
) -> None:
    given = services(versions=versions)
    assert reset(given, of(RESET, **changes)) == {0: offset}
    assert given.offsets.of_group("G", "T") == {0: offset, 1: 0}
    fields = {"group": "G", "topic": "T", "queue_id": 0, "queue_offset": offset}
    attrs = {"reset": "true", "previous": "7"}
    events = [] if offset == 7 else [(Kind.OFFSET_COMMIT, {**fields, "attrs": attrs})]
    assert given.events.kept == events
    assert given.resets.expected == ([("G", "T", {0: offset})] if versions else [])
    assert [len(member.asked) for member in given.members] == [1] * len(versions)


@pytest.mark.parametrize("queue_id", [None, -1])
def test_all_queues_are_reset_by_the_members_who_commit_the_offsets(queue_id: int | None) -> None:
    given = services(versions=(409, 28))
    header = of(RESET, queue_id=queue_id)
    assert reset(given, header) == {0: 5, 1: 0}
    assert (given.offsets.of_group("G", "T"), given.events.kept) == ({0: 7, 1: 0}, [])
    assert given.resets.expected == [("G", "T", {0: 5, 1: 0})]
    for member in given.members:
        [request] = member.asked
        assert (request.code, request.is_oneway) == (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, True)
        assert headers.read(ResetOffsetRequest, request.fields) == header
        assert java_json.read(QueueOffsets, request.body).offset_table == {key(0): 5, key(1): 0}


def test_a_reset_is_not_expected_from_members_without_an_event_log() -> None:
    given = services(versions=(409,), log=False)
    assert reset(given, of(RESET, queue_id=0)) == {0: 5}
    assert given.resets.expected == []


def test_a_client_that_reads_no_objects_as_keys_receives_lists() -> None:
    given = services(versions=(409,))
    reset(given, language="CPP")
    [member] = given.members
    listed = java_json.read(ListedOffsets, member.asked[0].body).offset_table
    assert listed == [ListedOffset("broker-a", 5, 0, "T"), ListedOffset("broker-a", 0, 1, "T")]


@pytest.mark.parametrize(
    ("versions", "changes", "code", "remark"),
    [
        ((), {"topic": "V"}, ResponseCode.SYSTEM_ERROR, "topic V does not exist"),
        ((), {"queue_id": 2}, ResponseCode.SYSTEM_ERROR, "topic T has no queue 2"),
        ((), {"queue_id": -2}, ResponseCode.SYSTEM_ERROR, "topic T has no queue -2"),
        (
            (),
            {"queue_id": 0, "offset": 9},
            ResponseCode.SYSTEM_ERROR,
            "queue 0 of T ends at 8, offset 9 is beyond that",
        ),
        ((), {"group": "H"}, ResponseCode.SYSTEM_ERROR, "group H has no offset in queue 0 of T"),
        ((), {}, ResponseCode.CONSUMER_NOT_ONLINE, "no consumer of group G is connected"),
        ((409, 27), {}, ResponseCode.SYSTEM_ERROR, "consumer c1 is too old for this request"),
    ],
)
def test_a_reset_that_cannot_be_carried_out_changes_nothing(
    versions: tuple[int, ...], changes: dict[str, Any], code: ResponseCode, remark: str
) -> None:
    given = services(versions=versions)
    with pytest.raises(RefusedError) as refused:
        reset(given, of(RESET, **changes))
    assert (refused.value.code, refused.value.remark) == (code, remark)
    assert (given.offsets.of_group("G", "T"), given.resets.expected) == ({0: 7, 1: 0}, [])
    assert not any(member.asked for member in given.members)


# Clones.


@pytest.mark.parametrize(("topic", "cloned"), [(None, ["T", "U"]), ("T", ["T"]), ("V", [])])
def test_offsets_are_cloned_in_the_named_topic_or_in_all_that_exist(
    topic: str | None, cloned: list[str]
) -> None:
    given = services(offsets=Offsets(T=7, U=3, V=1))
    given.offsets.commit("H", "T", 0, 2)
    fields = headers.write(CloneOffsetRequest("G", "H", topic))
    answer: Any = offset_admin.clone_offsets(
        given, new_request(RequestCode.CLONE_GROUP_OFFSET, fields), CHANNEL
    )
    assert answer.code == ResponseCode.SUCCESS
    for one in cloned:
        assert given.offsets.of_group("H", one) == given.offsets.of_group("G", one)
    assert sorted({*given.offsets.topics_of("H"), "T"}) == sorted({*cloned, "T"})
    changed = [(event["topic"], event["queue_id"], event["attrs"]) for _, event in given.events.kept]
    t = [("T", 0, {"reset": "true", "previous": "2"}), ("T", 1, {"reset": "true"})]
    u = [("U", 0, {"reset": "true"}), ("U", 1, {"reset": "true"})]
    assert changed == [*(t if "T" in cloned else ()), *(u if "U" in cloned else ())]


@pytest.mark.parametrize(("name", "remark"), [("", "'' cannot be"), ("new", "group new does not exist")])
def test_offsets_are_not_cloned_to_a_group_that_cannot_exist(name: str, remark: str) -> None:
    given = services()
    given.config.auto_create_groups = False
    given.groups = Groups()
    request = new_request(RequestCode.CLONE_GROUP_OFFSET, headers.write(CloneOffsetRequest("G", name)))
    with pytest.raises(RefusedError, match=remark):
        offset_admin.clone_offsets(given, request, CHANNEL)
    assert given.offsets.topics_of(name) == []


# Views.


def shown(given: Any, header: ConsumeStatsRequest) -> ConsumeStats:
    request = new_request(RequestCode.GET_CONSUME_STATS, headers.write(header))

    async def main() -> ConsumeStats:
        await asyncio.sleep(10)  # pulls are counted for ten seconds
        answer = await offset_admin.consume_stats(given, request, CHANNEL)
        assert answer is not None
        return java_json.read(ConsumeStats, answer.body)

    return run_simulated(main(), SimulatedLoop())


def test_the_progress_of_a_group_is_the_sum_of_its_topics() -> None:
    given = services(offsets=Offsets(T=7, U=0))
    given.pull_progress.note("T", "G", 0, 8, 30, 0.0)
    given.pull_progress.note("U", "G", 0, 6, 20, 0.0)
    t = {key(0): QueueProgress(8, 7, 2000, 8), key(1): QueueProgress(0, 0, 0, 0)}
    u = {key(0, "U"): QueueProgress(8, 0, 0, 6), key(1, "U"): QueueProgress(0, 0, 0, 0)}
    assert shown(given, ConsumeStatsRequest("G")) == ConsumeStats(5.0, {**t, **u})
    assert shown(given, ConsumeStatsRequest("G", "T")) == ConsumeStats(3.0, t)


def test_a_topic_to_which_no_member_subscribes_has_a_rate_but_no_queues() -> None:
    given = services(versions=(409,), offsets=Offsets(T=7, U=0))
    given.pull_progress.note("U", "G", 0, 6, 20, 0.0)
    assert shown(given, ConsumeStatsRequest("G", "U")) == ConsumeStats(2.0)
    assert list(shown(given, ConsumeStatsRequest("G", "T")).offset_table) == [key(0), key(1)]
    assert shown(given, ConsumeStatsRequest("H", "V")) == ConsumeStats(0.0)


def test_other_requests_get_a_turn_after_each_topic() -> None:
    given = services(offsets=Offsets(T=7, U=0))
    request = new_request(RequestCode.GET_CONSUME_STATS, headers.write(ConsumeStatsRequest("G")))

    async def main() -> int:
        shown = asyncio.ensure_future(offset_admin.consume_stats(given, request, CHANNEL))
        turns = 0
        while not shown.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert run_simulated(main()) > 2


def test_the_extent_of_each_queue_of_a_topic_is_shown() -> None:
    request = new_request(RequestCode.GET_TOPIC_STATS_INFO, headers.write(TopicRequest("T")))
    answer: Any = offset_admin.topic_stats(services(), request, CHANNEL)
    table = java_json.read(TopicStats, answer.body).offset_table
    assert table == {key(0): QueueExtent(4000, 8, 5), key(1): QueueExtent(0, 0, 0)}


@pytest.mark.parametrize(
    ("committed", "consumed_ms", "delay_ms"),
    [(5, 1000, 9000), (6, 1000, 8000), (7, 2000, 6000), (8, 4000, 0), (0, 1000, 0)],
)
def test_the_times_of_a_queue_show_how_long_the_next_message_has_waited(
    committed: int, consumed_ms: int, delay_ms: int
) -> None:
    request = new_request(RequestCode.QUERY_CONSUME_TIME_SPAN, headers.write(TopicGroupRequest("T", "G")))
    answer: Any = offset_admin.time_spans(services(committed), request, CHANNEL)
    assert java_json.read(TimeSpans, answer.body).consume_time_span_set == [
        TimeSpan(consumed_ms, delay_ms, 4000, MessageQueue("broker-a", 0, "T"), 1000),
        TimeSpan(-1, 0, -1, MessageQueue("broker-a", 1, "T"), -1),
    ]


def test_a_message_that_was_stored_after_now_has_not_waited() -> None:
    given = services(5)
    given.store.now_ms = lambda: 0
    request = new_request(RequestCode.QUERY_CONSUME_TIME_SPAN, headers.write(TopicGroupRequest("T", "G")))
    answer: Any = offset_admin.time_spans(given, request, CHANNEL)
    assert java_json.read(TimeSpans, answer.body).consume_time_span_set[0].delay_time == 0
