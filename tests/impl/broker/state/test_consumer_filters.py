"""Tests the expressions of groups: their versions, their end, and their file."""

import json
from contextlib import closing

import pytest

from mqproof.impl.broker.state import consumer_filters
from mqproof.impl.broker.state.consumer_filters import ConsumerFilterTable, FilterData
from mqproof.impl.broker.state.durable_table import DurableTable
from mqproof.impl.remoting.bodies import GroupFilter, Subscription
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

PATH = "/store/config/consumerFilter.json"
DAY_MS = 24 * 3_600_000


def by_sql(expression: str, version: int, topic: str = "T") -> Subscription:
    return Subscription(topic, expression, expression_type="SQL92", sub_version=version)


def table(runtime: Runtime, now_ms: int = 0) -> ConsumerFilterTable:
    made = ConsumerFilterTable(PATH, runtime)
    made.load(now_ms)
    return made


def test_a_later_version_replaces_an_expression_and_an_invalid_one_does_not() -> None:
    with closing(SimulatedLoop()) as loop:
        filters = table(simulated(loop, SimulatedNetwork()))
    filters.register("G", [by_sql("a = 1", 5)], 100)
    filters.register("G", [by_sql("a = 2", 4)], 200)
    found = filters.get("T", "G")
    assert found is not None
    assert (found.expression, found.client_version, found.born_time) == ("a = 1", 5, 100)
    filters.register("G", [by_sql("a =", 6)], 300)
    assert filters.get("T", "G") == found
    filters.register("G", [by_sql("a = 3", 7)], 400)
    replaced = filters.get("T", "G")
    assert replaced is not None
    assert (replaced.expression, replaced.client_version, replaced.born_time) == ("a = 3", 7, 400)
    filters.register("H", [Subscription("T", "TagA")], 500)
    assert filters.get("T", "H") is None


def test_a_heartbeat_does_not_search_the_expressions_of_other_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SimulatedLoop()) as loop:
        filters = table(simulated(loop, SimulatedNetwork()))
    for number in range(100):
        filters.register(f"G{number}", [by_sql("a = 1", 5)], 100)
    asked: list[str] = []
    monkeypatch.setattr(DurableTable, "values", lambda _: pytest.fail("the whole table was copied"))
    get = ConsumerFilterTable.get

    def spied(self: ConsumerFilterTable, topic: str, group: str) -> FilterData | None:
        asked.append(group)
        return get(self, topic, group)

    monkeypatch.setattr(ConsumerFilterTable, "get", spied)
    filters.register("G7", [], 200)
    assert set(asked) == {"G7"}
    left = get(filters, "T", "G7")
    assert left is not None
    assert left.dead_time == 200


def test_an_expression_is_forgotten_a_day_after_its_group_left() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        filters = table(simulated(loop, SimulatedNetwork()))
        filters.register("G", [by_sql("a = 1", 5), by_sql("a = 1", 5, "U")], 100)
        filters.register("G", [by_sql("a = 1", 5)], 200)  # no longer subscribed to U
        filters.group_left("G", 300)
        filters.register("G", [by_sql("a = 1", 5)], 400)
        filters.group_left("G", 500)
        await filters.drop_expired(DAY_MS + 499)
        left = filters.get("T", "G")
        assert left is not None
        assert left.dead_time == 500
        assert filters.get("U", "G") is None
        await filters.drop_expired(DAY_MS + 500)
        assert filters.get("T", "G") is None

    run_simulated(main(), loop)


def test_the_file_has_the_form_of_released_brokers_and_survives_a_restart() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        runtime = simulated(loop, SimulatedNetwork(), disk=disk)
        filters = table(runtime)
        filters.register("G", [by_sql("a = 1", 5)], 100)
        await filters.persist()
        stored = json.loads(read_whole(disk, PATH))
        assert stored.pop("mqproofSeal")
        assert stored == {
            "filterDataByTopic": {
                "T": {
                    "topic": "T",
                    "groupFilterData": {
                        "G": {
                            "topic": "T",
                            "consumerGroup": "G",
                            "expression": "a = 1",
                            "expressionType": "SQL92",
                            "bornTime": 100,
                            "clientVersion": 5,
                            "deadTime": 0,
                        }
                    },
                }
            }
        }
        again = table(runtime, 1_000_000).get("T", "G")
        assert again is not None
        assert (again.expression, again.client_version, again.dead_time) == ("a = 1", 5, 970_000)

    run_simulated(main(), loop)


def test_a_slave_adopts_what_it_lacks_and_keeps_what_its_own_members_announced() -> None:
    with closing(SimulatedLoop()) as loop:
        master, slave = (table(simulated(loop, SimulatedNetwork())) for _ in range(2))
    master.register("G", [by_sql("a = 1", 5)], 100)
    master.register("H", [by_sql("a = 2", 5)], 100)
    slave.register("H", [by_sql("a = 3", 4)], 100)
    slave.adopt(master.shared(), 200)
    adopted, own = slave.get("T", "G"), slave.get("T", "H")
    assert adopted is not None
    assert own is not None
    assert (adopted.expression, adopted.client_version, adopted.born_time) == ("a = 1", 5, 100)
    assert (own.expression, own.dead_time) == ("a = 3", 0)
    slave.group_left("H", 300)
    slave.adopt(master.shared(), 400)
    adopted = slave.get("T", "H")
    assert adopted is not None
    assert adopted.expression == "a = 2"


def test_an_adopted_expression_is_kept_for_a_day_after_the_master_is_gone() -> None:
    async def scenario() -> list[bool]:
        runtime = simulated(loop, SimulatedNetwork())
        master, slave = table(runtime), table(runtime)
        master.register("G", [by_sql("a = 1", 5)], 0)
        kept = []
        for now_ms in range(DAY_MS, 3 * DAY_MS, DAY_MS // 4):
            slave.adopt(master.shared(), now_ms)
            await slave.drop_expired(now_ms)
            kept.append(slave.get("T", "G") is not None)
        await slave.drop_expired(4 * DAY_MS)
        return [all(kept), slave.get("T", "G") is not None]

    loop = SimulatedLoop()
    assert run_simulated(scenario(), loop) == [True, False]


def test_an_invalid_expression_of_a_master_is_left_out() -> None:
    with closing(SimulatedLoop()) as loop:
        slave = table(simulated(loop, SimulatedNetwork()))
    slave.adopt([GroupFilter("T", "G", "a =")], 100)
    assert slave.get("T", "G") is None


def test_a_slave_is_sent_the_latest_expressions_of_a_few_megabytes() -> None:
    with closing(SimulatedLoop()) as loop:
        master = table(simulated(loop, SimulatedNetwork()))
    text = f"a = '{'x' * 4000}'"
    for number in range(1100):
        master.register(f"G{number}", [by_sql(text, number)], 100)
    shared = master.shared()
    assert 900 < len(shared) < 1100
    assert [each.client_version for each in shared[:2]] == [1099, 1098]


def test_the_end_of_a_group_is_the_time_at_which_it_left_and_a_repeated_heartbeat_renews_nothing() -> None:
    with closing(SimulatedLoop()) as loop:
        filters = table(simulated(loop, SimulatedNetwork()))
    filters.register("G", [by_sql("a = 1", 5), by_sql("b = 1", 5, "U")], 100)
    for now_ms in (200, 300):
        filters.register("G", [by_sql("a = 1", 5)], now_ms)
    assert dead_times(filters) == {"T": 0, "U": 200}
    for now_ms in (400, 500):
        filters.group_left("G", now_ms)
    assert dead_times(filters) == {"T": 400, "U": 200}
    filters.register("G", [by_sql("a = 1", 6)], 600)
    known = filters.get("T", "G")
    assert known is not None
    assert (known.client_version, known.born_time, known.dead_time) == (6, 100, 0), "the text is the same"


def dead_times(filters: ConsumerFilterTable) -> dict[str, int]:
    found = {topic: filters.get(topic, "G") for topic in ("T", "U")}
    return {topic: data.dead_time for topic, data in found.items() if data is not None}


@pytest.mark.parametrize(
    ("version", "text", "dead_ms", "is_adopted"),
    [
        (4, "a = 2", 300, False),
        (5, "a = 2", 300, True),
        (6, "a = 1", 300, True),
        (5, "a = 1", 300, False),
        (5, "a = 1", 200 + DAY_MS // 2 - 1, False),
        (5, "a = 1", 200 + DAY_MS // 2, True),
    ],
)
def test_a_slave_adopts_a_change_or_an_end_half_a_day_later(
    version: int, text: str, dead_ms: int, is_adopted: bool
) -> None:
    with closing(SimulatedLoop()) as loop:
        slave = table(simulated(loop, SimulatedNetwork()))
    slave.register("G", [by_sql("a = 1", 5)], 100)
    slave.group_left("G", 200)
    before = slave.get("T", "G")
    slave.adopt([GroupFilter("T", "G", text, 50, version, dead_ms)], 10**9)
    adopted = FilterData("T", "G", text, born_time=50, client_version=version, dead_time=dead_ms)
    assert slave.get("T", "G") == (adopted if is_adopted else before)


def test_the_number_of_expressions_is_limited(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(consumer_filters, "FILTERS_MAX", 2)
    with closing(SimulatedLoop()) as loop:
        own, slave = (table(simulated(loop, SimulatedNetwork())) for _ in range(2))
    for group in ("G1", "G2", "G3"):
        own.register(group, [by_sql("a = 1", 5)], 100)
    own.register("G2", [by_sql("a = 2", 6)], 200)
    slave.adopt([GroupFilter("T", f"G{number}", "a = 1") for number in range(1, 4)], 100)
    found = [[each.get("T", group) for group in ("G1", "G2", "G3")] for each in (own, slave)]
    assert [[data is not None for data in row] for row in found] == [[True, True, False]] * 2
    assert found[0][1] is not None
    assert found[0][1].expression == "a = 2"
    assert "the expression of group G3 is not kept: there are 2" in caplog.text


def test_another_text_with_the_same_version_replaces_nothing() -> None:
    with closing(SimulatedLoop()) as loop:
        filters = table(simulated(loop, SimulatedNetwork()))
    filters.register("G", [by_sql("a = 1", 5)], 100)
    before = filters.get("T", "G")
    filters.register("G", [by_sql("a = 2", 5)], 200)
    assert before is not None
    assert filters.get("T", "G") == before


def test_a_subscription_without_a_text_is_not_recorded() -> None:
    with closing(SimulatedLoop()) as loop:
        filters = table(simulated(loop, SimulatedNetwork()))
    filters.register("G", [Subscription("T", None, expression_type="SQL92")], 100)
    assert filters.get("T", "G") is None


def test_a_repeated_heartbeat_does_not_write_the_file_again() -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()

    async def main() -> None:
        filters = table(simulated(loop, SimulatedNetwork(), disk=disk))
        filters.register("G", [by_sql("a = 1", 5)], 100)
        await filters.persist()
        disk.lose(PATH)
        filters.register("G", [by_sql("a = 1", 5)], 200)
        await filters.persist()
        assert not disk.exists(PATH)

    run_simulated(main(), loop)


@pytest.mark.parametrize(("times", "dead_ms"), [("", 970_000), (',"bornTime":3,"deadTime":300', 300)])
def test_an_expression_of_the_file_is_kept_for_a_day_after_its_group_left(times: str, dead_ms: int) -> None:
    loop, disk = SimulatedLoop(), SimulatedDisk()
    data = f'{{"topic":"T","consumerGroup":"G","expression":"a = 1"{times}}}'
    write_durably(
        disk, PATH, f'{{"filterDataByTopic":{{"T":{{"groupFilterData":{{"G":{data}}}}}}}}}'.encode()
    )

    async def main() -> None:
        filters = table(simulated(loop, SimulatedNetwork(), disk=disk), 1_000_000)
        assert filters.get("T", "G") == FilterData(
            "T", "G", "a = 1", born_time=3 if times else 0, client_version=0, dead_time=dead_ms
        )
        await filters.drop_expired(DAY_MS + dead_ms - 1)
        assert filters.get("T", "G") is not None
        await filters.drop_expired(DAY_MS + dead_ms)
        assert filters.get("T", "G") is None
        assert not filters._topics_of

    run_simulated(main(), loop)


def test_a_slave_is_sent_expressions_up_to_a_size_that_counts_names_and_150_bytes_for_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(SimulatedLoop()) as loop:
        master = table(simulated(loop, SimulatedNetwork()))
    for version, group in enumerate(("G1", "G2")):
        master.register(group, [by_sql("a = 1", version, "Topic")], 100)
    size = len("a = 1" + "Topic" + "G1") + 150
    for bytes_max, groups in ((2 * size, ["G2", "G1"]), (2 * size - 1, ["G2"]), (size - 1, [])):
        monkeypatch.setattr(consumer_filters, "_SHARED_BYTES_MAX", bytes_max)
        assert [each.consumer_group for each in master.shared()] == groups
