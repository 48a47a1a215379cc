"""Reads message traces: all known record formats are read, and a missing record proves nothing."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqproof.report.model import Verdict
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.generator import message_traces
from mqproof.spark_audit.quality.trace_mutants import TRACE_MUTANTS, differences, judge
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.trace import embedded_traces
from mqproof.spark_audit.sources.trace.embedded_traces import read_embedded_traces
from mqproof.spark_audit.sources.trace.spark_traces import read_traces
from mqproof.spark_audit.sources.trace.traces import TRACE_TOPIC, find_traces, judge_traces


@pytest.fixture
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with active.embedded(), closing(Database(tmp_path_factory.mktemp("database"))) as opened:
        yield opened


def test_missing_trace_records_give_bounds_and_a_visible_rollback_is_a_violation(
    database: Database, tmp_path: Path
) -> None:
    assert message_traces.TOPIC == TRACE_TOPIC
    store, text = message_traces.write_traces(tmp_path)
    stores, texts = find_traces([str(store), str(text), str(text)])
    assert (stores, texts) == ([store], [text])
    traces = read_embedded_traces(database, stores, texts)
    unreadable = sorted(traces.unreadable.collect(), key=lambda row: row["line"] or "")
    assert [row["line"] for row in unreadable] == [None, None, *message_traces.UNREADABLE]
    assert {Path(row["file"]).name for row in unreadable} == {"store", "traces.txt"}
    shown = judge_traces(traces, 100_000, judged=("DELIV-2",))
    results = {result.id: result for result in shown}
    assert [name for name, _ in differences(shown)] == ["DELIV-2"], "all other results are correct"
    assert results["DELIV-2"].verdict is Verdict.NOT_TESTED, "the event log is better evidence than traces"
    assert results["DELIV-2"].counts == message_traces.SHOWN["DELIV-2"]
    assert "between 0 and 1 of 9 are lost" in results["DELIV-1"].detail
    assert [witness.values["msg_id"] for witness in results["DELIV-9"].witnesses] == [message_traces.ABORTED]


@pytest.mark.parametrize("name", TRACE_MUTANTS)
def test_every_mutant_of_traces_is_caught(name: str) -> None:
    result = judge(TRACE_MUTANTS[name])
    assert result.verdict is Verdict.HELD, (result.detail, result.witnesses)


def test_spark_reads_the_same_records(spark: SparkSession, tmp_path: Path) -> None:
    store, text = message_traces.write_traces(tmp_path)
    on_spark = read_traces(spark, [store], [text])
    records = Counter(tuple(row) for row in on_spark.records.collect())
    lines = Counter(row["line"] for row in on_spark.unreadable.collect())
    with active.embedded(), closing(Database(tmp_path)) as database:
        embedded = read_embedded_traces(database, [store], [text])
        assert on_spark.records.columns == embedded.records.columns
        assert Counter(tuple(row) for row in embedded.records.collect()) == records
        assert Counter(row["line"] for row in embedded.unreadable.collect()) == lines
    assert len(records) > 20


def test_a_text_without_the_end_of_a_record_is_cut(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_traces, "_READ_CHARACTERS", 8)
    monkeypatch.setattr(embedded_traces, "_LINE_CHARACTERS_MAX", 20)
    (tmp_path / "text").write_text("x" * 50, encoding="utf-8")
    traces = read_embedded_traces(database, [], [tmp_path / "text"])
    assert sorted(len(row["line"]) for row in traces.unreadable.collect()) == [2, 24, 24]


def test_a_path_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        find_traces([str(tmp_path / "nowhere")])
    with pytest.raises(InputError, match="no file in this folder"):
        find_traces([str(tmp_path)])
