"""Tests topics: they are created, are on disk before they are used, and are loaded again."""

import pytest

from mqproof.impl.broker.state.topics import DEFAULT_TOPIC, TopicTable, built_in
from mqproof.impl.remoting.bodies import PERM_READ_WRITE
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.errors import StoreError

PATH = "/store/config/topics.json"


def runtime(loop: SimulatedLoop, disk: SimulatedDisk) -> Runtime:
    return simulated(loop, SimulatedNetwork(), disk=disk)


def loaded(loop: SimulatedLoop, disk: SimulatedDisk, *, auto_create: bool = True) -> TopicTable:
    table = TopicTable(PATH, runtime(loop, disk), topics_max=12, queues_max=64)
    table.load(built_in(broker="b", cluster="C", auto_create=auto_create, default_queues=8))
    return table


@pytest.mark.parametrize("trace", [False, True])
def test_the_topic_of_traces_exists_only_if_it_is_enabled(trace: bool) -> None:
    topics = built_in(broker="b", cluster="C", auto_create=True, default_queues=8, trace=trace)
    found = [topic for topic in topics if topic.topic_name == "RMQ_SYS_TRACE_TOPIC"]
    assert [topic.write_queue_nums for topic in found] == [1] * trace


def test_a_topic_created_by_a_send_has_the_smaller_number_of_queues_and_no_inherit_flag() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        table = loaded(loop, SimulatedDisk())
        few = await table.create_for_send("few", DEFAULT_TOPIC, 4)
        many = await table.create_for_send("many", DEFAULT_TOPIC, 100)
        negative = await table.create_for_send("negative", DEFAULT_TOPIC, -1)
        assert few is not None
        assert many is not None
        assert negative is not None
        assert (few.write_queue_nums, many.write_queue_nums, negative.write_queue_nums) == (4, 8, 1)
        assert few.perm == PERM_READ_WRITE

    run_simulated(main(), loop)


def test_without_automatic_creation_or_template_no_topic_is_created() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        table = loaded(loop, SimulatedDisk(), auto_create=False)
        assert await table.create_for_send("T", DEFAULT_TOPIC, 4) is None
        assert await table.create_for_send("T", "SELF_TEST_TOPIC", 4) is None
        assert await table.create_for_send("T", "nowhere", 4) is None

    run_simulated(main(), loop)


def test_a_created_topic_survives_the_loss_of_all_unsynced_data() -> None:
    loop = SimulatedLoop()
    disk = SimulatedDisk()

    async def main() -> tuple[int, int]:
        table = loaded(loop, disk)
        await table.create_for_send("T", DEFAULT_TOPIC, 4)
        disk.lose_power()
        again = loaded(loop, disk)
        topic = again.get("T")
        assert topic is not None
        return topic.write_queue_nums, again.snapshot().data_version.counter

    assert run_simulated(main(), loop) == (4, 2)


def test_each_new_topic_is_announced_once_when_it_is_on_disk() -> None:
    loop = SimulatedLoop()

    async def main() -> list[int]:
        disk = SimulatedDisk()
        table = loaded(loop, disk)
        seen: list[int] = []
        table.on_change = lambda: seen.append(loaded(loop, disk).snapshot().data_version.counter)
        await table.create_for_send("T", DEFAULT_TOPIC, 4)
        await table.create_for_send("T", DEFAULT_TOPIC, 4)
        await table.ensure("%RETRY%G", 1)
        await table.ensure("%RETRY%G", 1)
        return seen

    assert run_simulated(main(), loop) == [2, 3]


def test_a_file_that_is_not_a_topic_table_is_refused_by_name() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        disk = SimulatedDisk()
        disk.create(PATH, 3).write(0, b"{x}")
        with pytest.raises(StoreError, match=r"topics\.json: TopicConfigs"):
            loaded(loop, disk)

    run_simulated(main(), loop)
