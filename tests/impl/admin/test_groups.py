"""Tests consumer groups, at brokers with scripted answers.

Source: docs/reference/protocol/administration.md, "Administration commands".
"""

import pytest

from mqproof.impl.admin import groups, topics
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, RefusalError
from mqproof.impl.remoting import bodies, headers, java_json
from mqproof.impl.remoting.bodies import (
    ConsumerConnection,
    ConsumeStats,
    QueueOffsets,
    QueueProgress,
    SubscriptionGroup,
    Table,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import (
    ConsumeStatsRequest,
    OffsetResponse,
    ResetOffsetRequest,
    UpdateOffsetRequest,
)
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.runtime.network import Address
from tests.impl.admin.site import OK, Answer, Site, play, refusal

OFFLINE = refusal(ResponseCode.CONSUMER_NOT_ONLINE)


def stats(broker: str, *offsets: tuple[int, int], tps: float = 1.5) -> Answer:
    """Return the offsets of broker and consumer, queue by queue."""
    table = {
        ObjectKey(bodies.MessageQueue(broker, queue_id, "T")): QueueProgress(end, at, 5)
        for queue_id, (end, at) in enumerate(offsets)
    }
    return (0, {}, java_json.write(ConsumeStats(tps, table)))


def test_a_group_is_created_as_described_and_deleted_with_its_offsets() -> None:
    async def scenario(site: Site) -> None:
        codes = (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, RequestCode.DELETE_SUBSCRIPTIONGROUP)
        broker = await site.add_broker("b-a", dict.fromkeys(codes, OK))
        config = SubscriptionGroup(group_name="G", retry_max_times=3)
        await groups.update_group(site.admin, [broker.address], config)
        (body,) = broker.bodies_of(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
        assert java_json.read(SubscriptionGroup, body) == config
        await groups.delete_group(site.admin, [broker.address], "G", offsets=True)
        assert broker.fields_of(RequestCode.DELETE_SUBSCRIPTIONGROUP) == [
            {"groupName": "G", "removeOffset": "true", "cleanOffset": "true"}  # the names of 4.9 and of 5.x
        ]

    play(scenario)


def test_a_groups_topics_are_deleted_from_its_cluster() -> None:
    async def scenario(site: Site) -> None:
        answers = {RequestCode.DELETE_TOPIC_IN_BROKER: OK}
        broker = await site.add_broker("b-a", answers, "%RETRY%G", "%DLQ%G", "T")
        await groups.delete_group_topics(site.admin, [broker.address], "G", "C")
        asked = broker.fields_of(RequestCode.DELETE_TOPIC_IN_BROKER)
        assert asked == [{"topic": "%RETRY%G"}, {"topic": "%DLQ%G"}]
        assert await topics.topic_names(site.admin) == ["T"]

    play(scenario)


def test_progress_combines_all_brokers_and_includes_the_lag() -> None:
    async def scenario(site: Site) -> None:
        await site.add_broker("b-b", {RequestCode.GET_CONSUME_STATS: stats("b-b", (9, 9))})
        await site.add_broker("b-a", {RequestCode.GET_CONSUME_STATS: stats("b-a", (5, 2), (4, 0))})
        found = await groups.progress(site.admin, "G")
        assert [str(queue) for queue in found.queues] == ["T@b-a:0", "T@b-a:1", "T@b-b:0"]
        assert (found.behind, found.tps) == (7, 3.0)

    play(scenario)


def test_progress_in_one_topic_is_requested_from_the_brokers_of_that_topic() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.GET_CONSUME_STATS: stats("b-a", (5, 2))}, "T")
        assert (await groups.progress(site.admin, "G", "T")).behind == 3
        (fields,) = broker.fields_of(RequestCode.GET_CONSUME_STATS)
        assert headers.read(ConsumeStatsRequest, fields) == ConsumeStatsRequest("G", "T")

    play(scenario)


def test_an_unknown_group_is_distinguished_from_one_without_offsets() -> None:
    async def scenario(site: Site) -> None:
        await site.add_broker("b-a", {RequestCode.GET_CONSUME_STATS: stats("b-a")})
        with pytest.raises(NoRouteError, match="no group H"):
            await groups.progress(site.admin, "H")
        with pytest.raises(groups.NoOffsetsError, match="group G has no offsets in topic T"):
            await groups.progress(site.admin, "G", "T")

    play(scenario)


def test_groups_are_summarised_with_and_without_members_and_offsets() -> None:
    async def scenario(site: Site) -> None:
        members = ConsumerConnection([], "CONSUME_FROM_LAST_OFFSET", "CONSUME_PASSIVELY", "CLUSTERING", {})
        await site.add_broker(
            "b-a",
            {
                RequestCode.GET_CONSUME_STATS: stats("b-a", (5, 2)),
                RequestCode.GET_CONSUMER_CONNECTION_LIST: (0, {}, java_json.write(members)),
            },
            "%RETRY%online",
            "T",
        )
        await site.add_broker(
            "b-b",
            {
                RequestCode.GET_CONSUME_STATS: stats("b-b"),
                RequestCode.GET_CONSUMER_CONNECTION_LIST: OFFLINE,
            },
            "%RETRY%idle",
        )
        idle, online = await groups.summaries(site.admin)
        assert (idle.group, idle.connection, idle.progress) == ("idle", None, None)
        assert (online.group, online.connection) == ("online", members)
        assert online.progress is not None
        assert online.progress.behind == 3

    play(scenario)


def test_each_queue_has_the_member_that_reports_it() -> None:
    async def scenario(site: Site) -> None:
        members = [bodies.Connection("10.0.0.9:1", f"c{number}", "JAVA", 409) for number in range(2)]
        connected = ConsumerConnection(members, "", "CONSUME_PASSIVELY", "CLUSTERING", {})
        reported = (
            b'{"mqTable":{{"brokerName":"b-a","queueId":1,"topic":"T"}:{"commitOffset":5,"droped":false}}}'
        )
        broker = await site.add_broker(
            "b-a",
            {
                RequestCode.GET_CONSUMER_CONNECTION_LIST: (0, {}, java_json.write(connected)),
                RequestCode.GET_CONSUMER_RUNNING_INFO: (0, {}, reported),
            },
        )
        await site.add_broker("b-b", {RequestCode.GET_CONSUMER_CONNECTION_LIST: OFFLINE})
        assert await groups.owners(site.admin, "G") == {MessageQueue("T", "b-a", 1): "c1"}
        broker.answers[RequestCode.GET_CONSUMER_RUNNING_INFO] = refusal(ResponseCode.SYSTEM_ERROR)
        assert await groups.owners(site.admin, "G") == {}

    play(scenario)


def test_a_group_with_members_is_reset_by_its_broker() -> None:
    async def scenario(site: Site) -> None:
        table = {ObjectKey(bodies.MessageQueue("b-a", 0, "T")): 2}
        answer: Answer = (0, {}, java_json.write(QueueOffsets(table)))
        broker = await site.add_broker("b-a", {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: answer})
        found = await groups.reset_offsets(site.admin, "G", "T", 77, force=False)
        assert found == {MessageQueue("T", "b-a", 0): 2}
        (fields,) = broker.fields_of(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)
        assert headers.read(ResetOffsetRequest, fields) == ResetOffsetRequest("T", "G", 77, False)
        await groups.reset_offsets(site.admin, "G", "T", 77, cpp=True)
        assert [request.language for request in broker.asked] == ["PYTHON", "CPP"]

    play(scenario)


@pytest.mark.parametrize(
    ("timestamp_ms", "force", "offsets"),
    [(77, True, {0: 3, 1: 3}), (77, False, {0: 2, 1: 3}), (groups.END, True, {0: 5, 1: 4})],
)
def test_a_group_without_members_is_reset_offset_by_offset(
    timestamp_ms: int, force: bool, offsets: dict[int, int]
) -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker(
            "b-a",
            {
                RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: OFFLINE,
                RequestCode.GET_CONSUME_STATS: stats("b-a", (5, 2), (4, 4)),
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: (0, headers.write(OffsetResponse(3)), b""),
                RequestCode.UPDATE_CONSUMER_OFFSET: OK,
            },
        )
        found = await groups.reset_offsets(site.admin, "G", "T", timestamp_ms, force=force)
        assert {queue.queue_id: offset for queue, offset in found.items()} == offsets
        commits = [
            headers.read(UpdateOffsetRequest, fields)
            for fields in broker.fields_of(RequestCode.UPDATE_CONSUMER_OFFSET)
        ]
        assert {commit.queue_id: commit.commit_offset for commit in commits} == offsets

    play(scenario)


def test_a_reset_at_one_broker_does_not_change_the_others() -> None:
    async def scenario(site: Site) -> None:
        answers = {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: OFFLINE,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: (0, headers.write(OffsetResponse(1)), b""),
            RequestCode.UPDATE_CONSUMER_OFFSET: OK,
        }
        first, other = [
            await site.add_broker(name, {**answers, RequestCode.GET_CONSUME_STATS: stats(name, (5, 2))})
            for name in ("b-a", "b-b")
        ]
        found = await groups.reset_offsets(site.admin, "G", "T", 77, broker=first.address)
        assert found == {MessageQueue("T", "b-a", 0): 1}
        assert other.fields_of(RequestCode.UPDATE_CONSUMER_OFFSET) == []

    play(scenario)


MEMBER = bodies.Connection("10.0.0.9:1", "c1", "JAVA", 400)
MEMBERS: Answer = (0, {}, java_json.write(ConsumerConnection([MEMBER], "", "", "", {})))


def version(name: str, **more: str) -> Answer:
    return (0, {}, java_json.write(Table({"brokerVersionDesc": name, **more})))


@pytest.mark.parametrize("offset", [None, 3])
def test_an_offset_is_committed_for_one_queue_of_a_group_without_members(offset: int | None) -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker(
            "b-a",
            {
                RequestCode.GET_CONSUMER_CONNECTION_LIST: OFFLINE,
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: (0, headers.write(OffsetResponse(3)), b""),
                RequestCode.GET_MAX_OFFSET: (0, headers.write(OffsetResponse(3)), b""),
                RequestCode.UPDATE_CONSUMER_OFFSET: OK,
                RequestCode.GET_BROKER_RUNTIME_INFO: version("V4_9_5"),
            },
        )
        queue = MessageQueue("T", "b-a", 1)
        found = await groups.reset_queue(
            site.admin, "G", "T", broker.address, 1, timestamp_ms=77, offset=offset
        )
        assert found == {queue: 3}
        (fields,) = broker.fields_of(RequestCode.UPDATE_CONSUMER_OFFSET)
        assert headers.read(UpdateOffsetRequest, fields) == UpdateOffsetRequest("G", "T", 1, 3)
        assert not broker.fields_of(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)

    play(scenario)


@pytest.mark.parametrize("reported", [version("V5_5_0"), version("V4_9_8", implementation="mqproof")])
def test_one_queue_is_reset_by_a_broker_that_supports_it(reported: Answer) -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker(
            "b-a",
            {
                RequestCode.GET_MAX_OFFSET: (0, headers.write(OffsetResponse(3)), b""),
                RequestCode.GET_BROKER_RUNTIME_INFO: reported,
                RequestCode.UPDATE_CONSUMER_OFFSET: OK,
                RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: OK,
            },
        )
        await groups.reset_queue(site.admin, "G", "T", broker.address, 1, timestamp_ms=77, offset=3)
        (fields,) = broker.fields_of(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)
        assert headers.read(ResetOffsetRequest, fields) == ResetOffsetRequest("T", "G", 77, True, 1, 3)

    play(scenario)


def test_one_queue_is_not_reset_where_the_broker_would_reset_all() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker(
            "b-a",
            {
                RequestCode.GET_CONSUMER_CONNECTION_LIST: MEMBERS,
                RequestCode.GET_MAX_OFFSET: (0, headers.write(OffsetResponse(3)), b""),
                RequestCode.GET_BROKER_RUNTIME_INFO: version("V4_9_5"),
            },
        )
        with pytest.raises(ClientError, match="a broker of V4_9_5 resets all its queues"):
            await groups.reset_queue(site.admin, "G", "T", broker.address, 1, timestamp_ms=77, offset=3)
        with pytest.raises(ClientError, match="T@b-a:1 ends at 3, offset 4 is beyond that"):
            await groups.reset_queue(site.admin, "G", "T", broker.address, 1, timestamp_ms=77, offset=4)
        away = Address("10.9.9.9", 1)
        with pytest.raises(ClientError, match=r"the name server knows no broker at 10\.9\.9\.9:1"):
            await groups.reset_queue(site.admin, "G", "T", away, 1, timestamp_ms=77, offset=3)

    play(scenario)


def test_a_broker_that_refuses_a_reset_is_an_error() -> None:
    async def scenario(site: Site) -> None:
        await site.add_broker("b-a", {})
        with pytest.raises(RefusalError, match="INVOKE_BROKER_TO_RESET_OFFSET"):
            await groups.reset_offsets(site.admin, "G", "T", 77)

    play(scenario)
