"""The format of columns: which tables a folder has, and their validated arrays.

    columns.json             the header: names, queues, the number of lines
    rest.jsonl               all lines that are not in columns, by index
    0.jsonl                  the blocks of the first queue, which describe the bytes of its columns
    0.bytes                  these bytes

Columns contain the operations of applications' queues whose outcome is the usual one: sends answered SEND_OK
at the first attempt, polls, listener calls that succeeded, and commits. Names are numbers: places in the list
of names. A block has some rows of one table, and a table is all its blocks, one after the other. A column
of texts has a fixed width in each block, without NUL. A column is decoded when it is first used, so that no
more than one queue is in memory.
"""

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec
import numpy as np

from mqproof.conformance.history.columns.encoding import Array, Numbers, Texts, decode_numbers, decode_texts
from mqproof.conformance.history.lines import HistoryError
from mqproof.conformance.history.record import is_own

SCHEMA: Final = 2
POLL: Final = 0
CONSUME: Final = 1
NUMBER_MAX: Final = 1 << 60
"""Larger numbers are refused, so that no sum overflows."""
TIME_MAX: Final = (1 << 63) - 1
QUEUES_MAX: Final = 1 << 16
BLOCK_ROWS_MAX: Final = 1 << 20
LINES_MAX: Final = 1 << 40
PREVIOUS: Final = "the row before"


class Column(NamedTuple):
    """The type of a column in memory, and what its numbers on disk are counted from."""

    type: str
    """`S` is a text."""
    since: str = ""
    """Another column, the row before, or 0."""


_TEXT: Final = Column("S")
_NUMBER: Final = Column("<i8")
_RISING: Final = Column("<i8", PREVIOUS)
_NAME: Final = Column("<i4")
_SPAN: Final = {
    "end": _RISING,
    "start": Column("<i8", "end"),
    "ended": _RISING,
    "began": Column("<i8", "ended"),
    "process": _NAME,
}
TABLES: Final[Mapping[str, Mapping[str, Column]]] = MappingProxyType(
    {
        "sends": {**_SPAN, "offset": _RISING, "count": _NAME, "message": _RISING, "offset_id": _RISING},
        "reads": {
            **_SPAN, "kind": Column("|u1"), "group": _NAME, "client": _NAME, "node": _NAME, "offset": _NUMBER,
            "next": Column("<i8", "offset"), "max": Column("<i8", "next"), "count": _NAME,
        },
        "commits": {**_SPAN, "group": _NAME, "client": _NAME, "offset": _RISING},
        "delivered": {"content": _RISING},
        "contents": {
            "message": _RISING, "offset": _RISING, "stored": _RISING, "born": Column("<i8", "stored"),
            "offset_id": _RISING,
        },
        "messages": {"id": _TEXT, "body": _TEXT, "tag": _TEXT, "key": _TEXT},
        "offset_ids": {"text": _TEXT},
    }
)  # fmt: skip
"""The columns of each table of a queue.

Operations are in the order of their ends. `message` is a row of `messages`: the first one of a send, or that
of a content. `offset_id` is a row of `offset_ids`, -1 if there is none. `delivered` has the messages of the
reads, as rows of `contents`. A content, message or offset id may occur several times. A client of -1 is the
process of the operation. The offset of a listener call is -1, as are its `next` and `max`.
"""
OPERATIONS: Final = ("sends", "reads", "commits")


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of columns.json."""

    schema: int = SCHEMA
    names: list[str | int]
    """Processes, clients, groups and nodes."""
    queues: list[str]
    lines: int
    """The number of lines of the whole history."""


class _Version(msgspec.Struct):
    schema: int


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some rows of a table: how each column is stored. The bytes are in the order of the columns."""

    table: str
    rows: int
    numbers: dict[str, Numbers] = {}
    texts: dict[str, Texts] = {}

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each column, in their order."""
        forms: dict[str, Any] = {**self.numbers, **self.texts}
        widths = {name: len(form.at) if name in self.texts else form.width for name, form in forms.items()}
        return {name: self.rows * widths[name] for name in TABLES[self.table]}


class _Placed(NamedTuple):
    """A block, and the place and number of the bytes of each column."""

    block: Block
    at: dict[str, tuple[int, int]]


class Table:
    """The columns of some blocks of a table, as attributes that are read when they are first used."""

    def __init__(self, file: Path, name: str, blocks: list[_Placed]) -> None:
        self.file, self.name, self._blocks = file, name, blocks
        self.rows = sum(each.block.rows for each in blocks)

    def blocks_from_last(self) -> Iterator["Table"]:
        yield from (Table(self.file, self.name, [each]) for each in reversed(self._blocks))

    def __getattr__(self, name: str) -> Array:
        column = TABLES[self.name].get(name)
        if column is None:
            raise AttributeError(name)
        with self.file.open("rb") as file:
            if column.type == "S":
                parts = [self._texts(file, each, name) for each in self._blocks]
                found: Array = np.concatenate(parts) if parts else np.empty(0, "S1")
            else:
                found = self._numbers(file, name, column)
        self.__dict__[name] = found
        return found

    def _texts(self, file: BinaryIO, placed: _Placed, name: str) -> Array:
        form = placed.block.texts[name]
        return decode_texts(form, self._bytes(file, placed, name, form), placed.block.rows)

    def _numbers(self, file: BinaryIO, name: str, column: Column) -> Array:
        found, at = np.empty(self.rows, column.type), 0
        for placed in self._blocks:
            form, rows = placed.block.numbers[name], placed.block.rows
            data = self._bytes(file, placed, name, form)
            try:
                decode_numbers(form, data, found[at : at + rows], is_steps=column.since == PREVIOUS)
            except OverflowError as error:
                raise HistoryError(
                    f"{self.file}: {self.name}.{name}: {error}, expected {column.type}"
                ) from None
            at += rows
        if column.since not in ("", PREVIOUS):
            found += getattr(self, column.since)
        return found

    def _bytes(self, file: BinaryIO, placed: _Placed, name: str, form: Numbers | Texts) -> bytes:
        place, size = placed.at[name]
        file.seek(place)
        data = file.read(size)
        if len(data) != size or zlib.crc32(data) != form.checksum:
            raise HistoryError(f"{self.file}: {self.name}.{name}: the bytes do not have their checksum")
        return data


class Queue(NamedTuple):
    """The tables of one queue."""

    name: str
    sends: Table
    reads: Table
    commits: Table
    delivered: Table
    contents: Table
    messages: Table
    offset_ids: Table

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
    """A folder of columns, whose queues are read one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.header = _header(folder / "columns.json")
        self.names, self.queues, self.lines = self.header.names, self.header.queues, self.header.lines
        self.texts = _first_of_text(self.names)
        """For each name, the first name of the same text: the process 3 is the client `3`."""

    @property
    def rest(self) -> Path:
        return self.folder / "rest.jsonl"

    def tables(self, number: int) -> Queue:
        """Return a queue whose numbers are not yet validated."""
        return Queue(self.queues[number], **_tables(self.folder, number))

    def queue(self, number: int) -> Queue:
        """Return a queue.

        Raises:
            HistoryError: a column is not valid; the message names it.
        """
        queue = self.tables(number)
        where = f"{self.folder / str(number)}.bytes"
        for name in OPERATIONS:
            expect_spans(getattr(queue, name), self.lines, len(self.names))
        for name, columns in _bounds(queue, len(self.names)).items():
            for column, (low, high) in columns.items():
                expect_between(getattr(getattr(queue, name), column), low, high, f"{where}: {name}.{column}")
        _expect_rows(queue, where)
        return queue


def expect_spans(table: Table, lines: int, names: int) -> None:
    """Raise HistoryError unless operations begin before their ends, which rise and are before a line.

    Whether each line is that of one operation is not examined.
    """
    line, time = (0, lines), (0, TIME_MAX)
    bounds = {"end": line, "start": line, "ended": time, "began": time, "process": (0, names)}
    for column, (low, high) in bounds.items():
        expect_between(getattr(table, column), low, high, f"{table.file}: {table.name}.{column}")
    if not (table.start < table.end).all():
        raise HistoryError(f"{table.file}: {table.name}.end: an operation ends before it begins")
    if not (table.end[:-1] < table.end[1:]).all():
        raise HistoryError(f"{table.file}: {table.name}.end: operations are not in the order of their ends")


def _bounds(queue: Queue, names: int) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the lower bound of numbers, and the bound that they do not reach, by table and column."""
    name, number = (0, names), (0, NUMBER_MAX)
    client, stated = (-1, names), (-1, NUMBER_MAX)
    message, offset_id = (0, queue.messages.rows), (-1, queue.offset_ids.rows)
    return {
        "sends": {
            "offset": number, "count": (1, queue.messages.rows + 1), "message": message,
            "offset_id": offset_id,
        },
        "reads": {
            "kind": (POLL, CONSUME + 1), "group": name, "client": client, "node": client,
            "offset": stated, "next": stated, "max": stated, "count": (0, queue.delivered.rows + 1),
        },
        "commits": {"group": name, "client": client, "offset": number},
        "delivered": {"content": (0, queue.contents.rows)},
        "contents": {
            "message": message, "offset": number, "born": number, "stored": number, "offset_id": offset_id,
        },
    }  # fmt: skip


def _expect_rows(queue: Queue, where: str) -> None:
    """Raise HistoryError unless each row that an operation counts exists, and each row is used."""
    sends, reads, contents = queue.sends, queue.reads, queue.contents
    if (found := int(reads.count.sum(dtype=np.int64))) != queue.delivered.rows:
        rows = queue.delivered.rows
        raise HistoryError(f"{where}: reads.count: the sum is {found}, expected {rows}, the rows it counts")
    end, rows = sends.message + sends.count, queue.messages.rows
    if not (end[:-1] <= sends.message[1:]).all() or (end[-1:] > rows).any():
        raise HistoryError(f"{where}: sends.count: a message belongs to two sends, or to no row")
    if sends.count.sum(dtype=np.int64) < rows:
        is_sent = np.zeros(rows + 1, np.int8)
        is_sent[sends.message] += 1
        is_sent[end] -= 1
        _expect_all_used(is_sent.cumsum()[:-1] > 0, contents.message, f"{where}: messages")
    is_used = np.zeros(queue.offset_ids.rows + 1, bool)  # the last place stands for a row of -1
    is_used[sends.offset_id] = True
    _expect_all_used(is_used[:-1], contents.offset_id[contents.offset_id >= 0], f"{where}: offset_ids")


def _expect_all_used(is_used: Array, others: Array, where: str) -> None:
    is_used[others] = True
    if not is_used.all():
        raise HistoryError(f"{where}: row {int(is_used.argmin())} is not used")


def _header(file: Path) -> Header:
    text = file.read_bytes()
    try:
        schema = msgspec.json.decode(text, type=_Version).schema
        if schema != SCHEMA:
            raise HistoryError(
                f"{file}: schema {schema}, expected {SCHEMA}; write the columns again, from their lines:"
                " mqproof convert-history h.jsonl h.columns --to columns"
            )
        header = msgspec.json.decode(text, type=Header)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise HistoryError(f"{file}: not a header of columns: {error}") from None
    if len(set(header.queues)) < len(header.queues) or not all(map(is_own, header.queues)):
        raise HistoryError(f"{file}: queues: expected different queues of applications' topics")
    if len(header.queues) > QUEUES_MAX:
        raise HistoryError(f"{file}: {len(header.queues)} queues, at most {QUEUES_MAX} expected")
    if len({(type(name), name) for name in header.names}) < len(header.names):
        raise HistoryError(f"{file}: names: a name occurs twice")
    if not 0 <= header.lines <= LINES_MAX:
        raise HistoryError(f"{file}: lines: {header.lines}, expected 0 to {LINES_MAX}")
    return header


def _first_of_text(names: list[str | int]) -> Array:
    first: dict[str, int] = {}
    return np.array([first.setdefault(str(name), place) for place, name in enumerate(names)], np.int64)


def _tables(folder: Path, number: int) -> dict[str, Table]:
    index, file = folder / f"{number}.jsonl", folder / f"{number}.bytes"
    try:
        blocks = msgspec.json.Decoder(Block).decode_lines(index.read_bytes())
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise HistoryError(f"{index}: not blocks of columns: {error}") from None
    placed: dict[str, list[_Placed]] = {name: [] for name in TABLES}
    place = 0
    for block in blocks:
        _expect_block(block, index)
        at = {}
        for name, size in block.sizes().items():
            at[name] = place, size
            place += size
        placed[block.table].append(_Placed(block, at))
    if place != (found := file.stat().st_size):
        raise HistoryError(f"{file}: {found} bytes, expected {place}")
    return {name: Table(file, name, each) for name, each in placed.items()}


def _expect_block(block: Block, index: Path) -> None:
    if block.table not in TABLES:
        raise HistoryError(f"{index}: table {block.table}, expected {', '.join(TABLES)}")
    columns = TABLES[block.table]
    texts = {name for name, column in columns.items() if column.type == "S"}
    if set(block.texts) != texts or set(block.numbers) != set(columns) - texts:
        raise HistoryError(f"{index}: {block.table}: expected the columns {', '.join(columns)}")
    if not 0 < block.rows <= BLOCK_ROWS_MAX:
        raise HistoryError(f"{index}: {block.table}: {block.rows} rows, expected 1 to {BLOCK_ROWS_MAX}")
    for name, form in block.texts.items():
        if not all(0 <= place < len(form.text) for place in form.at):
            raise HistoryError(f"{index}: {block.table}.{name}: a place outside of the text")


def expect_between(array: Array, low: int, high: int, where: str) -> None:
    """Raise HistoryError unless all numbers are in [low, high)."""
    if len(array) and (array.min() < low or array.max() >= high):
        found = int(array.min()) if array.min() < low else int(array.max())
        raise HistoryError(f"{where}: {found}, expected {low} to {high - 1}")
