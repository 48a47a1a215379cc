"""The number of events is estimated without reading the whole log."""

import gzip
from pathlib import Path

import pyarrow.parquet as pq

from mqproof.spark_audit.generator.store_directory import write_store
from mqproof.spark_audit.sources.log_size import estimated_events, stored_bytes
from tests.spark_audit.conftest import LogBuilder, table, write_ndjson

ROWS = LogBuilder(subscribed=()).stored("m_0", 0).rows


def test_a_short_log_is_counted_and_a_long_one_is_estimated(tmp_path: Path) -> None:
    short, long, packed = (tmp_path / name for name in ("a.ndjson", "b.ndjson", "c.ndjson.gz"))
    short.write_bytes(write_ndjson(ROWS))
    long.write_bytes(write_ndjson(ROWS * 5_000))
    packed.write_bytes(gzip.compress(write_ndjson(ROWS * 5_000)))
    assert estimated_events([short]) == len(ROWS)
    assert 0.9 < estimated_events([long]) / (len(ROWS) * 5_000) < 1.1
    assert estimated_events([packed]) > len(ROWS)
    pq.write_table(table(ROWS), tmp_path / "d.parquet")
    assert estimated_events([short, tmp_path / "d.parquet"]) == 2 * len(ROWS)


def test_a_file_that_cannot_be_read_counts_as_nothing(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.ndjson.gz", "c.ndjson.zst"):
        (tmp_path / name).write_bytes(b"\x1f\x8b\x08\x00broken")
        assert estimated_events([tmp_path / name]) == 0
    assert estimated_events([tmp_path / "absent.ndjson"]) == 0


def test_only_written_bytes_of_a_commit_log_count(tmp_path: Path) -> None:
    write_store(tmp_path / "store", ())
    written = stored_bytes([tmp_path / "store"])
    segment = max((tmp_path / "store" / "commitlog").iterdir())
    assert 0 < written <= sum(each.stat().st_size for each in segment.parent.iterdir())
    with segment.open("r+b") as preallocated:
        preallocated.truncate(segment.stat().st_size + (64 << 20))
    # The end of what was written is found to a MiB.
    assert stored_bytes([tmp_path / "store"]) - written <= 1 << 20
