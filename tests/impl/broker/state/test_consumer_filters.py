"""Tests the expressions of groups: their versions, their end, and their file."""

import json
from contextlib import closing

import pytest

from mqproof.impl.broker.state.consumer_filters import ConsumerFilterTable, FilterData
from mqproof.impl.broker.state.durable_table import DurableTable
from mqproof.impl.remoting.bodies import Subscription
from mqproof.impl.runtime.disk import read_whole
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
