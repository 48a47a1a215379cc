"""The format of columns: which tables a folder has, and their validated arrays.

    columns.json             the header: names, queues
    rest.jsonl               all lines that are not in columns, by index
    lines/time.npy           the time of each line, by index
    lines/process.npy        its process
    0/sends/start.npy ...    the tables of the first queue, one file for each column

Columns contain the operations of applications' queues whose outcome is the usual one: sends answered SEND_OK
at the first attempt, polls, listener calls that succeeded, and commits. Names are numbers: places in the list
of names. A text column has a fixed width, without NUL.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from mqproof.conformance.history.lines import HistoryError
from mqproof.conformance.history.record import is_own

SCHEMA: Final = 1
Array = npt.NDArray[Any]
POLL: Final = 0
CONSUME: Final = 1
NUMBER_MAX: Final = 1 << 60
"""Larger numbers are refused, so that no sum overflows."""
QUEUES_MAX: Final = 1 << 16

LINES: Final = {"time": "<i8", "process": "<i4"}
TABLES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "sends": {"start": "<i8", "end": "<i8", "offset": "<i8", "count": "<i4", "offset_id": "S"},
        "messages": {"id": "S", "body": "S", "tag": "S", "key": "S"},
        "reads": {
            "kind": "|u1", "start": "<i8", "end": "<i8", "group": "<i4", "client": "<i4", "node": "<i4",
            "offset": "<i8", "next": "<i8", "max": "<i8", "count": "<i4",
        },
        "delivered": {"content": "<i8"},
        "contents": {
            "offset": "<i8", "id": "S", "body": "S", "tag": "S", "key": "S", "born": "<i8", "stored": "<i8",
            "offset_id": "S",
        },
        "commits": {"start": "<i8", "end": "<i8", "group": "<i4", "client": "<i4", "offset": "<i8"},
    }
)  # fmt: skip
"""The columns of each table of a queue. `S` is a text.

`messages` has the messages of the sends, in their order; `delivered` the messages of the reads, as numbers of
rows of `contents`. A content may occur several times. A client of -1 is the process of the operation. The
offset of a listener call is -1, as are its `next` and `max`.
"""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of columns.json."""

    schema: int = SCHEMA
    names: list[str | int]
    """Processes, clients, groups and nodes."""
    queues: list[str]


class Table:
    """The columns of one table as attributes."""

    def __init__(self, columns: Mapping[str, Array]) -> None:
        self.__dict__.update(columns)
        self.rows = len(next(iter(columns.values())))

    def __getattr__(self, name: str) -> Array:
        raise AttributeError(name)


class Queue(NamedTuple):
    """The tables of one queue."""

    name: str
    sends: Table
    messages: Table
    reads: Table
    delivered: Table
    contents: Table
    commits: Table

    @property
    def operations(self) -> int:
        return self.sends.rows + self.reads.rows + self.commits.rows

    @property
    def is_poll(self) -> Array:
        """Whether each read is a poll."""
        found: Array = self.reads.kind == POLL
        return found

    @property
    def read_at(self) -> Array:
        """The line at which each read has its messages: the end of a poll, or the begin of a call."""
        return np.where(self.is_poll, self.reads.end, self.reads.start)


class Columns:
    """A folder of columns. Arrays are mapped from the files, and validated when they are first used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.header = _header(folder / "columns.json")
        self.names, self.queues = self.header.names, self.header.queues
        self.lines = _table(folder / "lines", LINES)
        _expect(self.lines.process, 0, len(self.names), folder / "lines" / "process.npy")
        self.texts = _first_of_text(self.names)
        """For each name, the first name of the same text: the process 3 is the client `3`."""

    @property
    def rest(self) -> Path:
        return self.folder / "rest.jsonl"

    def queue(self, number: int) -> Queue:
        """Return a queue.

        Raises:
            HistoryError: a column is not valid; the message names its file.
        """
        folder = self.folder / str(number)
        tables = {name: _table(folder / name, columns) for name, columns in TABLES.items()}
        queue = Queue(self.queues[number], **tables)
        lines, names = self.lines.rows, len(self.names)
        for name, table in tables.items():
            for column, (low, high) in _bounds(queue, lines, names).get(name, {}).items():
                _expect(getattr(table, column), low, high, folder / name / f"{column}.npy")
        for counts, rows, file in (
            (queue.sends.count, queue.messages.rows, folder / "sends" / "count.npy"),
            (queue.reads.count, queue.delivered.rows, folder / "reads" / "count.npy"),
        ):
            if (found := int(counts.sum(dtype=np.int64))) != rows:
                raise HistoryError(f"{file}: the sum is {found}, expected {rows}, the rows that it counts")
        for name in ("sends", "reads", "commits"):
            table, process = tables[name], self.lines.process
            if not (table.start < table.end).all():
                raise HistoryError(f"{folder / name / 'end.npy'}: an operation ends before it begins")
            if not (process[table.start] == process[table.end]).all():
                raise HistoryError(f"{folder / name / 'end.npy'}: an operation ends in another process")
        return queue


def _bounds(queue: Queue, lines: int, names: int) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the lower bound of numbers, and the bound that they do not reach, by table and column."""
    line, name, number = (0, lines), (0, names), (0, NUMBER_MAX)
    client, stated = (-1, names), (-1, NUMBER_MAX)
    return {
        "sends": {"start": line, "end": line, "offset": number, "count": (1, queue.messages.rows + 1)},
        "reads": {
            "kind": (POLL, CONSUME + 1), "start": line, "end": line, "group": name, "client": client,
            "node": client, "offset": stated, "next": stated, "max": stated,
            "count": (0, queue.delivered.rows + 1),
        },
        "delivered": {"content": (0, queue.contents.rows)},
        "contents": {"offset": number, "born": number, "stored": number},
        "commits": {"start": line, "end": line, "group": name, "client": client, "offset": number},
    }  # fmt: skip


def _header(file: Path) -> Header:
    try:
        header = msgspec.json.decode(file.read_bytes(), type=Header)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise HistoryError(f"{file}: not a header of columns: {error}") from None
    if header.schema != SCHEMA:
        raise HistoryError(f"{file}: schema {header.schema}, expected {SCHEMA}")
    if len(set(header.queues)) < len(header.queues) or not all(map(is_own, header.queues)):
        raise HistoryError(f"{file}: queues: expected different queues of applications' topics")
    if len(header.queues) > QUEUES_MAX:
        raise HistoryError(f"{file}: {len(header.queues)} queues, at most {QUEUES_MAX} expected")
    if len({(type(name), name) for name in header.names}) < len(header.names):
        raise HistoryError(f"{file}: names: a name occurs twice")
    return header


def _first_of_text(names: list[str | int]) -> Array:
    first: dict[str, int] = {}
    return np.array([first.setdefault(str(name), place) for place, name in enumerate(names)], np.int64)


def _table(folder: Path, columns: Mapping[str, str]) -> Table:
    found: dict[str, Array] = {}
    rows = -1
    for name, kind in columns.items():
        file = folder / f"{name}.npy"
        array = _load(file)
        is_text = array.dtype.kind == "S" and array.dtype.itemsize > 0
        is_kind = is_text if kind == "S" else array.dtype == np.dtype(kind)
        if not is_kind or array.ndim != 1:
            wanted = "one dimension of bytes" if kind == "S" else f"one dimension of {kind}"
            raise HistoryError(f"{file}: {array.ndim} dimensions of {array.dtype.str}, expected {wanted}")
        if rows not in (-1, len(array)):
            raise HistoryError(f"{file}: {len(array)} rows, expected {rows} as in the other columns")
        rows = len(array)
        found[name] = array
    return Table(found)


def _load(file: Path) -> Array:
    try:
        array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        if error.filename is None:
            raise HistoryError(f"{file}: not an array of numpy: {error}") from None
        raise
    except Exception as error:  # numpy parses the header as Python, with many errors
        raise HistoryError(f"{file}: not an array of numpy: {error}") from None
    if not isinstance(array, np.ndarray):
        raise HistoryError(f"{file}: not an array of numpy")
    return array


def _expect(array: Array, low: int, high: int, file: Path) -> None:
    """Raise HistoryError unless all numbers are in [low, high)."""
    if len(array) and (array.min() < low or array.max() >= high):
        found = int(array.min()) if array.min() < low else int(array.max())
        raise HistoryError(f"{file}: {found}, expected {low} to {high - 1}")
