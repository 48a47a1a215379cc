"""Tests a group under load whose members are killed, lose power, are paused and disconnected, by one seed.

After the faults, each acknowledged message must be where its acknowledgement says, and all members must have
the same log.
"""

import asyncio
from random import Random

import pytest

from mqproof.impl.client.model import ClientError, Sent
from mqproof.impl.remoting.message import Message
from tests.impl.broker.group import IDS, PEERS, Group, play

Place = tuple[int, int]
"""Queue id and queue offset."""


class Senders:
    """Producers that send as long as they are allowed to.

    They record acknowledged messages with positions.
    """

    def __init__(self, group: Group, chance: Random) -> None:
        self.acked: dict[Place, str] = {}
        self.is_over = False
        self._group = group
        self._chance = chance
        self._number = 0

    async def run(self) -> None:
        while not self.is_over:
            self._number += 1
            body = f"m{self._number}"
            try:
                outcome = await self._group.producer.send(Message("T", body.encode()))
                if isinstance(outcome, Sent) and outcome.status == "SEND_OK":
                    place = (outcome.queue.queue_id, outcome.queue_offset)
                    assert place not in self.acked, f"{body} and {self.acked[place]} are at {place}"
                    self.acked[place] = body
                    await asyncio.sleep(self._chance.uniform(0, 0.4))
                    continue
                for topic in ("T", "TBW102"):
                    await self._group.session.routes.refresh(topic)
            except ClientError:
                pass
            await asyncio.sleep(0.3)


async def _fault(group: Group, chance: Random) -> None:
    """Inject a fault into some members for a while."""
    victims = chance.sample(IDS, chance.randint(1, 3))
    how = chance.choice(("kill", "lose power", "crash", "stop", "cut off"))
    for id_ in victims:
        match how:
            case "cut off":
                group.network.silence(PEERS[IDS.index(id_)].address)
            case "stop":
                await group.stop(id_)
            case _:
                group.kill(id_)
        if how == "lose power":
            group.disks[id_].lose_power()
        elif how == "crash":
            group.disks[id_].crash_os(chance)
    await asyncio.sleep(chance.uniform(0, 15))
    for id_ in victims:
        if how == "cut off":
            group.network.heal(PEERS[IDS.index(id_)].address)
        else:
            await group.start(id_)


async def _settled(group: Group) -> None:
    """Wait until all members have the same log, and each has committed and dispatched all of it."""
    await group.send("last")
    async with asyncio.timeout(120):
        while len({broker.store.log_end for broker in group.brokers.values()}) > 1:
            await asyncio.sleep(0.5)


async def _found(group: Group) -> dict[Place, str]:
    found = {}
    for queue in await group.consumer.queues("T"):
        offset = 0
        while (result := await group.consumer.pull(queue, offset)).messages:
            for stored in result.messages:
                found[queue.queue_id, stored.queue_offset] = stored.message.body.decode()
            offset = result.next_offset
    return found


DEEP = pytest.mark.deep("98 seeds more than the two of every run")


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=DEEP) for seed in range(2, 100))])
def test_no_acknowledged_message_is_lost_or_moved_whatever_faults_members_have(seed: int) -> None:
    chance = Random(seed)

    async def scenario(group: Group) -> int:
        senders = Senders(group, chance)
        sending = [asyncio.create_task(senders.run()) for _ in range(2)]
        for _ in range(4):
            await asyncio.sleep(chance.uniform(2, 10))
            await _fault(group, chance)
        senders.is_over = True
        await asyncio.gather(*sending)
        await _settled(group)
        found = await _found(group)
        assert {place: found.get(place) for place in senders.acked} == senders.acked
        assert not any(broker.store.failure for broker in group.brokers.values())
        return len(senders.acked)

    assert play(scenario, seed) > 20
