"""Small event logs are audited without Spark; what only Spark reads is left to it, with one line."""

from pathlib import Path

import pytest

from mqproof.report.model import Exit
from mqproof.spark_audit.command import engine_choice
from mqproof.spark_audit.command.engine_choice import Engine, is_local, leave_to_spark
from mqproof.spark_audit.generator.store_directory import write_store
from tests.spark_audit.conftest import LogBuilder, write_ndjson


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.ndjson"
    file.write_bytes(write_ndjson(LogBuilder(subscribed=()).stored("m_0", 0).rows))
    return file


def test_a_small_event_log_is_audited_locally_unless_spark_is_requested(log: Path) -> None:
    assert is_local(Engine.AUTO, [], [log])
    assert is_local(Engine.LOCAL, [], [log])
    assert not is_local(Engine.SPARK, [], [log])


def test_a_large_log_is_left_to_spark_with_one_line(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine_choice, "EVENTS_MAX", 3)
    assert not is_local(Engine.AUTO, [], [log])
    assert capsys.readouterr().err == "audit: on Spark: about 4 events, DuckDB audits up to 3\n"
    assert is_local(Engine.LOCAL, [], [log]), "the user knows the log better"


def test_large_stores_are_left_to_spark_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_store(tmp_path / "store", ())
    assert is_local(Engine.AUTO, [], [], [tmp_path / "store"])
    monkeypatch.setattr(engine_choice, "STORED_BYTES_MAX", 99)
    assert not is_local(Engine.AUTO, [], [], [tmp_path / "store"])
    assert "bytes of commit logs and traces, DuckDB audits up to 99\n" in capsys.readouterr().err


def test_an_option_that_only_spark_serves_chooses_spark(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not is_local(Engine.AUTO, ["--trace"], [log])
    with pytest.raises(SystemExit) as ended:
        is_local(Engine.LOCAL, ["--trace"], [log])
    assert ended.value.code == Exit.USAGE
    assert "--engine local: it does not serve --trace; use --engine spark" in capsys.readouterr().err


def test_input_that_only_spark_reads_is_refused_locally(capsys: pytest.CaptureFixture[str]) -> None:
    leave_to_spark(Engine.AUTO, "a line is unusual")
    assert capsys.readouterr().err == "audit: on Spark: a line is unusual\n"
    with pytest.raises(SystemExit) as ended:
        leave_to_spark(Engine.LOCAL, "a line is unusual")
    assert ended.value.code == Exit.USAGE
