"""Tests the traffic of topics and the track of a message, at our broker in a simulated world.

Source: docs/reference/protocol/administration.md, "Administration commands".
"""

import asyncio
from collections.abc import Sequence

from mqproof.impl.admin import messages
from mqproof.impl.admin.topic_rates import all_traffic, message_track, traffic_of
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.model import ReceivedMessage, RetryLater
from tests.impl.admin.test_with_broker import QUEUES, sent, with_topic
from tests.impl.world import World, play


async def take(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
    return RetryLater() if any(message.body == b"3" for message in messages) else None


def test_the_traffic_of_a_topic_has_a_row_for_each_group() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        (idle,) = await traffic_of(admin, "T")
        assert (idle.group, idle.day_in, idle.is_active) == ("", 0, False)
        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        async with PushConsumer(world.session, "G", take, config) as consumer:
            await consumer.subscribe("T")
            await sent(world, 3)
            await asyncio.sleep(30)
            await GroupRequests(world.session, "Behind").commit(QUEUES[0], 1)
            await sent(world, 2)
            found = {each.group: each for each in await traffic_of(admin, "T")}
        assert set(found) == {"G", "Behind"}
        assert found["G"].day_in == found["Behind"].day_in >= 3
        assert found["G"].day_out >= 3
        assert found["Behind"].behind == 4
        assert [each.topic for each in await all_traffic(admin) if each.is_active] == ["T", "T"]
        await admin.session.stop()

    play(scenario)


def test_a_track_says_which_groups_have_consumed_the_message() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        first, second = await sent(world, 2)
        stored = [await messages.by_offset_id(admin, each.offset_message_id) for each in (first, second)]
        assert await message_track(admin, stored[0]) == []
        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        async with PushConsumer(world.session, "G", take, config) as consumer:
            await consumer.subscribe("T")
            await asyncio.sleep(30)
            assert await message_track(admin, stored[0]) == [("G", "CONSUMED")]
            late = (await sent(world, 4))[3]
            again = await messages.by_offset_id(admin, late.offset_message_id)
            assert await message_track(admin, again) == [("G", "NOT_CONSUME_YET")]
        await asyncio.sleep(30)
        assert await message_track(admin, stored[1]) == [("G", "NOT_ONLINE")]
        await admin.session.stop()

    play(scenario)
