"""Estimates the size of the input: the events in a log, and the bytes of the commit logs of stores."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mqproof.spark_audit.sources.log_lines import DAMAGED, opened
from mqproof.spark_audit.sources.store.ranges import log_folders, segments, written_end

_SAMPLE_BYTES: Final = 1 << 16
_COMPRESSION: Final = 12
"""How much smaller a compressed log usually is. It is only needed for logs longer than the sample."""


def stored_bytes(paths: Iterable[Path]) -> int:
    """Return the bytes of files, and the written bytes of the commit logs and ledgers of store directories.

    Raises:
        OSError: a file cannot be read.
    """
    return sum(_in_store(path) if path.is_dir() else path.stat().st_size for path in paths)


def _in_store(store: Path) -> int:
    return sum(written_end(file) for folder in log_folders(str(store)) for file in segments(folder))


def estimated_events(files: Iterable[Path]) -> int:
    """Return about how many events the files have. A file that cannot be read counts as 0."""
    return sum(_in_parquet(file) if file.suffix == ".parquet" else _in_lines(file) for file in files)


def _in_parquet(file: Path) -> int:
    import glob

    import duckdb

    try:
        rows = duckdb.execute(
            "SELECT sum(num_rows) FROM parquet_file_metadata($1)", [glob.escape(str(file))]
        ).fetchall()
    except duckdb.Error:
        return 0  # The reader reports what is wrong with it.
    return int(rows[0][0] or 0)


def _in_lines(file: Path) -> int:
    try:
        size = file.stat().st_size
        with opened(file) as log:
            sample = log.read(_SAMPLE_BYTES)
    except (OSError, *DAMAGED):
        return 0
    except Exception as error:
        if not type(error).__module__.endswith("zstd"):
            raise
        return 0
    lines = sample.count(b"\n")
    if len(sample) < _SAMPLE_BYTES:
        return lines
    bytes_in_all = size if file.suffix == ".ndjson" else size * _COMPRESSION
    return bytes_in_all * max(lines, 1) // len(sample)
