"""Writes a folder of columns in bounded memory: block by block, at the end of the files of a queue."""

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from mqproof.conformance.history.columns.encoding import Array, encode_numbers, encode_texts
from mqproof.conformance.history.columns.tables import PREVIOUS, TABLES, Block, Header

_BLOCK_ROWS: Final = 1 << 20
"""The number of rows in memory, of all tables together."""


class Writer:
    """A folder of columns that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str | int, int] = {}
        self.queues: dict[str, int] = {}
        self.lines = 0
        self._rows: dict[tuple[int, str], list[Sequence[Any]]] = defaultdict(list)
        self._pending = 0

    def name(self, name: str | int) -> int:
        """Return the number of a name. 0 and False, or 1 and True, do not occur together."""
        return self.names.setdefault(name, len(self.names))

    def queue(self, name: str) -> int:
        return self.queues.setdefault(name, len(self.queues))

    def add(self, queue: int, table: str, *row: Any) -> None:
        """Add a row, with the values of its columns in their order."""
        self._rows[queue, table].append(row)
        self._pending += 1
        if self._pending >= _BLOCK_ROWS:
            self._flush()

    def _flush(self) -> None:
        for (queue, table), rows in self._rows.items():
            add_block(self.folder, queue, table, dict(arrays(table, rows)))
        self._rows.clear()
        self._pending = 0

    def finish(self) -> None:
        """Write the last blocks, and the header."""
        self._flush()
        write_header(self.folder, Header(names=list(self.names), queues=list(self.queues), lines=self.lines))


def write_header(folder: Path, header: Header) -> None:
    (folder / "columns.json").write_bytes(msgspec.json.encode(header))


def arrays(table: str, rows: list[Sequence[Any]]) -> Iterator[tuple[str, Array]]:
    """Yield the columns of some rows; a text has the width of the longest one."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(TABLES[table])
    for (name, column), values in zip(TABLES[table].items(), columns, strict=True):
        yield name, np.array(values, column.type if values or column.type != "S" else "S1")


def add_block(folder: Path, queue: int, table: str, values: Mapping[str, Array]) -> None:
    """Add rows to a table of a queue: at least one."""
    numbers, texts, parts = {}, {}, []
    for name, column in TABLES[table].items():
        if column.type == "S":
            text, data = encode_texts(values[name])
            texts[name] = replace(text, checksum=zlib.crc32(data))
        else:
            counted = values[name].astype(np.int64)
            if column.since not in ("", PREVIOUS):
                counted = counted - values[column.since]
            number, data = encode_numbers(counted, is_steps=column.since == PREVIOUS)
            numbers[name] = replace(number, checksum=zlib.crc32(data))
        parts.append(data)
    block = Block(table, len(next(iter(values.values()))), numbers, texts)
    with (folder / f"{queue}.bytes").open("ab") as file:
        file.writelines(parts)
    with (folder / f"{queue}.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(block) + b"\n")
