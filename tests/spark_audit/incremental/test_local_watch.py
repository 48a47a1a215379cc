"""Watches growing logs without Spark: what is reported, and when; restarts and kills change nothing.

The batches of any log must find the violations of one run over the whole log. A deep test takes a log of 24
hours and kills the process at random moments.
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from mqproof.report.model import Exit
from mqproof.spark_audit.audit import violations
from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.cli import app
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.incremental import local_watch
from mqproof.spark_audit.incremental import watch as watch_module
from mqproof.spark_audit.incremental.local_watch import next_files, present_logs, watch_locally
from mqproof.spark_audit.incremental.state_folder import newest
from mqproof.spark_audit.incremental.watch import Source, Watch, judge_batch
from mqproof.spark_audit.sources.inputs import InputError
from tests.spark_audit.conftest import STEP_US, embedded_audit, write_ndjson
from tests.spark_audit.incremental.day_log import LATE_S, DayLog, by_period
from tests.spark_audit.incremental.test_checkpoint import (
    LATE_US,
    OF_TRAFFIC,
    SHOWN,
    Rows,
    cut,
    keys,
    long_log,
    split_log,
)
from tests.spark_audit.independent import anomalies, ledger_anomalies
from tests.spark_audit.independent.anomalies import Truth
from tests.spark_audit.independent.clean_cluster import LENGTH_S, OPTIONS, build_clean_cluster
from tests.spark_audit.independent.collection import numbered
from tests.spark_audit.independent.simulation import BEGIN, MS, SECOND, Cluster

NO_CHECKS: dict[str, Check] = {}
"""The checks do not affect which files are read, and when."""

OF_LOSS = {name: EVENT_CHECKS[name] for name in ("DELIV-1", "DELIV-5")}
"""Checks of SHOWN whose violations are reported before the last batch."""

NO_EVENTS = b"no event\n" + write_ndjson(
    [{"ts": 1, "seq": 0, "node": "unknown", "kind": "deliver", "queue_offset": "many"}]
)


class Watched:
    """A watch of one folder, with what it reported and said."""

    def __init__(self, folder: Path, checks: Mapping[str, Check]) -> None:
        self.incoming, self.state, self.scratch = folder / "in[1]", folder / "state[1]", folder / "scratch"
        self.incoming.mkdir()
        self.reported: list[Mapping[str, Any]] = []
        self.lines: list[str] = []
        self.request = Watch(Source((self.incoming,)), self.state, LATE_US, once=True, checks=checks)

    def put(self, name: str, content: bytes) -> Path:
        file = self.incoming / name
        file.write_bytes(content)
        return file

    def run(self, report: Callable[[Mapping[str, Any]], None] | None = None, **changes: Any) -> None:
        """Judge what there is, as a process of its own."""
        with active.embedded(), closing(Database(self.scratch)) as database:
            watch_locally(
                database,
                replace(self.request, **changes),
                self.scratch,
                report or self.reported.append,
                self.lines.append,
            )

    def found(self) -> Rows:
        """Return the violations in the state."""
        last = newest(self.state)
        assert last is not None
        rows: Rows = pq.read_table(last / "findings").to_pylist()
        return [row for row in rows if row["cause"] is None]


def test_batches_find_the_violations_of_one_run_and_report_each_when_it_is_certain(tmp_path: Path) -> None:
    watched = Watched(tmp_path, OF_LOSS)
    for number, rows in enumerate(split_log((0, 350 * STEP_US, 700 * STEP_US))):
        watched.put(f"{number}.ndjson", write_ndjson(rows) + NO_EVENTS * (number == 0))
        watched.run()
    assert {(row["night"], row["rule"], row["group"]) for row in watched.found()} == {
        each for each in SHOWN if each[1] in ("lost-write", "offset-regression")
    }
    # The other violations are too recent: later events may explain them.
    assert Counter((row["rule"], row["group"]) for row in watched.reported) == {
        ("offset-regression", "g"): 1, ("lost-write", "h"): 1, ("lost-write", "g"): 2,
    }  # fmt: skip
    assert [line.partition(":")[0] for line in watched.lines] == ["batch 0", "batch 1", "batch 2"]
    assert "2 rows that are not events" in watched.lines[0]
    (written,) = [file.read_text().splitlines() for file in watched.state.glob("unreadable/batch-*/*.json")]
    kept = [json.loads(line) for line in written]
    assert {row["line"] for row in kept} == set(NO_EVENTS.decode().splitlines())
    assert {Path(row["file"]).name for row in kept} == {"0.ndjson"}
    watched.run()
    assert len(watched.lines) == 3, "without a new file there is no batch"


def test_a_watch_killed_before_or_after_its_batch_is_in_the_state_judges_and_reports_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, {"DELIV-5": OF_LOSS["DELIV-5"]})
    first, second, _ = split_log((0, 350 * STEP_US, 700 * STEP_US))
    watched.put("0.ndjson", write_ndjson(first))
    watched.run()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    watched.put("1.ndjson", write_ndjson(second))
    with monkeypatch.context() as patched:
        # Before the state is complete.
        patched.setattr("mqproof.spark_audit.incremental.checkpoint.write_bytes", killed)
        with pytest.raises(KeyboardInterrupt):
            watched.run()
    assert (watched.reported, len(watched.lines)) == ([], 1)
    watched.request = replace(watched.request, late_us=0)
    with pytest.raises(KeyboardInterrupt):
        watched.run(killed)
    assert (len(watched.found()), len(watched.lines)) == (1, 1)
    watched.run()
    assert [row["rule"] for row in watched.reported] == ["offset-regression"]
    assert watched.lines[1:] == ["batch 1: 1 violation, possibly reported before"]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.deep("49 more logs")) for n in range(1, 50))]
)
def test_the_batches_of_any_log_find_the_violations_of_one_run(tmp_path: Path, seed: int) -> None:
    chance, log = random.Random(seed), long_log(3)
    last = max(row["ts"] for row in log)
    watched = Watched(tmp_path, OF_TRAFFIC)
    for number, rows in enumerate(cut(log, [chance.randrange(last)])):
        watched.put(f"{number}.ndjson", write_ndjson(rows))
        watched.run()
    expected = violations(embedded_audit(log, tmp_path, checks=OF_TRAFFIC))
    assert keys(watched.found()) == keys(expected)
    assert expected, "otherwise the comparison shows nothing"


def events(node: str, seqs: Sequence[int]) -> bytes:
    return write_ndjson([{"ts": 1000 + seq, "seq": seq, "node": node, "kind": "crash"} for seq in seqs])


def read_batches(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Let the watch only read its batches; return the names of their files."""
    batches: list[list[str]] = []

    def note(request: Any, run: Any, log: Any, batch: Any, *rest: Any) -> None:
        batches.append([file.name for file in log.inputs.files])
        judge_batch(request, run, log, batch, *rest)

    monkeypatch.setattr(local_watch, "judge_batch", note)
    watched.request = replace(watched.request, checks=NO_CHECKS)
    return batches


def test_a_file_is_read_once_and_forgotten_when_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, NO_CHECKS)
    batches = read_batches(watched, monkeypatch)
    first = watched.put("a[1].ndjson", events("n", range(3)))
    watched.put("b.ndjson.part", b"{")
    watched.put("_c.ndjson", b"{")
    watched.run()
    watched.put("b.ndjson", events("n", range(3, 5)) + b'{"ts":1,"seq":5,"no')
    watched.run()
    assert batches == [["a[1].ndjson"], ["b.ndjson"]]
    assert watched.lines[1].endswith("1 torn last line skipped")
    first.unlink()
    watched.put("d.ndjson", events("n", [5]))
    watched.run()
    last = newest(watched.state)
    assert last is not None
    manifest = json.loads((last / "manifest.json").read_bytes())
    assert (manifest["batch"], manifest["files"]) == (
        2,
        sorted(map(str, watched.incoming.glob("[bd].ndjson"))),
    )


def test_a_file_that_a_run_would_refuse_ends_the_watch_which_continues_after_its_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, NO_CHECKS)
    batches = read_batches(watched, monkeypatch)
    bad = watched.put("bad.parquet", b"no Parquet")
    watched.put("a.ndjson", events("n", range(3)))
    for _ in range(2):
        with pytest.raises(InputError, match=r"bad\.parquet: not a Parquet file"):
            watched.run()
    bad.unlink()
    watched.run()
    assert batches == [["a.ndjson"]]
    shutil.copy(watched.incoming / "a.ndjson", watched.incoming / "b.ndjson")
    with pytest.raises(InputError, match="have the numbers of rows of an earlier run"):
        watched.run()


def test_files_are_taken_by_their_age_up_to_the_size_of_a_batch(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "a" / "b"]
    folders[1].mkdir(parents=True)
    files = [folders[number % 2] / f"{number}.ndjson" for number in range(4)]
    for number, file in enumerate(files):
        file.write_bytes(b"7 bytes")
        os.utime(file, (1_700_000_000 - number,) * 2)
    in_order = files[::-1]
    assert present_logs(folders) == in_order
    assert next_files(in_order, 14) == in_order[:2]
    assert next_files(in_order, 1) == in_order[:1]
    files[3].write_bytes(b"{}\n" * 5)
    assert next_files(in_order, 100, 4) == in_order[:1]
    assert next_files(in_order, 100, 5) == in_order
    assert next_files([], 1) == []


def test_a_watch_polls_while_it_waits_and_takes_what_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, NO_CHECKS)
    batches = read_batches(watched, monkeypatch)
    arriving = iter(["a.ndjson"])

    def poll() -> None:
        """Put a file into the folder; the second time, end the watch."""
        name = next(arriving, None)
        if name is None:
            raise KeyboardInterrupt
        watched.put(name, events("n", range(3)))

    with pytest.raises(KeyboardInterrupt):
        watched.run(once=False, every_s=0, poll=poll)
    assert batches == [["a.ndjson"]]


def test_a_watch_without_events_is_inconclusive_and_needs_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "EVENT_CHECKS", NO_CHECKS)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    incoming, state = tmp_path / "incoming", tmp_path / "state"
    incoming.mkdir()
    (incoming / "empty.ndjson").touch()
    (incoming / "no.ndjson").write_bytes(b"no event\n")
    arguments = ["audit", "watch", "--once", "--state", str(state), "--events", str(incoming)]
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (Exit.INCONCLUSIVE, "")
    assert f"no event was read; 1 unreadable row is in {state / 'unreadable'}" in done.stderr


@pytest.mark.deep("two minutes of processor time")
def test_a_day_with_restarts_and_kills_gives_the_verdicts_of_one_run(tmp_path: Path) -> None:
    day, chance = DayLog(7, every_s=3), random.Random(7)
    assert min(day.faults.values()) > 5
    rows = day.rows()
    incoming, state = tmp_path / "in", tmp_path / "state"
    incoming.mkdir()
    options = ["--late-s", str(LATE_S), "--batch-mib", "1", "--once"]
    command = ["-m", "mqproof", "audit", "watch", "--state", str(state), "--events", str(incoming), *options]
    kills, carried = 0, []
    for hour, of_hour in enumerate(by_period(rows, 3600)):
        for number, part in enumerate(by_period(of_hour, 600)):
            name = f"{hour:02}-{number}.ndjson"
            (incoming / name).write_bytes(write_ndjson(part))
        while True:
            process = subprocess.Popen(
                [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if kills < 12 and chance.random() < 0.5:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(chance.uniform(0.5, 5))
                kills += process.poll() is None
                process.kill()
            if process.wait(600) in (Exit.HELD, Exit.VIOLATED):
                break
        left = newest(state)
        assert left is not None
        carried.append(pq.read_table(left / "rows").num_rows)
    assert left is not None
    found = [row for row in pq.read_table(left / "findings").to_pylist() if row["cause"] is None]
    expected = violations(embedded_audit(rows, tmp_path))
    assert (keys(found), kills) == (keys(expected), 12)
    assert Counter(row["invariant"] for row in expected).keys() >= {"DELIV-1", "DELIV-3", "DELIV-5"}
    # What is kept does not grow with the day: the last minutes, and the lost messages.
    assert max(carried) < len(rows) / 50 + 4 * day.faults["lost"]


@pytest.mark.deep("20 logs, each watched in batches")
@pytest.mark.parametrize("seed", range(20))
def test_the_batches_of_a_log_with_all_anomalies_find_the_violations_of_one_run(
    tmp_path: Path, seed: int
) -> None:
    cluster = Cluster(seed, 200 * MS)
    build_clean_cluster(cluster)
    truth = Truth()
    anomalies.inject(cluster, truth)
    ledger_anomalies.inject(cluster, truth)
    cluster.run(BEGIN + LENGTH_S * SECOND)
    log = [row for _, _, row in numbered(cluster.rows)]
    watched = Watched(tmp_path, EVENT_CHECKS)
    watched.request = replace(watched.request, options=OPTIONS, late_us=40 * SECOND)
    chance = random.Random(seed)
    ends = sorted(BEGIN + chance.randrange(LENGTH_S * SECOND) for _ in range(3))
    for number, rows in enumerate(cut(log, ends)):
        watched.put(f"{number}.ndjson", write_ndjson(rows))
        watched.run()
    expected = violations(embedded_audit(log, tmp_path, options=OPTIONS))
    assert keys(watched.found()) == keys(expected)
    assert len({row["invariant"] for row in expected}) > 20
