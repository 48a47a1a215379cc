"""Tests consumer offsets in memory and in consumerOffset.json.

Source: docs/reference/protocol/offsets.md, "Consumer offsets".
"""

import asyncio
import json
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


def test_a_group_gets_the_offsets_of_another_one_in_one_topic() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = table(loop, SimulatedDisk())
    for group, topic, queue_id, offset in (
        *(("source", "T", 0, 7), ("source", "T", 1, 3), ("source", "U", 0, 9)),
        *(("own", "T", 1, 5), ("own", "T", 2, 5), ("own", "U", 0, 1)),
    ):
        offsets.commit(group, topic, queue_id, offset)
    offsets.clone("source", "own", "T")
    offsets.clone("source", "new", "T")
    offsets.clone("unknown", "own", "T")
    offsets.clone("source", "own", "V")
    assert offsets.of_group("own", "T") == offsets.of_group("new", "T") == {0: 7, 1: 3}
    assert offsets.of_group("source", "T") == {0: 7, 1: 3}
    assert (offsets.of_group("own", "U"), offsets.of_group("own", "V")) == ({0: 1}, {})


def test_a_slave_sends_no_offset_of_a_queue_that_its_group_has_no_more() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = slave(loop, SimulatedDisk())
    offsets.commit("own", "T", 2, 5)
    offsets.commit("source", "T", 0, 0)
    offsets.clone("source", "own", "T")
    assert offsets.newer_than({"T@source": {0: 0}}) == [("T", "own", 0, 0)]


def test_the_answer_to_a_slave_has_all_offsets_and_a_version_that_grows_with_each_write() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        offsets = table(loop, SimulatedDisk())
        offsets.commit("G", "T", 0, 7)
        await asyncio.sleep(2)
        answers = [json.loads(offsets.answer())]
        for _ in range(2):  # the second time, nothing has changed
            await offsets.persist()
            answers.append(json.loads(offsets.answer()))
        began_ms = answers[0]["dataVersion"]["timestamp"]
        assert [each["offsetTable"] for each in answers] == [{"T@G": {"0": 7}}] * 3
        before, after = (
            {"counter": 0, "timestamp": began_ms},
            {"counter": 1, "timestamp": began_ms + 2000},
        )
        assert [each["dataVersion"] for each in answers] == [before, after, after]

    run_simulated(main(), loop)


def test_the_offsets_of_a_topic_or_of_a_group_are_removed_and_no_others() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        offsets = slave(loop, disk)
        for group, topic in (("G", "T"), ("H", "T"), ("G", "U"), ("H", "U"), ("T", "G")):
            offsets.commit(group, topic, 0, 5)
        assert (offsets.topics_of("G"), offsets.groups_of("T")) == (["T", "U"], ["G", "H"])
        await offsets.persist()
        offsets.remove_topic("T")
        assert offsets.pairs() == [("U", "G"), ("U", "H"), ("G", "T")]
        offsets.remove_group("G")
        assert offsets.pairs() == [("U", "H"), ("G", "T")]
        assert offsets.unsent == {("U@H", 0), ("G@T", 0)}
        await offsets.persist()
        assert sorted(table(loop, disk).pairs()) == [("G", "T"), ("U", "H")]

    run_simulated(main(), loop)


def test_a_slave_takes_no_more_pairs_from_its_master_than_the_limit() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = OffsetTable(PATH, simulated(loop, SimulatedNetwork()), pairs_max=2)
    offsets.follow()
    offsets.merge({f"T@G{number}": {0: number} for number in range(3)})
    offsets.merge({"T@G1": {0: 8}})
    assert offsets.pairs() == [("T", "G0"), ("T", "G1")]
    assert offsets.query("G1", "T", 0) == 8


def test_a_slave_at_its_limit_takes_the_offsets_of_known_pairs_beside_new_ones() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = OffsetTable(PATH, simulated(loop, SimulatedNetwork()), pairs_max=1)
    offsets.follow()
    offsets.merge({"T@G": {0: 1}})
    offsets.merge({"T@new": {0: 1}, "T@G": {0: 8}})
    assert (offsets.pairs(), offsets.query("G", "T", 0)) == ([("T", "G")], 8)


def test_an_offset_that_the_master_has_already_is_not_sent_again() -> None:
    with closing(SimulatedLoop()) as loop:
        offsets = slave(loop, SimulatedDisk())
    offsets.commit("G", "T", 0, 7)
    offsets.merge({"T@G": {0: 7}})
    assert offsets.unsent == set()
    offsets.lead()
    offsets.mark_sent("T", "G", 0, 7)
    assert offsets.unsent is None


def test_what_a_slave_takes_from_its_master_and_what_it_has_sent_are_written() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        offsets = slave(loop, disk)
        await offsets.persist()
        offsets.merge({"T@G": {0: 2}})
        await offsets.persist()
        assert table(loop, disk).of_group("G", "T") == {0: 2}
        offsets.commit("G", "T", 0, 7)
        await offsets.persist()
        assert table(loop, disk).unsent == {("T@G", 0)}
        offsets.mark_sent("T", "G", 0, 7)
        await offsets.persist()
        assert table(loop, disk).unsent == set()
        disk.lose(PATH)
        offsets.merge({"T@G": {0: 7}})
        await offsets.persist()
        assert not disk.exists(PATH), "the master's offsets are the same"

    run_simulated(main(), loop)
