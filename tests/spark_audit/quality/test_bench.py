"""The DuckDB variant of the benchmark finds the injected anomalies, so that a comparison is meaningful.

Two implementations without common code agree on every violation: test_audit.py compares the audit with the
truth, and this file compares DuckDB with it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqproof.spark_audit.generator.generate import LogRequest, write_in_process
from mqproof.spark_audit.generator.truth import compare, read_truth
from mqproof.spark_audit.quality.bench import (
    CLEAN,
    DIRTY,
    DUCKDB,
    DUCKDB_DIRTY,
    INJECTED,
    SCAN,
    Cost,
    Measured,
    SideError,
    _Clock,
    _duckdb,
    _local,
    bench,
)
from mqproof.spark_audit.schema import KEY
from mqproof.spark_audit.sources.inputs import InputError


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_duckdb_finds_exactly_the_injected_anomalies(seed: int, tmp_path: Path) -> None:
    write_in_process(LogRequest(150_000, dict.fromkeys(INJECTED, 7), seed), tmp_path / "log")
    truth = read_truth(tmp_path / "log")
    difference = compare(_duckdb(tmp_path / "log", tmp_path), truth)
    assert difference.expected > 7 * len(INJECTED)
    assert difference.exact, (difference.missed, difference.false_alarms)
    if seed == 1:
        assert compare(_local(tmp_path / "log", tmp_path), truth).exact


@pytest.mark.parametrize("seed", range(10, 20))
def test_duckdb_finds_nothing_in_a_log_without_anomalies(seed: int, tmp_path: Path) -> None:
    write_in_process(LogRequest(6_000, seed=seed), tmp_path / "log")
    assert _duckdb(tmp_path / "log", tmp_path) == []


def test_an_unknown_benchmark_variant_is_refused_before_any_work() -> None:
    lines: list[str] = []
    with pytest.raises(SideError, match="dirtiest: unknown variant, expected some of bare scan; by message"):
        bench(1_000_000, ["clean", "dirtiest"], lines.append)
    assert lines == []


def test_a_given_log_must_be_parquet_with_all_columns(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("{}")
    with pytest.raises(InputError, match=r"a\.ndjson: expected a Parquet file"):
        bench(sides=[CLEAN], say=lambda _: None, log=tmp_path)
    with pytest.raises(SideError, match="dirty: unknown variant"):
        bench(sides=[DIRTY], say=lambda _: None, log=tmp_path)
    (tmp_path / "a.ndjson").unlink()
    pq.write_table(pa.table({"ts": [1], "seq": [0], "node": ["n"], "kind": ["send"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="DuckDB needs every column"):
        _duckdb(tmp_path, tmp_path)


def test_each_measurement_is_reported_as_soon_as_it_is_done() -> None:
    reported: list[tuple[str, int, Cost | None]] = []
    clock = _Clock(1, lambda name, events, _, scan: reported.append((name, events, scan)), events=7)
    assert clock.cost(SCAN, lambda: "rows") == "rows"
    clock.cost(CLEAN, lambda: None)
    with pytest.raises(KeyboardInterrupt):
        clock.cost(DIRTY, _interrupted)
    scan = clock.costs[SCAN]
    assert reported == [(SCAN, 7, scan), (CLEAN, 7, scan)]


def test_the_cpu_time_of_ended_processes_is_counted() -> None:
    busy = "import time\nwhile time.process_time() < 1: pass"
    clock = _Clock(os.getpid(), lambda *_: None)
    clock.cost(SCAN, lambda: subprocess.run([sys.executable, "-c", busy], check=True))
    assert clock.costs[SCAN].cpu_seconds > 0.5


def _interrupted() -> None:
    raise KeyboardInterrupt


def test_duckdb_is_compared_on_the_logs_that_both_judged() -> None:
    one, other = ({"invariant": "DELIV-1", "rule": rule} | dict.fromkeys(KEY[2:]) for rule in "ab")
    found = {CLEAN: [], DUCKDB: [], DIRTY: [one], DUCKDB_DIRTY: [one]}

    def measured(found: dict[str, list[dict[str, str | None]]]) -> Measured:
        return Measured(7, 91, {}, found, None, 0)

    assert measured(found).duckdb == compare([one], [one])
    difference = measured(found | {DUCKDB_DIRTY: [other]}).duckdb
    assert difference
    assert not difference.exact
    assert measured({CLEAN: [], DUCKDB_DIRTY: [one]}).duckdb is None
