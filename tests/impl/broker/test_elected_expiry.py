"""Tests expired data of a group: each member deletes it, except data that a member still needs.

Source: docs/reference/protocol/dledger.md, "Broker of a DLedger group".
"""

import asyncio
import logging
from dataclasses import replace

import pytest

from mqproof.impl.client.model import Outcome, Refused, Sent
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.disk import Disk, Space, read_whole, write_durably
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop
from tests.impl.broker.group import IDS, Group, play

_OLD_MS = 20_000
_FORCED = Space(100, 14)
"""A disk so full that all data is deleted that may be deleted, whatever its age."""
_BODY = "x" * 1460


def _store(group: Group, id_: str) -> LedgerStore:
    store = group.brokers[id_].store
    assert isinstance(store, LedgerStore)
    return store


async def _clean(group: Group, id_: str) -> int:
    store = _store(group, id_)
    store.config = replace(store.config, delete_when_hours=(), file_reserved_ms=_OLD_MS)
    return await store.clean(manually=True)


async def _send(group: Group, count: int) -> None:
    for number in range(count):
        await group.send(f"{number} {_BODY}")


async def _all_have_all(group: Group) -> None:
    """Wait until all members have all entries and know that."""
    await group.send("last")
    async with asyncio.timeout(120):
        while len({_store(group, id_).node.member.core.state.kept_by_all for id_ in group.brokers}) > 1:
            await asyncio.sleep(0.5)


async def _queues(group: Group) -> dict[int, list[str]]:
    """Return what can be read from each queue, from its beginning."""
    found: dict[int, list[str]] = {}
    for queue in await group.consumer.queues("T"):
        offset, found[queue.queue_id] = await group.consumer.min_offset(queue), []
        while (pulled := await group.consumer.pull(queue, offset)).messages:
            found[queue.queue_id] += [stored.message.body.decode() for stored in pulled.messages]
            offset = pulled.next_offset
    return found


def test_every_member_deletes_old_segments_and_keeps_the_rest_readable_through_restarts() -> None:
    async def scenario(group: Group) -> None:
        await _send(group, 150)
        await _all_have_all(group)
        await asyncio.sleep(_OLD_MS / 1000)
        before = await _queues(group)
        begins = set()
        for id_ in IDS:
            assert await _clean(group, id_) > 1
            begins.add((_store(group, id_).log_begin, _store(group, id_).node.ledger.begin_index))
        ((position, index),) = begins
        assert position > 0
        assert index > 10
        left = await _queues(group)
        assert all(len(left[queue]) < len(before[queue]) for queue in before)
        assert all(before[queue][-len(left[queue]) :] == left[queue] for queue in left)
        for id_ in IDS:
            await group.stop(id_)
            await group.start(id_)
            await group.master()
        await _send(group, 5)
        assert _store(group, IDS[0]).node.ledger.begin_index == index
        assert sum(map(len, (await _queues(group)).values())) == sum(map(len, left.values())) + 5

    play(scenario)


def test_data_that_an_absent_member_needs_is_not_deleted() -> None:
    async def scenario(group: Group) -> None:
        master = await group.master()
        away = next(id_ for id_ in IDS if id_ != master)
        group.kill(away)
        await _send(group, 150)
        await asyncio.sleep(_OLD_MS / 1000)
        for id_ in group.brokers:
            group.disks[id_].room = _FORCED
            assert await _clean(group, id_) == 0
        await group.start(away)
        await _all_have_all(group)
        for id_ in IDS:
            assert await _clean(group, id_) > 1

    play(scenario)


def test_a_leader_whose_disk_was_full_accepts_messages_again_without_a_restart() -> None:
    async def scenario(group: Group) -> tuple[Outcome, Sent, str]:
        master = await group.master()
        group.disks[master].room = Space(100, 1)
        await asyncio.sleep(15)
        refused = await group.producer.send(Message("T", b"m1"), timeout_ms=1000)
        group.disks[master].room = Space(100, 50)
        await asyncio.sleep(15)
        return refused, await group.send("m2"), group.brokers[master].store.failure

    refused, sent, failure = play(scenario)
    assert isinstance(refused, Refused)
    assert (refused.remark, sent.status, failure) == ("the disk is nearly full", "SEND_OK", "")


def _copy(source: Disk, target: Disk, path: str, to: str) -> None:
    if source.is_directory(path):
        for name in source.names(path):
            _copy(source, target, f"{path}/{name}", f"{to}/{name}")
    else:
        write_durably(target, to, read_whole(source, path))


def test_a_member_with_an_empty_disk_is_refused_in_one_line_until_it_gets_a_copy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(group: Group) -> None:
        await _send(group, 150)
        await _all_have_all(group)
        await asyncio.sleep(_OLD_MS / 1000)
        for id_ in IDS:
            assert await _clean(group, id_) > 1
        master = await group.master()
        lost, other = (id_ for id_ in IDS if id_ != master)
        group.kill(lost)
        group.disks[lost] = SimulatedDisk()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        group.runtimes[lost] = simulated(loop, group.network, 99, group.disks[lost])
        await group.start(lost)
        await group.send("the others go on")
        await asyncio.sleep(30)
        assert _store(group, lost).node.ledger.end_index == -1
        said = [line for line in map(logging.LogRecord.getMessage, caplog.records) if "lacks entries" in line]
        assert len(said) == 1
        assert said[0].startswith(f"{lost} of ")
        await group.stop(lost)
        await group.stop(other)
        group.disks[lost] = disk = SimulatedDisk()
        group.runtimes[lost] = simulated(loop, group.network, 98, disk)
        for name in group.disks[other].names("/store"):
            _copy(group.disks[other], disk, f"/store/{name}", f"/store/{name.replace(other, lost)}")
        await group.start(other)
        await group.start(lost)
        await _all_have_all(group)
        assert _store(group, lost).log_begin == _store(group, master).log_begin
        assert _store(group, lost).log_end == _store(group, master).log_end

    with caplog.at_level(logging.ERROR):
        play(scenario)
