"""Tests a broker whose tables were lost or damaged: every message stays reachable, or the start is refused.

Source: docs/reference/protocol/storing.md, "Configuration files".
"""

import asyncio
from collections.abc import Callable

import pytest

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.errors import StoreError
from tests.impl.world import World, play

CONFIG = "/store/config"
TABLES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")


def _empty(disk: SimulatedDisk, path: str) -> None:
    write_durably(disk, path, b"")


def _lose(disk: SimulatedDisk, path: str) -> None:
    disk.lose(path)


def _zero(disk: SimulatedDisk, path: str) -> None:
    disk.damage(path, 0, bytes(len(read_whole(disk, path))))


async def _store_600(world: World) -> None:
    """Store 600 messages in one queue, and commit an offset of the group."""
    messages = [Message("T", f"m{number}".encode()) for number in range(600)]
    await world.producer.send(messages[0])
    (queue, *_) = await world.consumer.queues("T")
    for begin in range(0, 600, 100):
        await world.producer.send_batch(messages[begin : begin + 100], queue)
    await world.consumer.commit(queue, 300)
    await asyncio.sleep(10)  # the tables are written


async def _check(world: World) -> None:
    """Check that all messages can be read by offset."""
    (queue, *_) = await world.consumer.queues("T")
    offset, found = 0, 0
    while (pulled := await world.consumer.pull(queue, offset)).messages:
        found += len(pulled.messages)
        offset = pulled.next_offset
    assert found >= 600


FAULTS = (_empty, _lose, _zero)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", TABLES)
def test_one_lost_or_damaged_table_is_read_from_its_backup(
    name: str, fault: Callable[[SimulatedDisk, str], None]
) -> None:
    async def scenario(world: World) -> None:
        await _store_600(world)
        before = read_whole(world.disk, f"{CONFIG}/{name}")
        await world.stop_broker()
        fault(world.disk, f"{CONFIG}/{name}")
        await world.start_broker()
        assert read_whole(world.disk, f"{CONFIG}/{name}") == before
        await _check(world)

    play(scenario)


@pytest.mark.parametrize("fault", FAULTS)
def test_topics_without_any_table_are_rebuilt_from_their_queues(
    fault: Callable[[SimulatedDisk, str], None], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await _store_600(world)
        await world.stop_broker()
        for name in ("topics.json", "topics.json.bak"):
            fault(world.disk, f"{CONFIG}/{name}")
        await world.start_broker()
        await _check(world)
        assert "1 topics are rebuilt from the folders of the queues" in caplog.text

    play(scenario)


@pytest.mark.parametrize("name", TABLES[1:])
def test_another_table_lost_with_its_backup_is_refused_by_name(name: str) -> None:
    async def scenario(world: World) -> None:
        await _store_600(world)
        await world.stop_broker()
        for each in (name, f"{name}.bak"):
            world.disk.lose(f"{CONFIG}/{each}")
        with pytest.raises(StoreError, match=f"{name}: it is missing; .*{name}.bak: it is missing"):
            await world.start_broker()
        # As the how-to says.
        empty = b'{"dataVersion":{"counter":0,"timestamp":0},"subscriptionGroupTable":{}}'
        write_durably(world.disk, f"{CONFIG}/{name}", empty)
        await world.start_broker()
        await _check(world)

    play(scenario)
