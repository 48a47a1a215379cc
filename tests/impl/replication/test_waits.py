"""Tests sends that wait for slaves: none waits for another, and expired ones are dropped."""

import asyncio

import pytest

from mqproof.impl.replication.acks import Acks
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.replication.waits import ReplicaWaits
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.results import PutStatus


@pytest.mark.parametrize("in_sync", [None, 2])
def test_sends_are_dropped_after_their_time_even_without_slaves(in_sync: int | None) -> None:
    async def main() -> tuple[list[PutStatus], int]:
        acks = Acks()
        acks.joined("slave")
        waits = ReplicaWaits(acks, ReplicationConfig(role=Role.SYNC_MASTER, in_sync_replicas=in_sync))
        answers = await asyncio.gather(*(waits.wait(end) for end in (10, 20, 30)))
        return answers, len(waits._waiting)

    answers, left = run_simulated(main(), SimulatedLoop())
    assert answers == [PutStatus.FLUSH_SLAVE_TIMEOUT] * 3
    assert left == 0, "a slave that never connects would cost memory for each send"


def test_sends_are_answered_at_once_up_to_the_position_of_the_slave() -> None:
    async def main() -> tuple[list[bool], PutStatus]:
        acks = Acks()
        acks.joined("slave")
        waits = ReplicaWaits(acks, ReplicationConfig(role=Role.SYNC_MASTER))
        answers = [waits.wait(end) for end in (10, 20, 30)]
        acks.reported("slave", 20, 30)
        waits.acked()
        return [answer.done() for answer in answers], await waits.wait(15)

    assert run_simulated(main(), SimulatedLoop()) == ([True, True, False], PutStatus.PUT_OK)
