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


@pytest.mark.parametrize(
    ("in_sync", "slaves", "status"),
    [(None, 0, PutStatus.SLAVE_NOT_AVAILABLE), (2, 0, None), (None, 1, None)],
)
def test_a_send_without_a_slave_is_refused_at_once_or_waits(
    in_sync: int | None, slaves: int, status: PutStatus | None
) -> None:
    async def main() -> tuple[PutStatus | None, PutStatus | None, PutStatus]:
        acks = Acks()
        for slave in range(slaves):
            acks.joined(slave)
        waits = ReplicaWaits(acks, ReplicationConfig(role=Role.SYNC_MASTER, in_sync_replicas=in_sync))
        answer = waits.wait(10)
        seen = [answer.result() if answer.done() else None]
        await asyncio.sleep(2.999)
        seen.append(answer.result() if answer.done() else None)
        return seen[0], seen[1], await answer

    expired = status or PutStatus.FLUSH_SLAVE_TIMEOUT
    assert run_simulated(main(), SimulatedLoop()) == (status, status, expired)


def test_an_answered_send_leaves_no_timer() -> None:
    loop = SimulatedLoop()

    async def main() -> list[str]:
        acks = Acks()
        acks.joined("slave")
        waits = ReplicaWaits(acks, ReplicationConfig(role=Role.SYNC_MASTER))
        answers = [waits.wait(end) for end in (10, 20)]
        assert len(loop.timers()) == 2
        acks.reported("slave", 10, 30)
        waits.acked()
        assert len(loop.timers()) == 1
        acks.reported("slave", 20, 30)
        waits.acked()
        await asyncio.gather(*answers)
        return loop.timers()

    assert run_simulated(main(), loop) == []


def test_a_send_that_expired_does_not_keep_the_next_ones_waiting() -> None:
    async def main() -> list[PutStatus]:
        acks = Acks()
        acks.joined("slave")
        waits = ReplicaWaits(acks, ReplicationConfig(role=Role.SYNC_MASTER))
        answers = [waits.wait(20)]
        await asyncio.sleep(1)
        answers.append(waits.wait(10))  # its record ends earlier, but it began to wait later
        await asyncio.sleep(2)
        acks.reported("slave", 15, 30)
        waits.acked()
        return [await answer for answer in answers]

    assert run_simulated(main(), SimulatedLoop()) == [PutStatus.FLUSH_SLAVE_TIMEOUT, PutStatus.PUT_OK]


@pytest.mark.parametrize(("end", "waits"), [(149, True), (150, False)])
def test_a_send_does_not_wait_for_a_slave_that_is_far_behind(end: int, waits: bool) -> None:
    async def main() -> bool:
        acks = Acks()
        acks.joined("slave")
        acks.reported("slave", 50, 200)
        config = ReplicationConfig(role=Role.SYNC_MASTER, fall_behind_bytes_max=100)
        return not ReplicaWaits(acks, config).wait(end).done()

    assert run_simulated(main(), SimulatedLoop()) is waits
