"""OTLP JSON lines and Parquet give the same table; what is not about a message is counted."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.otel.span_files import find_spans, load_spans
from tests.spark_audit.sources.span_lines import BEGIN_US, exchange, request, span, write

SPANS = [
    span("send", "m1", 0, trace="a", messaging__rocketmq__message__tag="tea"),
    span("receive", "m1", 1, trace="b", group="g", links=("a",)),
    span("process", "m1", 2, trace="b", group="g", failed=True),
    span("settle", "m1", 3, trace="b", group="g", messaging__operation__name="ack"),
    span("create", "m1", 4),
    span("send", "k1", 5, system="kafka"),
    span("send", None, 6),
    span("send", None, 7, linked_ids=("m2", "m3")),
]


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


def _rows(database: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    columns = "operation, message_id, consumers, tag, failed, start_us, links"
    return database.execute(f"SELECT {columns} FROM spans ORDER BY start_us, 2").fetchall()


EXPECTED = [
    ("publish", "m1", None, "tea", False, BEGIN_US, []),
    ("receive", "m1", "g", None, False, BEGIN_US + 1_000_000, ["a"]),
    ("process", "m1", "g", None, True, BEGIN_US + 2_000_000, []),
    ("settle", "m1", "g", None, False, BEGIN_US + 3_000_000, []),
    ("publish", "m2", None, None, False, BEGIN_US + 7_000_000, ["t", "t"]),
    ("publish", "m3", None, None, False, BEGIN_US + 7_000_000, ["t", "t"]),
]


def test_lines_of_export_requests_are_spans(database: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    file = write(tmp_path / "spans.jsonl", SPANS[:3], SPANS[3:], rest="not json\n\n[]\n")
    counts = load_spans(database, [file])
    assert _rows(database) == EXPECTED
    assert (counts.spans, counts.without_id, counts.other, counts.unreadable_lines) == (6, 1, 2, 2)


def test_compressed_lines_and_nested_parquet_are_the_same(
    database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    lines = write(tmp_path / "lines", SPANS)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(lines.read_bytes()))
    database.execute(f"COPY (SELECT * FROM read_json('{lines}')) TO '{tmp_path}/b.parquet'")
    load_spans(database, [tmp_path / "a.json.gz"])
    first = _rows(database)
    database.execute("DROP TABLE raw; DROP TABLE named; DROP TABLE spans")
    load_spans(database, [tmp_path / "b.parquet"])
    assert first == _rows(database) == EXPECTED


@pytest.mark.parametrize("text", [False, True])
def test_flat_parquet_as_collectors_write_it_is_read(
    database: duckdb.DuckDBPyConnection, tmp_path: Path, text: bool
) -> None:
    named = "{'messaging.system': 'rocketmq', 'messaging.operation': 'process'," + (
        " 'messaging.destination.name': 'Orders', 'messaging.message.id': 'm1',"
        " 'messaging.rocketmq.client_group': 'g'}"
    )
    attributes = f"to_json(map {named})::VARCHAR" if text else f"map {named}"
    database.execute(
        f"COPY (SELECT 'aa' AS TraceId, make_timestamp({BEGIN_US}) AS Timestamp, 2000 AS Duration,"
        f" 'STATUS_CODE_ERROR' AS StatusCode, {attributes} AS SpanAttributes) TO '{tmp_path}/s.parquet'"
    )
    load_spans(database, [tmp_path / "s.parquet"])
    assert _rows(database) == [("process", "m1", "g", None, True, BEGIN_US, [])]
    assert database.execute("SELECT end_us - start_us FROM spans").fetchall() == [(2,)]


def test_files_that_are_no_spans_are_errors(database: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"x\.parquet: damaged, or not spans: "):
        load_spans(database, [tmp_path / "x.parquet"])
    database.execute("DROP TABLE raw")
    (tmp_path / "z.jsonl").write_text('{"resourceLogs": []}\n7\n')
    with pytest.raises(InputError, match=r"z\.jsonl: none of 2 lines is an export request of OTLP"):
        load_spans(database, [tmp_path / "z.jsonl"])
    database.execute(f"COPY (SELECT 1 AS traceId) TO '{tmp_path}/y.parquet'; DROP TABLE raw")
    with pytest.raises(InputError, match=r"y\.parquet: no column for start of spans, expected one of start"):
        load_spans(database, [tmp_path / "y.parquet"])


def test_files_are_found_by_their_names(tmp_path: Path) -> None:
    inside = write(tmp_path / "d.jsonl", exchange(1))
    (tmp_path / "readme.md").write_text(request([]))
    assert find_spans([str(tmp_path), str(inside)]) == (inside,)
    with pytest.raises(InputError, match=r"readme\.md: not a file of spans by its name"):
        find_spans([str(tmp_path / "readme.md")])
    with pytest.raises(InputError, match="absent: no such file or folder"):
        find_spans([str(tmp_path / "absent")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file of spans in this folder"):
        find_spans([str(tmp_path / "empty")])
