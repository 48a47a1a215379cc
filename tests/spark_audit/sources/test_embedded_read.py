"""The embedded engine reads the same rows as Spark, or leaves the log to Spark.

tests/spark_audit/engine compares the results of both engines on such logs.
"""

import errno
import gzip
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.sources import embedded_read
from mqproof.spark_audit.sources.embedded_read import NotEmbeddedError, read_embedded
from mqproof.spark_audit.sources.inputs import InputError, find_files
from mqproof.spec.events import NUMBER_MAX, SCHEMA_VERSION
from tests.spark_audit.conftest import LogBuilder, table, write_ndjson

ROWS = LogBuilder(subscribed=()).stored("m_0", 0).deliver("m_0", 0).rows
ROWS[-1]["attrs"] = {"broker": "broker"}
BAD = b'{"ts":1,"seq":"2","node":"n","kind":"send"}'


def read(folder: Path, stage: Callable[[str], None] = lambda _: None) -> tuple[Any, ...]:
    """Return kinds, (stated, reset), corrupt lines, and (rows, torn files) of the logs in a folder."""
    scratch = folder.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    with active.embedded(), closing(Database(scratch)) as database:
        log = read_embedded(database, find_files([str(folder)]), scratch, stage)
        rows = log.event_log.events.orderBy("ts").collect()
        return (
            [row.kind for row in rows],
            [(row.stated, row.reset) for row in rows],
            sorted((Path(row.file).name, row.line) for row in log.corrupt.collect()),
            [log.rows, log.torn_files],
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.mkdir()
    return path


KINDS = [row["kind"] for row in ROWS]


def test_all_formats_have_the_same_rows(folder: Path) -> None:
    lines = write_ndjson(ROWS)
    stages: list[str] = []
    texts = {"log.ndjson": b"\n" + lines.rstrip(), "log.ndjson.gz": gzip.compress(lines)}
    for name in (*texts, "log.parquet"):
        if name in texts:
            (folder / name).write_bytes(texts[name])
        else:
            pq.write_table(table(ROWS), folder / name)
        kinds, derived, corrupt, counts = read(folder, stages.append)
        assert (kinds, corrupt, counts) == (KINDS, [], [len(ROWS), 0]), name
        assert derived[-1] == ("broker", False)
        (folder / name).unlink()
    assert stages == [f"read 1 of 1 file, {len(ROWS)} events"] * 2
    (folder / "empty.ndjson").touch()
    assert read(folder) == ([], [], [], [0, 0])


def test_lines_that_are_no_events_are_kept_apart_and_a_torn_line_is_not_counted(folder: Path) -> None:
    (folder / "log.ndjson").write_bytes(write_ndjson(ROWS) + BAD + b"\n{torn")
    assert read(folder)[2:] == ([("log.ndjson", BAD.decode())], [len(ROWS) + 1, 1])
    assert read(folder)[0] == KINDS


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "sent"},
        {"node": None},
        {"ts": NUMBER_MAX + 1},
        {"attrs": {"schema": str(SCHEMA_VERSION + 1)}},
        {"term": -NUMBER_MAX - 1},
    ],
)
def test_a_row_of_a_parquet_file_that_is_no_event_is_kept_apart(
    folder: Path, change: dict[str, object]
) -> None:
    pq.write_table(table([*ROWS, ROWS[1] | {"msg_id": "m_bad"} | change]), folder / "log.parquet")
    kinds, _, [(name, line)], counts = read(folder)
    assert (kinds, name, counts) == (KINDS, "log.parquet", [len(ROWS) + 1, 0])
    assert '"msg_id":"m_bad"' in str(line)


def test_missing_columns_and_damaged_files_are_refused(folder: Path) -> None:
    file = folder / "log.parquet"
    pq.write_table(table(ROWS).drop_columns(["seq"]), file)
    with pytest.raises(InputError, match=r"log\.parquet: missing column seq: an event log needs"):
        read(folder)
    file.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"log\.parquet: damaged, cannot be read to the end"):
        read(folder)
    file.write_bytes(b"something else")
    with pytest.raises(InputError, match=r"log\.parquet: not a Parquet file"):
        read(folder)
    file.unlink()
    (folder / "log.ndjson").write_bytes(b'{"ts":1,"node":"n","kind":"send"}\n')
    with pytest.raises(InputError, match=r"log\.ndjson:1: missing column seq"):
        read(folder)
    (folder / "log.ndjson").unlink()
    (folder / "log.ndjson.gz").write_bytes(gzip.compress(write_ndjson(ROWS))[:60])
    with pytest.raises(InputError, match=r"log\.ndjson\.gz: damaged, cannot be read"):
        read(folder)


def test_damage_within_a_parquet_file_names_the_file(folder: Path) -> None:
    pq.write_table(table(ROWS * 500), folder / "log.parquet", compression="gzip", use_dictionary=False)
    data = bytearray((folder / "log.parquet").read_bytes())
    data[len(data) // 4 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 4)
    (folder / "log.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"log\.parquet: damaged, cannot be read to the end"):
        read(folder)


def test_what_only_spark_reads_is_left_to_it(folder: Path) -> None:
    part = folder / "topic=t"
    part.mkdir()
    pq.write_table(table(ROWS).drop_columns(["topic"]), part / "log.parquet")
    with pytest.raises(NotEmbeddedError, match="give the column topic"):
        read(folder)
    (part / "log.parquet").unlink()
    twice = table(ROWS).append_column("TS", pa.array([0] * len(ROWS)))
    pq.write_table(twice, folder / "log.parquet")
    with pytest.raises(NotEmbeddedError, match="differ only in case"):
        read(folder)
    decimal = pa.array([0] * len(ROWS), pa.uint64())
    pq.write_table(table(ROWS).set_column(1, "seq", decimal), folder / "log.parquet")
    with pytest.raises(NotEmbeddedError, match=r"column seq of .* is UBIGINT, not BIGINT"):
        read(folder)
    (folder / "log.parquet").unlink()
    for line in (
        b"[1]",
        b'{"ts":1,"seq":0,"node":7,"kind":"send"}',
        b'{"node":"\xff"}',
        b'{"node":"\\ud800"}',
    ):
        (folder / "log.ndjson").write_bytes(write_ndjson(ROWS) + line + b"\n")
        with pytest.raises(NotEmbeddedError, match="is unusual"):
            read(folder)
    (folder / "log.ndjson").write_bytes(
        write_ndjson(ROWS) + b'{"ts":1,"ts":2,"seq":9,"node":"n","kind":"send"}\n'
    )
    with pytest.raises(NotEmbeddedError, match="DuckDB reports"):
        read(folder)


def test_any_number_of_lines_that_are_no_events_is_kept_apart(folder: Path) -> None:
    odd = [b"no event", b'\x00 \xc3\xa9 "quoted" \\', b"x" * 100_000]
    bad = {"1.ndjson": [BAD] * 10_500, "2.ndjson": odd}
    for name, lines in bad.items():
        (folder / name).write_bytes(write_ndjson(ROWS) + b"\n".join(lines) + b"\n")
    kinds, _, corrupt, counts = read(folder)
    assert (len(kinds), counts) == (2 * len(ROWS), [2 * len(ROWS) + 10_503, 0])
    assert corrupt == sorted((name, line.decode()) for name, lines in bad.items() for line in lines)


def test_a_full_disk_is_not_a_damaged_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (folder / "log.ndjson").write_bytes(write_ndjson(ROWS))
    monkeypatch.setattr(embedded_read._Lines, "add", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/scratch/lines-0\.ndjson'"):
        read(folder)
