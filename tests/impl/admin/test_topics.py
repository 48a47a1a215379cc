"""Tests topics, at brokers with scripted answers.

Source: docs/reference/protocol/administration.md, "Administration commands".
"""

import pytest

from mqproof.impl.admin import topics
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError
from mqproof.impl.remoting import bodies, headers, java_json
from mqproof.impl.remoting.bodies import GroupList, QueueExtent, TopicConfig, TopicStats
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import KvRequest, KvResponse, RouteRequest, UpdateTopicRequest
from mqproof.impl.remoting.java_json import ObjectKey
from tests.impl.admin.site import OK, Answer, Site, play


def stats(broker: str, *extents: tuple[int, int]) -> Answer:
    table = {
        ObjectKey(bodies.MessageQueue(broker, queue_id, "T")): QueueExtent(5, most, least)
        for queue_id, (least, most) in enumerate(extents)
    }
    return (0, {}, java_json.write(TopicStats(table)))


def test_a_topic_is_created_as_described() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.UPDATE_AND_CREATE_TOPIC: OK})
        config = TopicConfig("T", read_queue_nums=2, write_queue_nums=3, perm=4, topic_sys_flag=1, order=True)
        await topics.update_topic(site.admin, [broker.address], config)
        (fields,) = broker.fields_of(RequestCode.UPDATE_AND_CREATE_TOPIC)
        assert headers.read(UpdateTopicRequest, fields) == UpdateTopicRequest(
            "T", "TBW102", 2, 3, 4, "SINGLE_TAG", 1, True
        )

    play(scenario)


def test_an_order_is_stored_at_every_name_server() -> None:
    async def scenario(site: Site) -> None:
        assert await topics.set_order(site.admin, "T", {"b-b": 2, "b-a": 4}) == "b-a:4;b-b:2"
        for address in site.addresses:
            found = await site.ask(address, RequestCode.GET_KV_CONFIG, KvRequest("ORDER_TOPIC_CONFIG", "T"))
            assert headers.read(KvResponse, found.fields).value == "b-a:4;b-b:2"

    play(scenario)


def test_a_deleted_topic_is_removed_from_brokers_and_name_servers() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {RequestCode.DELETE_TOPIC_IN_BROKER: OK})
        await topics.set_order(site.admin, "T", {"b-a": 4})
        await topics.delete_topic(site.admin, [broker.address], "T", "C")
        assert broker.fields_of(RequestCode.DELETE_TOPIC_IN_BROKER) == [{"topic": "T"}]
        for address in site.addresses:
            order = await site.ask(address, RequestCode.GET_KV_CONFIG, KvRequest("ORDER_TOPIC_CONFIG", "T"))
            assert order.code == ResponseCode.QUERY_NOT_FOUND
            answer = await site.ask(address, RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest("T"))
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST

    play(scenario)


def test_name_servers_keep_a_topic_that_a_broker_did_not_delete() -> None:
    async def scenario(site: Site) -> None:
        broker = await site.add_broker("b-a", {})
        with pytest.raises(ClientError):
            await topics.delete_topic(site.admin, [broker.address], "T", "C")
        assert await site.admin.route("T")

    play(scenario)


def test_a_change_of_permissions_changes_nothing_else() -> None:
    async def scenario(site: Site) -> None:
        config = TopicConfig("T", read_queue_nums=2, write_queue_nums=3, topic_sys_flag=2)
        broker = await site.add_broker("b-a", {RequestCode.UPDATE_AND_CREATE_TOPIC: OK}, config)
        other = await site.add_broker("b-b", {}, "U")
        assert await topics.update_permission(site.admin, "T", 4, [broker.address]) == {broker.address: 6}
        (fields,) = broker.fields_of(RequestCode.UPDATE_AND_CREATE_TOPIC)
        asked = headers.read(UpdateTopicRequest, fields)
        assert (asked.read_queue_nums, asked.write_queue_nums, asked.perm, asked.topic_sys_flag) == (
            2,
            3,
            4,
            2,
        )
        with pytest.raises(ClientError, match=f"topic T is not at broker {other.address}"):
            await topics.update_permission(site.admin, "T", 4, [other.address])

    play(scenario)


def test_topics_and_their_groups_are_listed() -> None:
    async def scenario(site: Site) -> None:
        groups: dict[str, dict[RequestCode, Answer]] = {
            name: {
                RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: (0, {}, java_json.write(GroupList(list(reported))))
            }
            for name, reported in (("b-a", "HG"), ("b-b", "G"))
        }
        await site.add_broker("b-a", groups["b-a"], "T", "U")
        await site.add_broker("b-b", groups["b-b"], "T", cluster="D")
        assert await topics.topic_names(site.admin) == ["T", "U"]
        assert await topics.topic_names(site.admin, "D") == ["T"]
        assert await topics.groups_of(site.admin, "T") == ["G", "H"]

    play(scenario)


def test_the_queues_of_all_brokers_form_one_table() -> None:
    async def scenario(site: Site) -> None:
        with pytest.raises(NoRouteError):
            await topics.topic_stats(site.admin, "T")
        await site.add_broker("b-b", {RequestCode.GET_TOPIC_STATS_INFO: stats("b-b", (0, 7))})
        await site.add_broker("b-a", {RequestCode.GET_TOPIC_STATS_INFO: stats("b-a", (1, 2), (3, 4))})
        found = await topics.topic_stats(site.admin, "T")
        assert [(str(queue), extent.min_offset, extent.max_offset) for queue, extent in found.items()] == [
            ("T@b-a:0", 1, 2),
            ("T@b-a:1", 3, 4),
            ("T@b-b:0", 0, 7),
        ]

    play(scenario)


def test_a_key_that_is_not_a_queue_is_an_error() -> None:
    assert topics.queue_of(ObjectKey(bodies.MessageQueue("b", 1, "T"))) == MessageQueue("T", "b", 1)
    with pytest.raises(ClientError, match="is invalid"):
        topics.queue_of(ObjectKey({"queueId": 1}))
