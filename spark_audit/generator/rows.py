"""Columns of generated events, built block by block with numpy and turned into one Arrow table."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mqproof.spark_audit.generator.scenario import PRODUCERS, SKEW_US, producer_of
from mqproof.spec.events import COLUMNS

Ints = npt.NDArray[np.int64]

NONE: Final = -1
"""Stands for null in every generated column; no real value is negative."""

_PROCESS: Final = 0x2A9C
"""The process id of the first producer."""
_NUMBERS: Final = ("ts", "queue_id", "queue_offset", "commit_offset", "attempt")
_WORDS: Final = ("node", "kind", "topic", "group", "client", "status", "attr_key", "attr_value")


class Words:
    """Assigns a number to each distinct string, so that string columns stay numeric until the end."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __getitem__(self, word: str) -> int:
        return self.known.setdefault(word, len(self.known))

    def of(self, words: tuple[str, ...]) -> Ints:
        """Return an array from position in `words` to the word's number."""
        return np.array([self[word] for word in words], dtype=np.int64)


@dataclass(slots=True)
class Block:
    """Some rows. A column is an array with one value per row, one value for all rows, or absent (null)."""

    ts: Ints
    columns: dict[str, Ints | int]

    def column(self, name: str) -> Ints:
        value = self.ts if name == "ts" else self.columns.get(name, NONE)
        return value if isinstance(value, np.ndarray) else np.full(len(self.ts), value, dtype=np.int64)


class Rows:
    """Collects the blocks of one chunk."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.blocks: list[Block] = []

    def add(self, ts: Ints | int, kind: str, node: Ints | int, **columns: Ints | int) -> None:
        """Add rows. Strings are given as numbers of `words`; `message` is the message's number in the log."""
        times = np.atleast_1d(np.asarray(ts, dtype=np.int64))
        self.blocks.append(Block(times, {"kind": self.words[kind], "node": node, **columns}))

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each node."""
        names = tuple(self.words.known)
        nodes = np.concatenate([block.column("node") for block in self.blocks])
        return {names[i]: int(n) for i, n in enumerate(np.bincount(nodes)) if n}

    def table(self, seq_next: Mapping[str, int]) -> pa.Table:
        """Return the rows in time order; each node continues from `seq_next` and uses its own clock."""
        names = (*_NUMBERS, *_WORDS, "message")
        columns = {name: np.concatenate([block.column(name) for block in self.blocks]) for name in names}
        by_node = np.lexsort((columns["ts"], columns["node"]))
        columns = {name: values[by_node] for name, values in columns.items()}
        words = tuple(self.words.known)
        columns["seq"] = _number(columns["node"], {i: seq_next.get(word, 0) for i, word in enumerate(words)})
        columns["ts"] += np.array([clock_us(word) for word in words])[columns["node"]]
        by_time = np.lexsort((columns["seq"], columns["ts"]))
        columns = {name: values[by_time] for name, values in columns.items()}
        return _arrow(columns, self.words)


def clock_us(node: str) -> int:
    """Return the offset of the node's clock from true time, in microseconds."""
    return zlib.crc32(node.encode()) % (2 * SKEW_US) - SKEW_US


def message_ids(numbers: Ints) -> pa.Array:
    """Return ids like RocketMQ's unique keys: 32 characters, beginning with the producer's; null for NONE."""
    producers = pa.array([f"7F000001{_PROCESS + n:04X}" for n in range(len(PRODUCERS))])
    own, counted = producer_of(numbers), numbers // len(PRODUCERS)
    digits = pc.utf8_lpad(
        pc.cast(pa.array(counted, mask=numbers == NONE), pa.string()), width=20, padding="0"
    )
    return pc.binary_join_element_wise(producers.take(pa.array(own)), digits, "")


def _number(nodes: Ints, seq_next: Mapping[int, int]) -> Ints:
    """Return consecutive numbers within each run of equal nodes."""
    seq = np.empty(len(nodes), dtype=np.int64)
    starts = np.flatnonzero(np.diff(nodes, prepend=NONE - 1))
    for start, end in zip(starts, [*starts[1:], len(nodes)], strict=True):
        first = seq_next[int(nodes[start])]
        seq[start:end] = np.arange(first, first + end - start)
    return seq


def _arrow(columns: dict[str, Ints], words: Words) -> pa.Table:
    dictionary = pa.array(list(words.known), pa.string())

    def word(name: str) -> pa.Array:
        # Spark does not accept dictionary arrays.
        return dictionary.take(pa.array(columns[name].astype(np.int32), mask=columns[name] == NONE))

    def number(name: str, kind: str) -> pa.Array:
        return pa.array(columns[name], mask=columns[name] == NONE).cast(kind)

    rows = len(columns["ts"])
    values: dict[str, pa.Array] = {}
    for name, kind in COLUMNS.items():
        if name == "attrs":
            values[name] = _attrs(columns["attr_key"], columns["attr_value"], dictionary)
        elif name == "msg_id":
            values[name] = message_ids(columns["message"])
        elif name in columns:
            values[name] = word(name) if kind == "string" else number(name, kind)
        else:
            values[name] = pa.nulls(rows, "string" if kind == "string" else kind)
    return pa.table(values)


def _attrs(keys: Ints, values: Ints, dictionary: pa.Array) -> pa.Array:
    """Return a map column with at most one entry per row."""
    present = keys != NONE
    offsets = np.concatenate([[0], np.cumsum(present)]).astype(np.int32)
    return pa.MapArray.from_arrays(
        offsets, dictionary.take(pa.array(keys[present])), dictionary.take(pa.array(values[present]))
    )
