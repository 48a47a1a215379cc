"""The benchmark of the chaos proxy measures real processes, and its table compares the sides."""

from pathlib import Path

import pytest

from mqproof.conformance.bench.chaos_overhead import SIDES, measure, table

FIGURES = {
    "messages_per_second": 1000.0,
    "answered_ms_median": 1.25,
    "answered_ms_p99": 2.0,
    "delivered_ms_median": 3.0,
    "delivered_ms_p99": 4.0,
    "proxy_cores": 0.5,
    "most_sends_per_second": 5000.0,
}


def test_the_table_shows_each_side_in_relation_to_the_direct_one() -> None:
    slower = FIGURES | {"messages_per_second": 900.0}
    load = {"rate": 1000, "seconds": 2.0, "size": 8, "rounds": 3}
    medians = dict(zip(SIDES, (FIGURES, slower, slower), strict=True))
    shown = table({"machine": "m", "load_average_before": 0.5, "load": load, "median": medians})
    assert "load average before: 0.5" in shown
    direct, proxy, records = (line.split() for line in shown.splitlines()[4:7])
    assert direct == ["direct", "1000", "1.000", "1.25", "2.0", "3.00", "4.0", "0.50", "5000"]
    assert proxy[2] == "0.900"
    assert records[-8:] == proxy[1:]


@pytest.mark.deep("five processes")
def test_every_side_is_measured(tmp_path: Path) -> None:
    stages: list[str] = []
    result = measure(200, 0.5, 64, 1, tmp_path, stages.append)
    assert result["median"].keys() == set(SIDES)
    assert all(found["messages_per_second"] > 0 for found in result["median"].values())
    assert result["median"]["direct"]["proxy_cores"] == 0
    assert len(stages) == 3
    assert not list(tmp_path.iterdir())
