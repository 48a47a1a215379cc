"""Tests consumer offsets in memory and in consumerOffset.json.

Source: docs/reference/protocol/offsets.md, "Consumer offsets".
"""

import asyncio
from contextlib import closing

import pytest

from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.errors import StoreError

PATH = "/store/config/consumerOffset.json"


def table(loop: SimulatedLoop, disk: SimulatedDisk) -> OffsetTable:
    offsets = OffsetTable(PATH, simulated(loop, SimulatedNetwork(), disk=disk))
    offsets.load()
    return offsets


def test_the_last_commit_counts_even_if_it_is_lower() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = table(loop, SimulatedDisk())
    assert offsets.query("G", "T", 0) is None
    offsets.commit("G", "T", 0, 7)
    offsets.commit("G", "T", 0, 3)
    assert offsets.query("G", "T", 0) == 3
    assert offsets.query("G", "T", 1) is None
    assert offsets.query("H", "T", 0) is None


def test_persisted_offsets_survive_a_power_loss_in_rocketmqs_format() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        offsets = table(loop, disk)
        offsets.commit("G", "T", 0, 7)
        offsets.commit("G", "T", 1, 2)
        await offsets.persist()
        offsets.commit("G", "T", 0, 9)
        disk.lose_power()
        again = table(loop, disk)
        assert (again.query("G", "T", 0), again.query("G", "T", 1)) == (7, 2)
        assert read_whole(disk, PATH).startswith(b'{"offsetTable":{"T@G":{"0":7,"1":2}},"mqproofSeal":"')

    run_simulated(main(), loop)


MASTERS = {"T@G": {0: 2, 1: 2}}


def slave(loop: SimulatedLoop, disk: SimulatedDisk) -> OffsetTable:
    offsets = table(loop, disk)
    offsets.follow()
    return offsets


def test_a_slave_copies_the_lower_offset_of_a_group_that_was_reset_at_its_master() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = slave(loop, SimulatedDisk())
    offsets.merge({"T@G": {0: 7, 1: 7}})
    offsets.merge(MASTERS)
    assert offsets.of_group("G", "T") == {0: 2, 1: 2}
    offsets.merge({})
    assert offsets.of_group("G", "T") == {0: 2, 1: 2}, "a master may have restarted with an older file"


def test_an_offset_committed_to_a_slave_is_kept_until_the_master_has_it() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = slave(loop, SimulatedDisk())
    for queue_id, offset in ((0, 7), (1, 1), (2, 0)):
        offsets.commit("G", "T", queue_id, offset)
    offsets.merge(MASTERS)
    assert offsets.of_group("G", "T") == {0: 7, 1: 2, 2: 0}
    assert offsets.newer_than(MASTERS) == [("T", "G", 0, 7), ("T", "G", 2, 0)]
    offsets.commit("G", "T", 0, 8)  # while 7 is being sent to the master
    for _, _, queue_id, offset in [("T", "G", 0, 7), ("T", "G", 2, 0)]:
        offsets.mark_sent("T", "G", queue_id, offset)
    offsets.merge(MASTERS)
    assert offsets.newer_than(MASTERS) == [("T", "G", 0, 8)]
    offsets.mark_sent("T", "G", 0, 8)
    offsets.merge(MASTERS)
    assert offsets.query("G", "T", 0) == 2, "the master's offset counts from then on"


def test_a_restarted_slave_knows_which_offsets_its_master_lacks() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        offsets = slave(loop, disk)
        offsets.merge(MASTERS)
        offsets.commit("G", "T", 0, 7)
        await offsets.persist()
        content = b'{"offsetTable":{"T@G":{"0":7,"1":2}},"untold":{"T@G":[0]},"mqproofSeal":"'
        assert read_whole(disk, PATH).startswith(content)
        again = slave(loop, disk)
        assert again.newer_than(MASTERS) == [("T", "G", 0, 7)]
        again.remove_topic("T")
        assert again.newer_than({}) == []
        master = table(loop, disk)
        master.lead()
        assert master.newer_than({}) == []
        master.commit("G", "T", 0, 8)
        await master.persist()
        assert read_whole(disk, PATH).startswith(b'{"offsetTable":{"T@G":{"0":8,"1":2}},"mqproofSeal":"')

    run_simulated(main(), loop)


def test_the_number_of_pairs_of_topic_and_group_is_limited() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = OffsetTable(PATH, simulated(loop, SimulatedNetwork()), pairs_max=2)
    offsets.commit("G", "T", 0, 1)
    offsets.commit("H", "T", 0, 1)
    with pytest.raises(RefusedError, match="2 pairs"):
        offsets.commit("G", "U", 0, 1)
    offsets.commit("G", "T", 1, 5)
    assert (offsets.query("G", "T", 1), offsets.query("G", "U", 0)) == (5, None)


def test_an_unchanged_table_is_not_written_again() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        offsets = table(loop, disk)
        await offsets.persist()
        assert disk.exists(PATH), "the first persist writes the file, so that its absence means its loss"
        disk.lose(PATH)
        await offsets.persist()
        assert not disk.exists(PATH)

    run_simulated(main(), loop)


def test_a_failed_write_is_repeated_the_next_time() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    def full(step: Step) -> None:
        raise OSError(28, "No space left on device", step.path)

    async def main() -> None:
        offsets = table(loop, disk)
        offsets.commit("G", "T", 0, 7)
        disk.on_step = full
        with pytest.raises(OSError, match="No space left"):
            await offsets.persist()
        disk.on_step = None
        await offsets.persist()
        disk.lose_power()
        assert table(loop, disk).query("G", "T", 0) == 7

    run_simulated(main(), loop)


def test_a_file_that_is_not_an_offset_table_is_refused_by_name() -> None:
    disk = SimulatedDisk()
    disk.create(PATH, 2).write(0, b"[]")
    with closing(SimulatedLoop()) as loop, pytest.raises(StoreError, match=r"consumerOffset\.json"):
        table(loop, disk)


def test_a_cancelled_write_is_made_up_by_the_next_one() -> None:
    """A clean exit cancels the periodic write, and then writes once more."""
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        offsets = table(loop, disk)
        offsets.commit("G", "T", 0, 7)
        periodic = asyncio.create_task(offsets.persist())
        await asyncio.sleep(0)
        periodic.cancel()
        await asyncio.wait([periodic])
        assert not disk.exists(PATH)
        await offsets.persist()
        assert table(loop, disk).query("G", "T", 0) == 7

    run_simulated(main(), loop)
