"""`mqproof audit run --mapping`: the example finds its anomalies; wrong files are errors of the command."""

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from mqproof.report.model import Exit
from mqproof.spark_audit.cli import app
from mqproof.spark_audit.command.audit_inputs import AuditInputs
from mqproof.spark_audit.command.conversions import Conversions
from mqproof.spark_audit.sources.inputs import Inputs
from mqproof.spark_audit.sources.mapping.mapping_file import MappingError

KAFKA = Path(__file__).parents[3] / "examples/kafka_audit/kafka.toml"
FOUND = ["lost-write: message order-4 group billing", "duplicate-delivery: message order-7 group billing"]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["audit", "run", *map(str, arguments)])


def test_the_example_finds_the_lost_and_the_repeated_message() -> None:
    done = run("--mapping", KAFKA, "--id", "DELIV-1,DELIV-3")
    assert done.exit_code == Exit.VIOLATED, done.output
    assert [line in done.stdout for line in FOUND] == [True, True]
    assert f"source 1: {KAFKA}: 61 rows, 61 events" in done.stdout
    assert f"replay: mqproof audit run --mapping {KAFKA} --id DELIV-1" in done.stdout
    assert f"audit: {KAFKA}: 61 rows, 61 events\n" in done.stderr


@pytest.mark.deep("an audit on Spark; tests/spark_audit/engine compares both engines")
def test_the_example_gives_the_same_on_spark(spark: SparkSession) -> None:
    done = run("--mapping", KAFKA, "--id", "DELIV-1,DELIV-3", "--engine", "spark")
    assert done.exit_code == Exit.VIOLATED, done.output
    assert [line in done.stdout for line in FOUND] == [True, True]


def test_each_error_of_a_mapping_is_one_line(tmp_path: Path) -> None:
    text = KAFKA.read_text().replace('"', '"').replace("message_id", "id").replace("time_ms", "time")
    file = tmp_path / "m.toml"
    for name in ("producer.jsonl", "consumer.csv"):
        text = text.replace(name, str(KAFKA.with_name(name)))
    file.write_text(text)
    done = run("--mapping", file)
    assert done.exit_code == Exit.USAGE
    wrong = [line for line in done.stderr.splitlines() if "column " in line]
    assert [line.partition("source ")[2][:19].strip() for line in wrong] == [
        "1, column ts: Binde", "1, column msg_id: B", "2, column msg_id: B"
    ]  # fmt: skip


def test_each_error_on_spark_is_one_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*_: object) -> None:
        raise MappingError(["column ts: one", "column node: two"])

    monkeypatch.setattr(Conversions, "on_spark", wrong)
    with pytest.raises(SystemExit) as ended:
        AuditInputs(Inputs(()), {}, ([], [])).read_log(cast("SparkSession", None), tmp_path, print)
    assert ended.value.code == Exit.USAGE
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "column ts: one", "column node: two"
    ]  # fmt: skip


def test_a_mapping_without_numbers_cannot_be_continued(tmp_path: Path) -> None:
    done = run("--mapping", KAFKA, "--state", tmp_path / "state")
    assert done.exit_code == Exit.USAGE
    assert "maps no column seq, which runs that follow each other need" in done.stderr


def test_an_absent_mapping_is_an_error() -> None:
    done = run("--mapping", "/absent.toml")
    assert (done.exit_code, done.stderr.count("\n")) == (Exit.USAGE, 1)
    assert "/absent.toml: No such file or directory" in done.stderr
