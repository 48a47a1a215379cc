"""Parquet files of an event log, and their splits: neighbouring row groups, packed into tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from mqproof.spark_audit.sources.packing import pack

_SPLIT_BYTES: Final = 64 << 20
"""The size of a split of a file with several row groups, unless one row group is larger."""

ROW: Final = "file_row_number"
"""DuckDB's name for the position of a row in its file."""


class SplitError(RuntimeError):
    """A file cannot be read. The message names it."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A Parquet file of events, at a path that every executor can access."""

    path: Path
    marks: str | None = None
    """A column that is not null in rows that are not events."""
    groups: tuple[int, ...] | None = None
    """The row groups to use; None: all of them."""


@dataclass(frozen=True, slots=True)
class Split:
    """Neighbouring row groups of a file."""

    file: LogFile
    groups: range
    begin: int
    end: int
    """The range of its rows, by position in the file."""
    bytes: int
    number: int = 0
    """Number of its first row group, counted through all files."""


Tasks = Sequence[Sequence[Split]]


def splits_of(files: Sequence[LogFile]) -> tuple[Split, ...]:
    """Split the files between row groups."""
    cut: list[Split] = []
    before = 0
    for file in files:
        metadata = pq.read_metadata(file.path)
        cut += _cut(file, metadata, before)
        before += metadata.num_row_groups
    return tuple(cut)


def _cut(file: LogFile, metadata: pq.FileMetaData, before: int) -> Iterator[Split]:
    wanted = range(metadata.num_row_groups) if file.groups is None else file.groups
    begins = [0]
    for number in range(metadata.num_row_groups):
        begins.append(begins[-1] + metadata.row_group(number).num_rows)
    for together in _together([(number, _size(metadata.row_group(number))) for number in wanted]):
        groups = range(together[0][0], together[-1][0] + 1)
        size = sum(size for _, size in together)
        yield Split(file, groups, begins[groups.start], begins[groups.stop], size, before + groups.start)


def _size(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def _together(groups: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Group (number, bytes) of neighbouring row groups, as many as fit into a split."""
    held: list[tuple[int, int]] = []
    for number, size in groups:
        if held and (number != held[-1][0] + 1 or sum(own for _, own in held) + size > _SPLIT_BYTES):
            yield held
            held = []
        held.append((number, size))
    if held:
        yield held


def by_task(cut: Sequence[Split], cores: int) -> Tasks:
    """Pack small neighbouring splits into tasks, but leave work for every core.

    Starting a task costs more than reading a small split.
    """
    return pack(cut, min(_SPLIT_BYTES, -(-sum(split.bytes for split in cut) // cores)))
