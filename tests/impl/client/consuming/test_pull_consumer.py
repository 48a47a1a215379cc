"""Tests that a pull consumer registers before it commits: 5.x accepts no offset of an unknown group."""

import pytest

from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import ConsumerIds
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import ConsumerGroupRequest
from mqproof.impl.remoting.message import Message
from tests.impl.world import World, play

QUEUE = MessageQueue("T", "broker-a", 0)


def test_the_first_commit_registers_the_group_at_the_broker() -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(Message("T", b"x"), QUEUE)
        await world.session.heartbeat()
        later = PullConsumer(world.session, "Later")  # the heartbeat before did not contain this group
        await later.commit(QUEUE, 1)
        answer = await world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest("Later"))
        assert answer.code == ResponseCode.SUCCESS
        assert java_json.read(ConsumerIds, answer.body).consumer_id_list == [world.session.client_id]

    play(scenario)


def test_a_name_that_is_not_allowed_is_refused() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(ValueError, match="group 'a b': 1 to 120 letters"):
            PullConsumer(world.session, "a b")
        with pytest.raises(ValueError, match="the topic 'T x' has a character other than"):
            await PullConsumer(world.session, "G").queues("T x")

    play(scenario)
