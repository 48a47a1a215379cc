"""Tests topics: they are created, are on disk before they are used, and are loaded again."""

import pytest

from mqproof.impl.broker.state.topics import (
    DEFAULT_TOPIC,
    SYSTEM_TOPICS,
    TopicTable,
    built_in,
    is_system_topic,
    system_topics,
)
from mqproof.impl.remoting.bodies import PERM_READ_WRITE, DataVersion, TopicConfig, TopicConfigs
from mqproof.impl.remoting.budget import Percentages
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk, Step
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


def test_a_new_broker_has_the_topics_of_released_ones() -> None:
    topics = built_in(broker="b", cluster="C", auto_create=True, default_queues=8, trace=True)
    assert {each.topic_name: (each.read_queue_nums, each.write_queue_nums, each.perm) for each in topics} == {
        "SELF_TEST_TOPIC": (1, 1, 6),
        "C": (16, 16, 7),
        "b": (1, 1, 7),
        "OFFSET_MOVED_EVENT": (1, 1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 18, 6),
        "BenchmarkTest": (1024, 1024, 6),
        "C_REPLY_TOPIC": (1, 1, 6),
        "RMQ_SYS_TRACE_TOPIC": (1, 1, 6),
        "TBW102": (8, 8, 7),
    }


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


@pytest.mark.parametrize(
    ("topic", "is_system"),
    [
        ("TBW102", True),
        ("b", True),
        ("C", True),
        ("C_REPLY_TOPIC", True),
        ("rmq_sys_anything", True),
        ("rmq_sy", False),
        ("RMQ_SYS_OTHER", False),
        ("T", False),
    ],
)
def test_a_system_topic_has_a_known_name_that_of_its_broker_or_the_prefix(
    topic: str, is_system: bool
) -> None:
    assert is_system_topic(topic, "b", "C") is is_system


@pytest.mark.parametrize(("permission", "registered"), [(6, 7), (4, 5), (2, 3), (0, 1)])
def test_the_permissions_of_the_broker_limit_those_that_name_servers_get(
    permission: int, registered: int
) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        table = loaded(loop, SimulatedDisk())
        await table.put(TopicConfig(topic_name="readable", perm=PERM_READ_WRITE & 4))
        found = table.registered(permission).topic_config_table
        assert found[DEFAULT_TOPIC].perm == registered
        assert found["readable"].perm == permission & 4
        assert table.registered(permission).data_version == table.snapshot().data_version
        assert table.snapshot().topic_config_table[DEFAULT_TOPIC].perm == 7

    run_simulated(main(), loop)


def test_the_number_of_topics_is_limited_also_in_one_request() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        table = loaded(loop, SimulatedDisk())
        assert len(table) == 8
        with pytest.raises(RefusedError, match="there are 8 topics, which is the limit") as refused:
            await table.ensure_all({f"T{number}": 1 for number in range(5)})
        assert refused.value.code == ResponseCode.SYSTEM_BUSY
        await table.ensure_all({f"T{number}": 2 for number in range(4)})
        assert len(table) == 12
        await table.put(TopicConfig(topic_name="T0", perm=4))
        await table.ensure("T1", 9)
        with pytest.raises(RefusedError, match="there are 12 topics"):
            await table.ensure("T4", 1)
        await table.delete(["T0", "unknown"])
        assert (await table.ensure("T4", 3)).write_queue_nums == 3
        topic = table.get("T1")
        assert topic is not None
        assert (topic.read_queue_nums, topic.perm) == (2, PERM_READ_WRITE)

    run_simulated(main(), loop)


def test_new_topics_count_for_their_creator_until_they_are_deleted_or_not_written() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    class Client:
        remote = ("10.0.0.1", 1)

    def refuse(step: Step) -> None:
        raise OSError("injected")

    async def main() -> None:
        table = TopicTable(PATH, runtime(loop, disk), topics_max=4000, queues_max=64)
        client, seen = Client(), 0

        def count() -> None:
            nonlocal seen
            seen += 1

        table.on_change = count
        await table.ensure_all({f"T{number}": 1 for number in range(1000)}, client)
        with pytest.raises(RefusedError, match="1000 topics of this connection") as refused:
            await table.ensure("T", 1, by=client)
        assert refused.value.code == ResponseCode.SYSTEM_BUSY
        await table.ensure("T", 1)
        await table.delete(["T1", "T2"])
        assert table.budget.used == 998
        disk.on_step = refuse
        with pytest.raises(OSError, match="injected"):
            await table.ensure("T1", 1, by=client)
        disk.on_step = None
        assert (table.budget.used, seen) == (998, 3)

    run_simulated(main(), loop)


def test_a_slave_adopts_the_topics_of_its_master_once_for_each_version() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        table = loaded(loop, disk)
        seen: list[int] = []
        table.on_change = lambda: seen.append(len(table))
        masters = TopicConfigs(DataVersion(9, 5), {"T": TopicConfig(topic_name="T")})
        await table.adopt(masters)
        await table.adopt(TopicConfigs(masters.data_version, {}))
        assert (table.snapshot(), seen) == (masters, [1])
        disk.lose_power()
        assert loaded(loop, disk).get("T") is not None
        table.registered_otherwise()
        assert (table.snapshot().data_version.counter, seen) == (10, [1, 1])

    run_simulated(main(), loop)


@pytest.mark.parametrize("content", [None, b"{x}"])
def test_topics_that_have_queues_are_rebuilt_when_their_file_is_lost(
    content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()
    if content is not None:
        disk.create(PATH, len(content)).write(0, content)

    async def main() -> None:
        table = TopicTable(PATH, runtime(loop, disk), topics_max=12, queues_max=64)
        defaults = [TopicConfig(topic_name="U", perm=4)]
        is_ours = table.load(defaults, with_queues={"T": 3, "U": 2})
        topic, other = table.get("T"), table.get("U")
        assert topic is not None
        assert other is not None
        assert (topic.write_queue_nums, topic.read_queue_nums, topic.perm) == (3, 3, PERM_READ_WRITE)
        assert (other.write_queue_nums, other.perm) == (2, PERM_READ_WRITE)
        assert "2 topics are rebuilt" in caplog.text
        assert "T U" in caplog.text
        assert not is_ours
        again = TopicTable(PATH, runtime(loop, disk), topics_max=12, queues_max=64)
        assert again.load([], with_queues={"V": 1})
        assert (again.snapshot(), again.get("V")) == (table.snapshot(), None)

    run_simulated(main(), loop)


def test_the_system_topics_of_a_broker_have_its_name_and_that_of_its_cluster() -> None:
    assert system_topics("b", "C") == sorted({*SYSTEM_TOPICS, "b", "C", "C_REPLY_TOPIC"})
    assert len(SYSTEM_TOPICS) == 9


def test_topics_are_rebuilt_with_their_queues_and_a_hundred_names_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        table = TopicTable(PATH, runtime(loop, SimulatedDisk()), topics_max=12, queues_max=64)
        found = {f"T{number:03}": number + 1 for number in range(101)}
        assert not table.load([], with_queues=found)
        assert {
            name: topic.read_queue_nums for name, topic in table.snapshot().topic_config_table.items()
        } == found
        assert "101 topics are rebuilt" in caplog.text
        assert " T098 T099" in caplog.text
        assert "T100" not in caplog.text

    run_simulated(main(), loop)


def test_without_automatic_creation_a_broker_has_no_template_and_no_topic_of_traces() -> None:
    topics = built_in(broker="b", cluster="C", auto_create=False, default_queues=8)
    assert {topic.topic_name for topic in topics} & {"TBW102", "RMQ_SYS_TRACE_TOPIC"} == set()


def test_a_created_topic_has_at_most_the_queues_of_the_broker_and_a_connection_its_share_of_topics() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        percent = Percentages(address=10, connection=1)
        table = TopicTable(
            PATH, runtime(loop, SimulatedDisk()), topics_max=1_000_000, queues_max=64, percent=percent
        )
        table.load(built_in(broker="b", cluster="C", auto_create=True, default_queues=100))
        made = await table.create_for_send("T", DEFAULT_TOPIC, 200)
        assert made is not None
        assert (made.read_queue_nums, made.write_queue_nums) == (64, 64)
        retry = await table.create_for_send("%RETRY%G", "nowhere", 8)
        assert retry is not None
        assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, PERM_READ_WRITE)
        assert await table.create_for_send("other", "%RETRY%G", 8) is None
        limits = table.budget.limits
        assert (limits.total, limits.address, limits.connection) == (1_000_000, 100_000, 10_000)

    run_simulated(main(), loop)


def test_a_known_topic_can_be_changed_although_there_are_more_than_the_limit() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        table = TopicTable(PATH, runtime(loop, SimulatedDisk()), topics_max=2, queues_max=64)
        table.load(built_in(broker="b", cluster="C", auto_create=True, default_queues=8))
        await table.put(TopicConfig(topic_name="b", perm=4))
        changed = table.get("b")
        assert changed is not None
        assert changed.perm == 4
        with pytest.raises(RefusedError, match="there are 8 topics"):
            await table.ensure("new", 1)

    run_simulated(main(), loop)
