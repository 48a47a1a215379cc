"""Tests the administration of our own broker from end to end in a simulated world."""

import asyncio
from dataclasses import replace

import pytest
from msgspec import structs

from mqproof.impl.admin import brokers, groups, messages, name_servers, topics
from mqproof.impl.admin.admin import Admin
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, RefusalError, Sent
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.headers import ViewMessageRequest
from mqproof.impl.remoting.message import DELAY, KEYS, RETRY_TOPIC, Message
from tests.impl.world import World, play

QUEUES = [MessageQueue("T", "broker-a", queue_id) for queue_id in range(2)]


async def with_topic(world: World) -> Admin:
    """Return an administrator that has created topic T with two queues."""
    admin = Admin([world.namesrv_address], world.runtime)
    config = TopicConfig("T", read_queue_nums=2, write_queue_nums=2)
    await topics.update_topic(admin, await admin.masters("DefaultCluster"), config)
    await asyncio.sleep(0.1)
    return admin


async def sent(world: World, count: int) -> list[Sent]:
    outcomes = [
        await world.producer.send(Message("T", f"{n}".encode(), {KEYS: f"k{n} all"}), QUEUES[n % 2])
        for n in range(count)
    ]
    return [outcome for outcome in outcomes if isinstance(outcome, Sent)]


def test_a_topic_can_be_created_changed_and_deleted() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        masters = await admin.masters("DefaultCluster")
        assert "T" in await topics.topic_names(admin)
        assert len(await sent(world, 5)) == 5
        stats = await topics.topic_stats(admin, "T")
        assert {queue: extent.max_offset for queue, extent in stats.items()} == {QUEUES[0]: 3, QUEUES[1]: 2}
        assert await topics.update_permission(admin, "T", 4, masters) == {world.broker_address: 6}
        await asyncio.sleep(0.1)
        (data,) = (await admin.route("T")).queue_datas
        assert (data.perm, data.read_queue_nums, data.write_queue_nums) == (4, 2, 2)
        await topics.delete_topic(admin, masters, "T", "DefaultCluster")
        with pytest.raises(NoRouteError):
            await topics.topic_stats(admin, "T")
        await admin.session.stop()

    play(scenario)


def test_messages_are_found_by_id_and_by_key() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        outcomes = await sent(world, 4)
        await asyncio.sleep(1)
        for number, outcome in enumerate(outcomes):
            by_id = await messages.by_offset_id(admin, outcome.offset_message_id)
            (by_unique_key,) = await messages.by_key(
                admin, "T", outcome.message_id, kind=messages.KeyKind.UNIQUE
            )
            (by_key,) = await messages.by_key(admin, "T", f"k{number}")
            assert by_id == by_unique_key == by_key
            assert by_id.message.body == f"{number}".encode()
        assert len(await messages.by_key(admin, "T", "all")) == 4
        assert await messages.by_key(admin, "T", "none") == []
        read = [(queue, stored.message.body) async for queue, stored in messages.read(admin, "T")]
        assert read == [(QUEUES[0], b"0"), (QUEUES[0], b"2"), (QUEUES[1], b"1"), (QUEUES[1], b"3")]
        await admin.session.stop()

    play(scenario)


def test_a_queue_is_read_by_its_places() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        outcomes = await sent(world, 4)
        found = await messages.by_offset(admin, QUEUES[1], 1)
        assert (found.message_id, found.message.body) == (outcomes[3].message_id, b"3")
        with pytest.raises(
            ClientError, match="T@broker-a:1 has no message at offset 2: its messages are at 0 to 1"
        ):
            await messages.by_offset(admin, QUEUES[1], 2)
        read = [stored.message.body async for _, stored in messages.read(admin, "T", only=QUEUES[1])]
        assert read == [b"1", b"3"]
        with pytest.raises(ClientError, match="topic T has no readable queue broker-a:7"):
            _ = [one async for one in messages.read(admin, "T", only=MessageQueue("T", "broker-a", 7))]
        await asyncio.sleep(1)
        entries = await messages.queue_entries(admin, QUEUES[1], 1, 5)
        assert (entries.min_queue_index, entries.max_queue_index) == (0, 2)
        assert [entry.physic_offset for entry in entries.queue_data] == [found.commit_offset]
        with pytest.raises(ClientError, match="topic T has no broker broker-z"):
            await messages.queue_entries(admin, MessageQueue("T", "broker-z", 0), 0, 1)
        await admin.session.stop()

    play(scenario)


def test_the_groups_of_a_broker_are_shown() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        await groups.update_group(
            admin, [world.broker_address], SubscriptionGroup(group_name="G", retry_max_times=3)
        )
        await sent(world, 5)
        for queue, offset in zip(QUEUES, (3, 1), strict=True):
            await GroupRequests(admin.session, "G").commit(queue, offset)
        found = await groups.group_config(admin, "G")
        assert {name: group.retry_max_times for name, group in found.items()} == {"broker-a": 3}
        for unknown in (("H", None), ("G", "OtherCluster")):
            with pytest.raises(ClientError, match="no master has the group"):
                await groups.group_config(admin, *unknown)
        stats = await groups.consume_stats_of(admin, world.broker_address, order=False)
        assert stats.total_diff == 1
        await world.session.heartbeat()
        assert await groups.all_producers(admin, world.broker_address)
        await admin.session.stop()

    play(scenario)


def test_a_message_is_sent_again_unchanged() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        body = b"long " * 2000
        first = await world.producer.send(Message("T", body, {KEYS: "k", "mine": "1"}), QUEUES[0])
        assert isinstance(first, Sent)
        await asyncio.sleep(1)
        stored = await messages.by_offset_id(admin, first.offset_message_id)
        again = await messages.resend(admin, stored)
        assert isinstance(again, Sent)
        assert again.offset_message_id != first.offset_message_id
        copy = await messages.by_offset_id(admin, again.offset_message_id)
        assert (copy.message_id, copy.message.body) == (first.message_id, body)
        assert copy.message.properties == stored.message.properties
        assert copy.message.born_timestamp_ms > stored.message.born_timestamp_ms
        where = ViewMessageRequest(copy.commit_offset)
        as_stored = await admin.ask(world.broker_address, RequestCode.VIEW_MESSAGE_BY_ID, where)
        assert len(as_stored.body) < 1000  # compressed, as its flags say
        await admin.session.stop()

    play(scenario)


def test_the_progress_of_a_group_without_members_is_shown_and_reset() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        await groups.update_group(admin, [world.broker_address], SubscriptionGroup(group_name="G"))
        await sent(world, 5)
        for queue, offset in zip(QUEUES, (3, 1), strict=True):
            await GroupRequests(admin.session, "G").commit(queue, offset)  # and no heartbeat
        found = await groups.progress(admin, "G", "T")
        assert {queue: at.consumer_offset for queue, at in found.queues.items()} == {
            QUEUES[0]: 3,
            QUEUES[1]: 1,
        }
        assert found.behind == 1
        assert await groups.reset_offsets(admin, "G", "T", 0) == dict.fromkeys(QUEUES, 0)
        assert (await groups.progress(admin, "G", "T")).behind == 5
        assert await groups.reset_offsets(admin, "G", "T", groups.END, force=False) == dict.fromkeys(
            QUEUES, 0
        )
        assert (await groups.reset_offsets(admin, "G", "T", groups.END))[QUEUES[0]] == 3
        await groups.delete_group(admin, [world.broker_address], "G", offsets=True)
        assert (await groups.progress(admin, "G", "T")).behind == 5  # as a group that never existed
        await admin.session.stop()

    play(scenario)


def test_a_running_broker_reports_its_status_and_can_be_configured() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        (state,) = await brokers.cluster_states(admin)
        assert (state.name, state.id, state.address) == ("broker-a", 0, world.broker_address)
        assert state.status is not None
        assert state.status["brokerVersionDesc"] == "V4_9_8"
        await brokers.update_config(admin, [world.broker_address], "brokerPermission", "4")
        assert (await brokers.config(admin, world.broker_address))["brokerPermission"] == "4"
        with pytest.raises(RefusalError, match="NO_PERMISSION"):
            await brokers.update_config(admin, [world.broker_address], "rocketmqHome", "/x")
        await admin.session.stop()

    play(scenario)


def test_a_route_has_no_write_permission_after_it_was_removed() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        await name_servers.wipe_write(admin, "broker-a")
        assert (await admin.route("T")).queue_datas[0].perm == 4
        await name_servers.add_write(admin, "broker-a")
        assert (await admin.route("T")).queue_datas[0].perm == 6
        await admin.session.stop()

    play(scenario)


def test_messages_are_read_in_the_order_of_their_store_times() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        outcomes = []
        for _ in range(4):
            outcomes += await sent(world, 3)
            await asyncio.sleep(0.01)
        found = [
            each async for each in messages.in_time_order(admin, "T", begin_ms=0, end_ms=messages.TIME_MAX)
        ]
        times = [stored.store_timestamp_ms for _, stored in found]
        assert times == sorted(times)
        assert {stored.message_id for _, stored in found} == {each.message_id for each in outcomes}
        assert {queue for queue, _ in found} == set(QUEUES)
        within = messages.in_time_order(admin, "T", begin_ms=times[3], end_ms=times[8])
        assert [each async for each in within] == [
            each for each in found if times[3] <= each[1].store_timestamp_ms <= times[8]
        ]
        none = messages.in_time_order(admin, "T", begin_ms=times[-1] + 1, end_ms=messages.TIME_MAX)
        assert [each async for each in none] == []
        await admin.session.stop()

    play(scenario)


def test_messages_of_one_store_time_are_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search may find any of them; this one finds the last."""

    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        await asyncio.gather(*(world.producer.send(Message("T", b"m"), QUEUES[0]) for _ in range(40)))
        whole = messages.in_time_order(admin, "T", begin_ms=0, end_ms=messages.TIME_MAX)
        found = [each async for _, each in whole]
        times = [each.store_timestamp_ms for each in found]

        async def search_offset(_: GroupRequests, queue: MessageQueue, timestamp_ms: int) -> int:
            earlier = [n for n, time_ms in enumerate(times) if time_ms <= timestamp_ms]
            return max(earlier, default=0) if queue == QUEUES[0] else 0

        monkeypatch.setattr(GroupRequests, "search_offset", search_offset)
        for time_ms in set(times):
            within = messages.in_time_order(admin, "T", begin_ms=time_ms, end_ms=time_ms)
            assert len([each async for each in within]) == times.count(time_ms)
        assert len(found) == 40 > len(set(times))
        await admin.session.stop()

    play(scenario)


def test_a_dead_letter_goes_to_the_retry_topic_of_its_group() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        for name in ("%RETRY%G", "%DLQ%G"):
            config = TopicConfig(name, read_queue_nums=1, write_queue_nums=1)
            await topics.update_topic(admin, await admin.masters("DefaultCluster"), config)
        await asyncio.sleep(0.1)
        dead = Message(
            "%DLQ%G", b"long " * 2000, {KEYS: "k", RETRY_TOPIC: "T", DELAY: "3"}, reconsume_times=0
        )
        first = await world.producer.send(dead, MessageQueue("%DLQ%G", "broker-a", 0))
        await asyncio.sleep(20)
        assert isinstance(first, Sent)
        ((_, stored),) = [each async for each in messages.read(admin, "%DLQ%G")]
        # Released brokers leave DELAY in the stored text.
        delayed = replace(
            stored,
            message=structs.replace(stored.message, properties={**stored.message.properties, DELAY: "3"}),
        )
        again = await messages.resend_dead_letter(admin, "G", delayed)
        assert isinstance(again, Sent)
        assert again.queue == MessageQueue("%RETRY%G", "broker-a", 0)
        copy = await messages.by_offset_id(admin, again.offset_message_id)
        assert (copy.message_id, copy.message.body) == (first.message_id, dead.body)
        assert copy.message.properties[RETRY_TOPIC] == "T"
        assert DELAY not in copy.message.properties
        assert copy.message.reconsume_times == 0
        await admin.session.stop()

    play(scenario)


def test_a_broker_lists_the_settings_of_its_groups_and_its_producers() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        await groups.update_group(
            admin, [world.broker_address], SubscriptionGroup(group_name="G", retry_max_times=3)
        )
        assert (await groups.settings(admin, world.broker_address))["G"].retry_max_times == 3
        await sent(world, 1)
        await world.session.heartbeat()
        (members,) = (await groups.all_producers(admin, world.broker_address)).values()
        assert [each.client_id for each in members] == [world.session.client_id]
        await admin.session.stop()

    play(scenario)
