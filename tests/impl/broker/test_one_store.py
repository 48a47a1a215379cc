"""Tests two brokers on one store directory: the second is refused and the first is not affected."""

from dataclasses import replace

import pytest

from mqproof.impl.broker.broker import Broker
from mqproof.impl.client.model import MessageQueue, Sent
from mqproof.impl.remoting.message import Message
from mqproof.impl.store.errors import StoreError
from tests.impl.world import World, play

QUEUE = MessageQueue("T", "broker-a", 0)


def test_a_second_broker_on_a_store_is_refused_and_the_first_continues() -> None:
    async def scenario(world: World) -> None:
        before = world.disk.copy()
        second = Broker(replace(world.config, name="broker-b"), world.runtime)
        with pytest.raises(StoreError, match=r"/store/lock: .* is another broker using /store"):
            await second.start()
        assert world.disk.names("/store") == before.names("/store")
        outcome = await world.producer.send(Message("T", b"x"), QUEUE)
        assert isinstance(outcome, Sent)
        assert outcome.status == "SEND_OK"

    play(scenario)
