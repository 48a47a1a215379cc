"""Our administration of Apache's servers: the life of a topic, of messages in it, and of a group."""

import asyncio
from pathlib import Path

import pytest

from conformance.targets.apache import servers
from conformance.targets.apache.artifacts import ApacheMissingError, releases
from impl.admin import brokers, groups, messages, name_servers, topics
from impl.admin.admin import Admin
from impl.client.calls import GroupCalls
from impl.client.model import MessageQueue, NoRouteError, Sent
from impl.client.producer import Producer
from impl.message import KEYS, Message
from impl.remoting.bodies import SubscriptionGroup, TopicConfig
from impl.runtime.network import Address, AsyncioNetwork
from impl.runtime.runtime import production

pytestmark = pytest.mark.apache

QUEUES = [MessageQueue("T", "apache-a", queue_id) for queue_id in range(2)]


async def status_of(admin: Admin) -> brokers.BrokerState:
    """The one broker's; a released broker fails to tell it before its first sample of statistics."""
    for _ in range(60):
        (state,) = await brokers.cluster_states(admin)
        if state.status is not None:
            break
        await asyncio.sleep(0.5)
    return state


async def everything(name_server: Address, broker: Address) -> None:
    async with Admin([name_server], production(AsyncioNetwork())) as admin:
        assert await admin.masters("DefaultCluster") == [broker]
        state = await status_of(admin)
        assert state.status is not None
        assert state.status["brokerVersionDesc"].startswith("V")
        await brokers.update_config(admin, [broker], "maxMessageSize", "4000000")
        assert (await brokers.config(admin, broker))["maxMessageSize"] == "4000000"

        await topics.update_topic(admin, [broker], TopicConfig("T", read_queue_nums=2, write_queue_nums=2))
        await topics.update_permission(admin, "T", 4, [broker])
        await topics.update_permission(admin, "T", 6, [broker])
        (data,) = (await admin.route("T")).queue_datas
        assert (data.perm, data.read_queue_nums, data.write_queue_nums) == (6, 2, 2)
        await name_servers.wipe_write(admin, "apache-a")
        assert (await admin.route("T")).queue_datas[0].perm == 4
        if "5." in state.status["brokerVersionDesc"].replace("_", "."):
            await name_servers.add_write(admin, "apache-a")
        else:
            await topics.update_topic(
                admin, [broker], TopicConfig("T", read_queue_nums=2, write_queue_nums=2)
            )

        producer = Producer(admin.session)
        for number in range(4):
            message = Message("T", f"{number}".encode(), {KEYS: f"k{number} all"})
            sent = await producer.send(message, QUEUES[number % 2])
            assert isinstance(sent, Sent), sent
            found = await messages.by_offset_id(admin, sent.offset_message_id)
            assert found.message.body == f"{number}".encode()
        await asyncio.sleep(2)  # the index is written behind the log
        assert len(await messages.by_key(admin, "T", "all")) == 4
        assert [each.message.body async for _, each in messages.read(admin, "T")] == [b"0", b"2", b"1", b"3"]
        assert [extent.max_offset for extent in (await topics.topic_stats(admin, "T")).values()] == [2, 2]

        await groups.update_group(admin, [broker], SubscriptionGroup(group_name="G"))
        calls = GroupCalls(admin.session, "G")
        for queue in QUEUES:
            await calls.commit(queue, 1)
        await asyncio.sleep(1)
        assert (await groups.progress(admin, "G", "T")).behind == 2
        assert await groups.reset_offsets(admin, "G", "T", 0) == dict.fromkeys(QUEUES, 0)
        assert (await groups.progress(admin, "G", "T")).behind == 4
        await groups.delete_group(admin, [broker], "G", offsets=True)

        await topics.delete_topic(admin, [broker], "T", "DefaultCluster")
        with pytest.raises(NoRouteError):
            await admin.route("T")


@pytest.mark.parametrize("release", releases())
def test_topics_messages_and_groups_are_administered_at_apaches_servers(release: str, tmp_path: Path) -> None:
    try:
        names = servers.name_server(release, tmp_path)
        broker = servers.broker(release, tmp_path, names.address)
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    with servers.running(names, broker):
        asyncio.run(everything(names.address, broker.address))
