"""Each row is measured on real brokers, and the table states what was measured."""

from pathlib import Path

import pytest

from mqproof.conformance.bench import replicated_brokers
from mqproof.conformance.bench.replicated_brokers import Amount, measure, single_broker, table


def test_rows_are_measured_on_real_brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicated_brokers, "SIDES", {"alone, ASYNC_FLUSH": single_broker})
    stages: list[str] = []
    result = measure(Amount(sends=100, seconds=0.2, kills=0, copied_mib=1), 1, tmp_path, stages.append)
    (rate,) = result["sends_per_second"]["alone, ASYNC_FLUSH"]
    waits = result["answered_ms"]["alone, ASYNC_FLUSH"]
    copy = result["first_copy"]
    assert rate > 0
    assert 0 < waits["median"] <= waits["p99"]
    assert copy["bytes"] >= 1 << 20
    assert min(copy["slave_seconds"], copy["plain_seconds"]) > 0
    assert result["change_seconds"] == result["clients_change_seconds"] == []
    assert len(stages) == 4
    assert not list(tmp_path.iterdir())
    assert "alone, ASYNC_FLUSH" in table(result)


def test_the_table_compares_changes_with_configured_waits_and_rates_with_one_broker() -> None:
    shown = table(
        {
            "cores": 2,
            "rounds": 1,
            "sends_per_second": {"alone": [900.0, 1000.0, 1100.0], "group": [500.0]},
            "latency_load_per_second": 125.0,
            "answered_ms": {name: {"median": 1.0, "p99": 2.0} for name in ("alone", "group")},
            "change_seconds": [5.0, 6.0, 9.0],
            "clients_change_seconds": [5.5, 6.5, 9.5],
            "change_floor_seconds": 7.0,
            "first_copy": {"bytes": 64 << 20, "slave_seconds": 2.0, "plain_seconds": 0.5},
        }
    )
    assert "3 masters killed, seconds to the next acknowledged send: 50% 6.0, 90% 9.0, 99% 9.0" in shown
    assert "acknowledged send of a client: 50% 6.5, 90% 9.5, 99% 9.5, maximum 9.5" in shown
    assert "sum up to 7.0" in shown
    assert "0.50" in next(line for line in shown.splitlines() if line.startswith("group"))
    assert "32 MiB/s, including its start; a plain copy 128 MiB/s" in shown
