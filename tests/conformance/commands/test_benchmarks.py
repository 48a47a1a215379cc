"""The send benchmark measures complete sends of real processes, and reports a process that failed."""

from pathlib import Path

import pytest

from mqproof.conformance.bench.broker import BenchError
from mqproof.conformance.commands import benchmarks
from mqproof.conformance.commands.benchmarks import Load, fdatasync_rate, measure, table


def test_a_small_round_reports_rates_of_both_modes_and_of_the_disk(tmp_path: Path) -> None:
    result = measure(Load(count=50, size=100, outstanding=8), rounds=1, directory=tmp_path)
    assert all(rate > 0 for rate in result["sends_per_second"].values())
    assert result["fdatasync_per_second"] > 0
    shown = table(result)
    for label in ("SYNC_FLUSH", "ASYNC_FLUSH", "write and fdatasync", "50 sends of 100 bytes"):
        assert label in shown
    assert not list(tmp_path.iterdir())


def test_a_server_that_does_not_start_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "_MODES", ("NO_SUCH_FLUSH",))
    with pytest.raises(BenchError, match="did not become ready, exit code 2"):
        measure(Load(count=1, size=1, outstanding=1), rounds=1, directory=tmp_path)


def test_the_disk_is_measured_in_the_given_directory(tmp_path: Path) -> None:
    assert fdatasync_rate(tmp_path, size=10, seconds=0.05) > 0
