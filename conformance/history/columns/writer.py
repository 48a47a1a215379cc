"""Writes a folder of columns in bounded memory.

Rows go to files of one block each, which are joined at the end.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, repeat
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from mqproof.conformance.history.columns.tables import LINES, TABLES, Array, Header

_BLOCK_ROWS: Final = 1 << 20
"""The number of rows in memory, of all tables together."""


class Writer:
    """A folder of columns that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str | int, int] = {}
        self.queues: dict[str, int] = {}
        self._rows: dict[tuple[int, str], list[Sequence[Any]]] = defaultdict(list)
        self._pending = 0
        self._blocks = count()
        self._blocks_folder = folder / "blocks"

    def name(self, name: str | int) -> int:
        """Return the number of a name. 0 and False, or 1 and True, do not occur together."""
        return self.names.setdefault(name, len(self.names))

    def line(self, time: int, process: str | int) -> None:
        """Add the next line of the history."""
        self._add(-1, "lines", (time, self.name(process)))

    def queue(self, name: str) -> int:
        return self.queues.setdefault(name, len(self.queues))

    def add(self, queue: int, table: str, *row: Any) -> None:
        """Add a row, with the values of its columns in their order."""
        self._add(queue, table, row)

    def _add(self, queue: int, table: str, row: Sequence[Any]) -> None:
        self._rows[queue, table].append(row)
        self._pending += 1
        if self._pending >= _BLOCK_ROWS:
            self._flush()

    def _flush(self) -> None:
        block = next(self._blocks)
        for (queue, table), rows in self._rows.items():
            folder = self._blocks_folder / str(queue) / table
            for name, array in _arrays(table, rows):
                _save(folder / f"{name}.{block:06}.npy", array)
        self._rows.clear()
        self._pending = 0

    def finish(self) -> None:
        """Join the blocks, and write the header."""
        is_long = self._blocks_folder.exists()
        if is_long:
            self._flush()
        for queue, name in [(-1, "lines"), *((q, t) for q in self.queues.values() for t in TABLES)]:
            folder = self.folder / name if queue < 0 else self.folder / str(queue) / name
            for column, array in _arrays(name, self._rows.pop((queue, name), [])):
                file = folder / f"{column}.npy"
                found = (self._blocks_folder / str(queue) / name).glob(f"{column}.*") if is_long else ()
                if blocks := sorted(found):
                    _join(blocks, file)
                else:
                    _save(file, array)
        shutil.rmtree(self._blocks_folder, ignore_errors=True)
        header = Header(names=list(self.names), queues=list(self.queues))
        (self.folder / "columns.json").write_bytes(msgspec.json.encode(header))


def _arrays(table: str, rows: list[Sequence[Any]]) -> Iterator[tuple[str, Array]]:
    """Yield the columns of some rows; a text has the width of the longest one."""
    columns = LINES if table == "lines" else TABLES[table]
    values = zip(*rows, strict=True) if rows else repeat(())
    for (name, kind), column in zip(columns.items(), values, strict=False):
        yield name, np.array(column, kind if column or kind != "S" else "S1")


def _save(file: Path, array: Array) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, array, allow_pickle=False)


def _join(blocks: list[Path], file: Path) -> None:
    """Write the blocks of a column to one file; texts get the width of the longest."""
    parts: list[Array] = [np.load(block, mmap_mode="r", allow_pickle=False) for block in blocks]
    widest = max((part.dtype for part in parts), key=lambda dtype: dtype.itemsize)
    file.parent.mkdir(parents=True, exist_ok=True)
    joined = np.lib.format.open_memmap(file, "w+", widest, (sum(map(len, parts)),))
    at = 0
    for part in parts:
        joined[at : at + len(part)] = part
        at += len(part)
    joined.flush()
