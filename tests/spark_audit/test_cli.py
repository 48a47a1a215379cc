"""`mqproof audit`: exit codes, one line an error, and the files it leaves."""

import json
import os
import shutil
import signal
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, Final
from xml.etree import ElementTree

import msgspec
import pyarrow.parquet as pq
import pytest
import typer
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]  # the wheel ships no types
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from mqproof.report.console import terminable
from mqproof.report.model import Exit
from mqproof.spark_audit.cli import app
from mqproof.spark_audit.command.failures import blame, blamed
from mqproof.spark_audit.command.opened_session import ending_jobs
from mqproof.spark_audit.command.watch_command import so_far, tell
from mqproof.spark_audit.incremental.carried_state import Manifest
from mqproof.spark_audit.incremental.so_far import rows_missing
from mqproof.spark_audit.incremental.state_folder import SCHEMA_VERSION
from tests.spark_audit.conftest import Story, table

SCRATCH = Path("/tmp/mqproof-audit-1")


def mqproof(*arguments: str | int | Path) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_generate_then_run_finds_the_violations_and_writes_every_format(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    made = mqproof(
        "generate", "--events", 6000, "--out", log, "--anomaly", "lost=2", "--anomaly", "duplicate=1"
    )
    assert (made.exit_code, "5 violations to find" in made.stdout) == (Exit.HELD, True)
    told = [line.split()[1] for line in made.stderr.splitlines()]
    assert told == ["adding", "writing", "listing"]
    done = mqproof(
        "run", "--events", log, "--out", out, "--check", "DELIV-1,DELIV-3", "--json", tmp_path / "r.txt",
        "--orderly", "a group", "--orderly", "g", "--delays", "1s 9s",
    )  # fmt: skip
    assert done.exit_code == Exit.VIOLATED, done.output
    said = "--orderly 'a group' --orderly g --delays '1s 9s'"
    assert f"mqproof audit run --events {log} {said} --check DELIV-1" in done.stdout
    report = json.loads((out / "report.json").read_text())
    assert json.loads((tmp_path / "r.txt").read_text()) == report
    assert [result["id"] for result in report["results"]] == ["DELIV-1", "DELIV-3"]
    assert json.loads((out / "report.sarif").read_text())["version"] == "2.1.0"
    assert "DELIV-1" in (out / "report.md").read_text()
    assert f"wrote {out}/report.html, report.json, report.md, report.sarif, junit.xml" in done.stderr
    stages = ("reading 1 file and 0 stores", "timelines of what was found", f"writing {out}")
    assert all(f"audit: {stage}\n" in done.stderr for stage in stages), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "out", "r.txt"]
    assert pq.read_table(out / "violations.parquet").num_rows == 5
    assert ElementTree.parse(out / "junit.xml").getroot().tag in ("testsuite", "testsuites")
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 3
    assert "http://" not in page.replace("http://www.w3.org/", "")


def test_a_corrupt_row_is_reported_kept_and_makes_the_verdict_unknown(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    mqproof("generate", "--events", 3000, "--out", log, "--format", "ndjson")
    written = next(log.glob("part-*.ndjson"))
    with written.open("ab") as file:
        file.write(b"{this is no event}\n")
    shutil.copy(written, log / "z_given_twice.ndjson")
    done = mqproof("run", "--events", log, "--out", out, "--check", "DELIV-2")
    assert done.exit_code == Exit.INCONCLUSIVE, done.output
    assert "Rows that are no events: 1" in done.stdout
    assert "z_given_twice.ndjson is" in done.stderr
    assert "1 (counted once)" in done.stdout
    assert any("this is no event" in part.read_text() for part in (out / "unreadable").glob("*.json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "--events: name at least one event log, folder or pattern, or a --store"),
        (["run", "--events", "nowhere"], "nowhere: no such file or folder"),
        (["run", "--events", ".", "--check", "DELIV-99"], "--check: no check for DELIV-99"),
        (["run", "--trace", "nowhere"], "nowhere: no such file or folder"),
        (["run", "--trace", ".", "--check", "RAFT-1"], "--check RAFT-1: it judges --events"),
        (["run", "--events", ".", "--check", "REPL-2"], "--check REPL-2: it judges a --store"),
        (["run", "--events", ".", "--check", "ROUTE-4"], "--check: no check for ROUTE-4"),
        (["run", "--events", ".", "--conf", "cores=2"], "--conf: 'cores=2', expected KEY=VALUE of Spark"),
        (["watch", "--state", "s"], "--events: name at least one folder, or a --topic"),
        (["watch", "--state", "s", "--topic", "t"], "--namesrv is missing"),
        (["run", "--events", ".", "--out", "/dev/null"], "--out: /dev/null is a file, expected a folder"),
        (["run", "--events", ".", "--out", "/proc/x"], "--out: /proc/x cannot be written: "),
        (["run", "--events", ".", "--json", "/proc/x/r.json"], "--json: /proc/x/r.json cannot be written: "),
        (["run", "--events", ".", "--json", "."], "--json: . is a folder, expected a file"),
        (["run", "--events", ".", "--carry", "/proc/x"], "--carry: /proc/x cannot be written: "),
        (["generate", "--events", "9000", "--out", "/proc/x"], "--out: /proc/x cannot be written: "),
        (["run", "--events", ".", "--flush", "maybe"], "--flush: 'maybe', expected SYNC_FLUSH"),
        (["run", "--events", ".", "--delays", "1s 2x"], "--delays: '1s 2x', expected delays such as"),
        (["watch", "--state", "s", "--events", ".", "--broker-config", "no"], "no: No such file"),
        (["generate", "--events", "9000", "--out", "x", "--anomaly", "lost"], "expected NAME=COUNT"),
        (["generate", "--events", "9000", "--out", "x", "--anomaly", "lots=1"], "anomaly 'lots'"),
        (["generate", "--events", "9000", "--out", "x", "--format", "csv"], "--format: 'csv'"),
        (["generate", "--events", "9" * 22, "--out", "x"], "too many events, expected 1000000000000 at most"),
        (
            ["generate", "--events", "9000", "--out", "x", "--memory", "1x"],
            "--memory: '1x', expected a number",
        ),
        (["generate", "--events", "9000", "--out", "x", "--master", "mine"], "--master: 'mine' is no master"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = mqproof(*arguments)
    assert done.exit_code == Exit.USAGE
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_empty_folder_is_bad_input_not_a_pass(tmp_path: Path) -> None:
    done = mqproof("run", "--events", tmp_path)
    assert (done.exit_code, done.stderr.count("\n")) == (Exit.USAGE, 1)
    assert "no event log in this folder" in done.stderr


def test_a_damaged_gzip_file_is_bad_input(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.ndjson.gz").write_bytes(b"\x1f\x8b\x08\x00broken")
    done = mqproof("run", "--events", tmp_path / "log.ndjson.gz")
    assert done.exit_code == Exit.USAGE, done.output
    assert f"{tmp_path}/log.ndjson.gz: damaged" in done.stderr


def test_traces_alone_are_judged_with_bounds(spark: SparkSession, tmp_path: Path) -> None:
    told = "\x01".join(["SubBefore", "1790000000000", "null", "g", "r", "m_0", "0", "k"])
    (tmp_path / "traces.txt").write_text(f"{told}\x02Pub\x01x\x02")
    done = mqproof("run", "--trace", tmp_path / "traces.txt", "--out", tmp_path)
    assert done.exit_code == Exit.INCONCLUSIVE, done.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert {result["id"]: result["verdict"] for result in report["results"]} == {
        **dict.fromkeys(("DELIV-1", "DELIV-2", "DELIV-3"), "unknown"), "DELIV-9": "not tested",
    }  # fmt: skip
    assert report["facts"]["unreadable traces"] == "1"
    (kept,) = [json.loads(part.read_text()) for part in (tmp_path / "unreadable").glob("*.json")]
    assert (Path(kept["file"]).name, kept["line"]) == ("traces.txt", "Pub\x01x")
    assert pq.read_table(tmp_path / "violations.parquet").num_rows == 0
    assert "between 0 and 1 of 1 were never sent" in done.output


HOSTILE = "\x1b[31mred\u202e\nnext"
ESCAPED = r"\x1b[31mred\u202e\nnext"


def test_a_life_shows_no_name_of_the_log_raw(spark: SparkSession, tmp_path: Path) -> None:
    story = Story().add("send", HOSTILE, msg_id="m", topic="t", attempt=1)
    pq.write_table(table(story.rows), tmp_path / "log.parquet")
    done = mqproof("explain", "m", "--events", tmp_path)
    assert (done.exit_code, done.stdout.count("\n")) == (Exit.HELD, 1), done.output
    assert ESCAPED in done.stdout
    done = mqproof("explain", HOSTILE, "--events", tmp_path)
    assert done.exit_code == Exit.INCONCLUSIVE
    assert done.stderr.splitlines()[-1] == f"mqproof audit: {ESCAPED}: no input knows this message"


def test_a_line_of_watch_names_its_fields_and_shows_none_raw(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = dict.fromkeys(("broker", "topic", "queue_id", "queue_offset", "msg_id", "group", "first_ts"))
    tell({**nothing, "invariant": "DELIV-1", "rule": "lost", "topic": HOSTILE, "evidence": "so it is"})
    tell(
        {**nothing, "invariant": "DELIV-1", "rule": "lost", "first_ts": 0, "queue_id": 0, "group": "a  b=c",
         "evidence": None}
    )  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [
        f"-  DELIV-1  lost  topic='{ESCAPED}'  evidence=so it is",
        "1970-01-01 00:00:00.000000  DELIV-1  lost  queue_id=0  group='a  b=c'",
    ]


def test_a_failure_of_spark_is_told_by_its_innermost_cause() -> None:
    thrown = RuntimeError(
        "An error occurred while calling o1.parquet.\n: a.B: job aborted\nCaused by: c.D: no space left"
    )
    assert blame(thrown, SCRATCH) == ("Spark failed: c.D: no space left", Exit.TOOL)


def test_a_jvm_that_is_gone_is_no_fault_of_the_input() -> None:
    for thrown in (
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "refused"),
    ):
        with pytest.raises(typer.Exit) as ended, blamed(SCRATCH):
            raise thrown
        assert ended.value.exit_code == Exit.TOOL


@pytest.mark.parametrize(
    "after",
    [
        RuntimeError("Job 16 cancelled as part of cancellation of all jobs"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_an_interrupt_that_its_consequences_hide_is_still_one(after: Exception) -> None:
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise after
    except (RuntimeError, ConnectionError) as thrown:
        with pytest.raises(KeyboardInterrupt):
            blame(thrown, SCRATCH)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_jobs_and_those_that_are_begun_after_it(number: signal.Signals) -> None:
    cancelled, stopped = [], Event()

    def cancel() -> None:
        cancelled.append(number)
        if len(cancelled) == 3:
            stopped.set()
            raise AttributeError("Spark is stopped")

    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=cancel))
    with terminable():
        before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
        with pytest.raises(KeyboardInterrupt), ending_jobs(spark):
            os.kill(os.getpid(), number)
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
    assert stopped.wait(10)


def test_a_full_disk_is_told_in_words_with_a_way_out() -> None:
    thrown = RuntimeError(
        "An error occurred while calling o1.parquet.\n: a.B: job aborted\n"
        "Caused by: java.io.IOException: No space left on device\n\tat c.D"
    )
    message, code = blame(thrown, SCRATCH)
    assert message.startswith(
        "/tmp: No space left on device, where temporary files are: free some; TMPDIR=DIR"
    )
    assert "--conf spark.local.dir=DIR" in message
    assert code == Exit.TOOL


def test_a_full_disk_of_the_output_is_told_by_its_path() -> None:
    told = (
        "[TASK_WRITE_FAILED] Task failed while writing rows to file:/big/state/.night-000002.tmp/rows. "
        "SQLSTATE: 58030\nCaused by: java.io.IOException: No space left on device\n"
    )
    told += "\tat org.apache.spark.storage.BlockManager.getOrElseUpdate(BlockManager.scala)\n"
    assert blame(RuntimeError(told), SCRATCH) == (
        "/big/state/night-000002: No space left on device",
        Exit.TOOL,
    )
    by_python = "OSError: [Errno 28] No space left on device: '/big/.log.tmp/_part-00001.parquet.3'\n"
    assert blame(RuntimeError(by_python), SCRATCH) == ("/big/log: No space left on device", Exit.TOOL)
    of_ours = told.replace("/big/state", str(SCRATCH))
    assert "spark.local.dir" in blame(RuntimeError(of_ours), SCRATCH)[0]
    spilled = told + "\tat org.apache.spark.storage.DiskBlockObjectWriter.write(DiskBlockObjectWriter.scala)"
    assert "spark.local.dir" in blame(RuntimeError(spilled), SCRATCH)[0]


LOST: Final = ("DELIV-1", "lost-write", 2, 1, 0)
AGAIN: Final = ("DELIV-3", "duplicate-delivery", 5, 0, 5)


@pytest.mark.parametrize(
    ("rows", "missing", "code", "said"),
    [
        ([], 0, Exit.HELD, ["no violation so far"]),
        ([], 1, Exit.INCONCLUSIVE, ["no violation so far; unknown: 1 rows are missing or unreadable"]),
        ([LOST], 1, Exit.VIOLATED, ["DELIV-1 lost-write: 2 violations"]),
        (
            [LOST, AGAIN],
            2,
            Exit.VIOLATED,
            [
                "DELIV-1 lost-write: 2 violations; unknown: 2 rows are missing or unreadable, "
                "and may explain them",
                "DELIV-3 duplicate-delivery: 5 violations, 5 of them younger than --late-s and not told yet",
            ],
        ),
        ([LOST, AGAIN], 5, Exit.INCONCLUSIVE, None),
    ],
)
def test_watch_ends_with_what_its_violations_are_worth(
    rows: list[tuple[str, str, int, int, int]],
    missing: int,
    code: int,
    said: list[str] | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert so_far(rows, missing) == code
    lines = capsys.readouterr().out.splitlines()
    assert said is None or lines == said


def test_rows_that_cannot_be_read_are_counted_beside_a_state(tmp_path: Path) -> None:
    kept = tmp_path / "unreadable" / "batch-000001"
    kept.mkdir(parents=True)
    (kept / "part-0.json").write_text('{"line":"a"}\n{"line":"b"}\n')
    state = tmp_path / "night-000001"
    state.mkdir()
    for holes, missing in ((0, 2), (7, 7)):
        told = Manifest(SCHEMA_VERSION, 1, 0, holes)
        (state / "manifest.json").write_bytes(msgspec.json.encode(told))
        assert rows_missing(state) == missing
