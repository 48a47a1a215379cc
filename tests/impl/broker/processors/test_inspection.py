"""Tests inspection by administrators.

Source: docs/reference/protocol/administration.md, "Statistics of a broker".
"""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.broker.processors.inspection import all_consume_stats, queue_entries, statistics
from mqproof.impl.broker.state.rolling_counts import NOTHING, Counted
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    BrokerStats,
    ConsumeStatsList,
    CorrectionOffsets,
    GroupSubscription,
    QueueEntries,
    QueueEntry,
    QueueProgress,
    StatsWindow,
    Subscription,
    SubscriptionGroup,
    SubscriptionGroupList,
    TopicConfig,
    TopicConfigList,
    TopicList,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import (
    AllConsumeStatsRequest,
    CorrectionRequest,
    GroupRequest,
    GroupTopicRequest,
    QueueEntriesRequest,
    StatsRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.files import record
from tests.impl.broker.processors.test_broker_admin import Consumer, commit, key, services, three_messages
from tests.impl.broker.processors.test_offset_admin import Offsets
from tests.impl.broker.processors.test_offset_admin import services as offset_services
from tests.impl.broker.test_broker import QUEUE, message, sent
from tests.impl.world import World, play


def test_the_entries_of_a_queue_are_shown_with_whether_a_group_wants_them() -> None:
    async def scenario(world: World) -> None:
        await three_messages(world)
        consumer = await Consumer(world).join()
        header = QueueEntriesRequest("T", 0, 1, 10, "G")
        answer = await world.ask(RequestCode.QUERY_CONSUME_QUEUE, header)
        shown = java_json.read(QueueEntries, answer.body)
        assert (shown.min_queue_index, shown.max_queue_index, shown.filter_data) == (0, 3, None)
        assert shown.subscription_data is not None
        assert shown.subscription_data.topic == "T"
        assert len(shown.queue_data) == 2
        for place, entry in enumerate(shown.queue_data, start=1):
            stored = services(world).store.record_at(entry.physic_offset)
            assert stored is not None
            assert len(stored) == entry.physic_size
            assert record.decode(stored).queue_offset == place
        await consumer.remoting.close()

    play(scenario)


def test_missing_entries_are_reported() -> None:
    async def scenario(world: World) -> None:
        await three_messages(world)
        answers = [
            await world.ask(RequestCode.QUERY_CONSUME_QUEUE, QueueEntriesRequest(topic, queue, index, count))
            for topic, queue, index, count in (
                ("T", 0, 3, 1),
                ("T", 0, -1, 1),
                ("T", 9, 0, 1),
                ("unknown", 0, 0, 1),
                ("T", 0, 0, -1),
            )
        ]
        assert [(answer.code, bool(answer.body)) for answer in answers] == [
            (0, False),
            (0, False),
            (1, False),
            (1, False),
            (0, True),
        ]
        offline = java_json.read(QueueEntries, answers[-1].body)
        assert (offline.filter_data, offline.queue_data) == ("@T is not online", [])

    play(scenario)


def test_the_topics_and_subscriptions_of_a_group_are_reported() -> None:
    async def scenario(world: World) -> None:
        sent(await world.producer.send(message("x"), QUEUE))
        consumer = await Consumer(world).join()
        await commit(world, 1)
        answer = await world.ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, GroupRequest("G"))
        assert java_json.read(TopicList, answer.body) == TopicList(str(world.broker_address), ["T"])
        answer = await world.ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, GroupRequest("offline"))
        assert java_json.read(TopicList, answer.body).topic_list == []
        found = []
        for header in (GroupTopicRequest("G", "T"), GroupTopicRequest("G", "U"), GroupTopicRequest("X", "T")):
            answer = await world.ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, header)
            found.append(java_json.read(GroupSubscription, answer.body))
        assert isinstance(found[0].subscription_data, Subscription)
        assert [one.subscription_data is None for one in found] == [False, True, True]
        assert [(one.group, one.topic) for one in found] == [("G", "T"), ("G", "U"), ("X", "T")]
        await consumer.remoting.close()

    play(scenario)


def test_the_least_offsets_can_exclude_groups_without_changing_them() -> None:
    async def least(world: World, filtered: str | None) -> dict[int, int]:
        answer = await world.ask(RequestCode.QUERY_CORRECTION_OFFSET, CorrectionRequest("T", "G", filtered))
        return dict(java_json.read(CorrectionOffsets, answer.body).correction_offsets)

    async def scenario(world: World) -> None:
        sent(await world.producer.send(message("x"), QUEUE))
        for group, queue_id, offset in (("G", 0, 2), ("G", 1, 2), ("H", 0, 1), ("H", 1, 0), ("I", 3, 7)):
            await commit(world, offset, group, queue_id)
        assert await least(world, None) == {0: 1, 1: 0, 3: 7}
        assert await least(world, "H, I") == {0: 2, 1: 2}
        # Released brokers forget the offsets of the groups that are left out.
        assert await least(world, None) == {0: 1, 1: 0, 3: 7}

    play(scenario)


def test_the_progress_of_every_group_is_reported_by_kind_of_topic() -> None:
    async def scenario(world: World) -> None:
        await three_messages(world)
        await commit(world, 1)
        answer = await world.ask(RequestCode.GET_BROKER_CONSUME_STATS, AllConsumeStatsRequest(False))
        listed = java_json.read(ConsumeStatsList, answer.body)
        assert (listed.broker_addr, listed.total_diff) == (str(world.broker_address), 2)
        by_group = {group: stats for table in listed.consume_stats_list for group, stats in table.items()}
        (stats,) = by_group["G"]
        progress = stats.offset_table[key()]
        assert isinstance(progress, QueueProgress)
        assert (progress.broker_offset, progress.consumer_offset) == (3, 1)
        answer = await world.ask(RequestCode.GET_BROKER_CONSUME_STATS, AllConsumeStatsRequest(True))
        ordered = java_json.read(ConsumeStatsList, answer.body)
        assert ordered.total_diff == 0
        assert not any(stats for table in ordered.consume_stats_list for stats in table.values())

    play(scenario)


def test_sent_and_pulled_messages_are_counted_by_topic_and_group() -> None:
    async def scenario(world: World) -> None:
        await three_messages(world)
        await asyncio.sleep(11)
        answer = await world.ask(RequestCode.VIEW_BROKER_STATS_DATA, StatsRequest("TOPIC_PUT_NUMS", "T"))
        stats = java_json.read(BrokerStats, answer.body)
        assert (stats.stats_minute.sum, stats.stats_hour.sum, stats.stats_day.sum) == (3, 3, 3)
        assert isinstance(stats.stats_minute, StatsWindow)
        assert stats.stats_minute.avgpt == 1.0
        assert 0 < stats.stats_minute.tps <= 0.3
        await world.consumer.pull(QUEUE, 0)
        await asyncio.sleep(11)
        for name, at in (("GROUP_GET_NUMS", "T@G"), ("BROKER_GET_NUMS", "DefaultCluster")):
            answer = await world.ask(RequestCode.VIEW_BROKER_STATS_DATA, StatsRequest(name, at))
            assert java_json.read(BrokerStats, answer.body).stats_minute.sum == 3, name
        for name, at in (("TOPIC_PUT_NUMS", "unknown"), ("X", "T")):
            answer = await world.ask(RequestCode.VIEW_BROKER_STATS_DATA, StatsRequest(name, at))
            assert answer.code == ResponseCode.SYSTEM_ERROR

    play(scenario)


def test_the_windows_of_a_statistic_are_shown_with_their_averages() -> None:
    windows = (Counted(6, 4, 3.0), NOTHING, Counted(9, 1, 18.0))
    services = SimpleNamespace(statistics=SimpleNamespace(counts=SimpleNamespace(windows=lambda *_: windows)))
    request = new_request(RequestCode.VIEW_BROKER_STATS_DATA, headers.write(StatsRequest("N", "K")))

    async def main() -> BrokerStats:
        answer: Any = statistics(cast("Any", services), request, cast("Any", None))
        return java_json.read(BrokerStats, answer.body)

    shown = run_simulated(main())
    assert shown.stats_minute == StatsWindow(avgpt=1.5, sum=6, tps=2.0)
    assert shown.stats_hour == StatsWindow(avgpt=0.0, sum=0, tps=0.0)
    assert shown.stats_day == StatsWindow(avgpt=9.0, sum=9, tps=0.5)


def test_a_statistic_that_was_not_counted_is_named() -> None:
    given: Any = SimpleNamespace(statistics=SimpleNamespace(counts=SimpleNamespace(windows=lambda *_: None)))
    request = new_request(RequestCode.VIEW_BROKER_STATS_DATA, headers.write(StatsRequest("N", "K")))

    async def main() -> None:
        with pytest.raises(RefusedError, match="nothing was counted under N K") as refused:
            statistics(given, request, cast("Any", None))
        assert refused.value.code == ResponseCode.SYSTEM_ERROR

    run_simulated(main())


@pytest.mark.parametrize(
    ("index", "asked", "shown"),
    [
        (7, -1, 0),
        (7, 0, 0),
        (7, 1, 1),
        (7, 1024, 1024),
        (7, 1025, 1024),
        (7, 5000, 1024),
        (2990, 20, 10),
        (2999, 1, 1),
        (5, 1, 1),
    ],
)
def test_an_answer_has_at_most_1024_entries_and_none_beyond_the_end(
    index: int, asked: int, shown: int
) -> None:
    def of_t(value: int) -> Any:
        def offset(topic: str, queue_id: int) -> int:
            assert (topic, queue_id) == ("T", 3)
            return value

        return offset

    def units(*where: object) -> list[Any]:
        assert where == ("T", 3, index, shown)
        return [SimpleNamespace(commit_offset=1000, size=155, tags_code=9)]

    store = SimpleNamespace(min_offset=of_t(5), max_offset=of_t(3000), units=units)
    given = SimpleNamespace(store=store, clients=SimpleNamespace(consumer_group=lambda _: None))
    fields = headers.write(QueueEntriesRequest("T", 3, index, asked, "G"))
    request = new_request(RequestCode.QUERY_CONSUME_QUEUE, fields)
    answer: Any = queue_entries(cast("Any", given), request, cast("Any", None))
    assert java_json.read(QueueEntries, answer.body) == QueueEntries(
        filter_data="G@T is not online",
        max_queue_index=3000,
        min_queue_index=5,
        queue_data=[QueueEntry(False, 1000, 155, 9)],
    )


def test_an_empty_queue_and_an_index_outside_the_queue_are_named() -> None:
    def asked(begin: int, end: int, index: int) -> Any:
        store = SimpleNamespace(min_offset=lambda *_: begin, max_offset=lambda *_: end)
        fields = headers.write(QueueEntriesRequest("T", 3, index, 1, "G"))
        request = new_request(RequestCode.QUERY_CONSUME_QUEUE, fields)
        return queue_entries(cast("Any", SimpleNamespace(store=store)), request, cast("Any", None))

    with pytest.raises(RefusedError, match="queue 3 of topic T has no entries") as refused:
        asked(5, 5, 5)
    assert refused.value.code == ResponseCode.SYSTEM_ERROR
    for index in (4, 8):
        answer = asked(5, 8, index)
        assert (answer.code, answer.body) == (ResponseCode.SUCCESS, b"")
        assert answer.remark == "queue 3 of topic T has entries from 5 to 7"


def test_the_progress_of_all_groups_leaves_out_topics_of_the_other_kind() -> None:
    given = offset_services(offsets=Offsets(V=1, U=2, T=7))
    given.topics["U"] = TopicConfig("U", order=True)
    given.address = "10.0.0.1:10911"
    table = {name: SubscriptionGroup(group_name=name) for name in ("G", "H")}
    given.groups = SimpleNamespace(snapshot=lambda: SimpleNamespace(subscription_group_table=table))
    fields = headers.write(AllConsumeStatsRequest(False))
    request = new_request(RequestCode.GET_BROKER_CONSUME_STATS, fields)

    async def main() -> ConsumeStatsList:
        asking = asyncio.ensure_future(all_consume_stats(given, request, cast("Any", None)))
        turns = 0
        while not asking.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 1, "other requests get a turn after each topic"
        answer: Any = asking.result()
        return java_json.read(ConsumeStatsList, answer.body)

    found = run_simulated(main())
    assert (found.broker_addr, found.total_diff) == ("10.0.0.1:10911", 1)
    of_g, of_h = found.consume_stats_list
    assert of_h == {"H": []}
    [stats] = of_g["G"]
    assert list(stats.offset_table) == [key(0), key(1)]


@pytest.mark.parametrize("broken", [False, True])
def test_several_topics_or_groups_are_created_together_or_not_at_all(broken: bool) -> None:
    async def scenario(world: World) -> None:
        topics = [TopicConfig("A"), TopicConfig("../B" if broken else "B")]
        body = java_json.write(TopicConfigList(topics))
        answer = await world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)
        assert answer.code == (1 if broken else 0)
        assert (services(world).topics.get("A") is None) is broken
        groups = [SubscriptionGroup(group_name="A"), SubscriptionGroup(group_name="/" if broken else "B")]
        body = java_json.write(SubscriptionGroupList(groups))
        answer = await world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)
        assert answer.code == (1 if broken else 0)
        assert (services(world).groups.get("A") is None) is broken

    play(scenario)
