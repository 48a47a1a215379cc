"""DuckDB's side of the benchmark finds what was planted: only then is it a yardstick for the audit.

Two implementations that share no code so agree on every violation: the audit with the truth in test_audit.py,
and DuckDB here.
"""

from pathlib import Path

import pytest

from spark_audit.bench import _duckdb
from spark_audit.generate import Wish
from spark_audit.scenario import ANOMALIES
from spark_audit.truth import compare
from tests.spark_audit.conftest import write_log


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_duckdb_finds_exactly_what_was_planted(seed: int, tmp_path: Path) -> None:
    truth = write_log(Wish(150_000, dict.fromkeys(ANOMALIES, 7), seed), tmp_path / "log")
    difference = compare(_duckdb(tmp_path / "log"), truth)
    assert difference.expected > 7 * len(ANOMALIES)
    assert difference.exact, (difference.missed, difference.false_alarms)


@pytest.mark.parametrize("seed", range(10, 20))
def test_duckdb_finds_nothing_in_a_log_without_anomalies(seed: int, tmp_path: Path) -> None:
    write_log(Wish(6_000, seed=seed), tmp_path / "log")
    assert _duckdb(tmp_path / "log") == []
