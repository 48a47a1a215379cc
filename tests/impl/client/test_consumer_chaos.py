"""Tests a group under random faults: members join, leave and die, connections break, the broker restarts.

Each run has one seed. Every acknowledged message must be consumed. An orderly queue must be consumed without
a gap and, unless the broker forgets its locks, by one listener at a time.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.model import MessageQueue, ReceivedMessage, RetryLater, Sent
from mqproof.impl.remoting.message import Message
from tests.impl.client.consuming.test_push_consumer import FIXED_PORT
from tests.impl.client.members import GROUP, make_topic
from tests.impl.world import World, play

MESSAGES = 60


class Group:
    """Members that join and leave, and the messages that their listeners received."""

    def __init__(self, world: World, *, orderly: bool) -> None:
        self.world = world
        self.chance = random.Random(world.runtime.random.random())
        self.config = PushConsumerConfig(orderly=orderly, concurrency=4)
        self.members: list[tuple[Session, PushConsumer]] = []
        self.done: set[str] = set()
        self.done_offsets: defaultdict[MessageQueue, set[int]] = defaultdict(set)
        self.running: set[MessageQueue] = set()
        self.overlaps = 0
        self.gaps: list[str] = []
        self._names = 0

    async def listener(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        (message,) = messages
        queue = message.queue
        if not self.done_offsets[queue] >= set(range(message.queue_offset)):
            self.gaps.append(f"{queue} {message.queue_offset}")
        self.overlaps += queue in self.running
        self.running.add(queue)
        await asyncio.sleep(self.chance.uniform(0, 2))
        self.running.discard(queue)
        if self.chance.random() < 0.1:
            return RetryLater(delay_level=1, pause_ms=100)
        self.done.add(message.message_id)
        self.done_offsets[queue].add(message.queue_offset)
        return None

    async def join(self) -> None:
        self._names += 1
        session = Session([self.world.namesrv_address], self.world.runtime, f"127.0.0.1@m{self._names}")
        await session.start()
        consumer = PushConsumer(session, GROUP, self.listener, self.config)
        await consumer.start()
        await consumer.subscribe("T")
        self.members.append((session, consumer))

    async def leave(self) -> None:
        session, consumer = self.members.pop(self.chance.randrange(len(self.members)))
        await consumer.stop()
        await session.stop()

    async def die(self) -> None:
        """End without unregistering. A running listener continues for a while, as in a process that hangs."""
        self.world.some_died = True
        session, consumer = self.members.pop(self.chance.randrange(len(self.members)))
        for task in consumer._tasks:
            task.cancel()
        consumer._queues.stop()
        for held in consumer._queues.process_queues():
            held.is_dropped = True
        await session.remoting.close()

    async def leave_all(self) -> None:
        while self.members:
            await self.leave()


async def send_all(world: World, chance: random.Random) -> set[str]:
    """Send each message until it is stored. Returns the ids of all messages."""
    ids = set()
    for number in range(MESSAGES):
        await asyncio.sleep(chance.choice((0, 0, 0, 0, 0, 0, 15)))
        message = Message("T", b"%d" % number, {"UNIQ_KEY": f"K{number}"})
        while not isinstance(await world.producer.send(message), Sent):
            await asyncio.sleep(1)
        ids.add(f"K{number}")
    return ids


async def disturb(world: World, group: Group, chance: random.Random, *, restarts: bool) -> None:
    for _ in range(12):
        await asyncio.sleep(chance.uniform(1, 15))
        event = chance.choice(["join", "leave", "die", "cut", "restart"])
        if event == "join" and len(group.members) < 4:
            await group.join()
        elif event == "leave" and len(group.members) > 1:
            await group.leave()
        elif event == "die" and len(group.members) > 1:
            await group.die()
        elif event == "cut":
            world.network.cut(world.broker_address)
        elif event == "restart" and restarts:
            await world.stop_broker()
            await asyncio.sleep(chance.uniform(0, 20))
            await world.start_broker()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_deliv_1_every_acknowledged_message_is_consumed_whatever_faults_members_and_broker_have(
    seed: int, orderly: bool, restarts: bool
) -> None:
    """DELIV-1 NoAckedLost, DELIV-4 QueueOrder."""

    async def scenario(world: World) -> tuple[set[str], Group]:
        await make_topic(world)
        group = Group(world, orderly=orderly)
        await group.join()
        sending = asyncio.create_task(send_all(world, group.chance))
        await disturb(world, group, group.chance, restarts=restarts)
        ids = await sending
        await group.join()
        await asyncio.sleep(200)
        await group.leave_all()
        return ids, group

    ids, group = play(scenario, seed=seed, config=FIXED_PORT)
    assert len(ids) == MESSAGES
    assert ids - group.done == set()
    if orderly:
        assert group.gaps == []
        assert restarts or group.overlaps == 0
