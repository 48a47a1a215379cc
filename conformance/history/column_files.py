"""Reads a history in columns for its verifier, and refuses it unless each line belongs to one operation.

docs/reference/history-format.md describes the files. This module shares no code with the rest of mqproof's
readers: it uses numpy and json.
"""

import json
from base64 import b64decode
from collections.abc import Container, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from mqproof.conformance.history.verification import RefusedError

SPAN = ("end", "start", "ended", "began", "process")
TABLES = {
    "sends": (*SPAN, "offset", "count", "message", "offset_id"),
    "reads": (*SPAN, "kind", "group", "client", "node", "offset", "next", "max", "count"),
    "commits": (*SPAN, "group", "client", "offset"),
    "delivered": ("content",), "contents": ("message", "offset", "stored", "born", "offset_id"),
    "messages": ("id", "body", "tag", "key"), "offset_ids": ("text",),
}  # fmt: skip
SINCE = {"start": "end", "began": "ended", "next": "offset", "max": "next", "born": "stored"}
STEPS = {"end", "ended", "message", "offset_id", "content", "stored"}
BEGIN, END, ALONE = 1, 2, 3
WINDOW, BLOCK = 1 << 28, 1 << 20
Line = dict[str, Any]


def expect(holds: object, otherwise: str) -> None:
    """Raise RefusedError unless a condition holds."""
    if not holds:
        raise RefusedError(otherwise)


def numbers(table: str, name: str, form: list[int], data: bytes, rows: int) -> Any:
    """Return the numbers of a column of a block."""
    width, base, factor, first, _ = form
    stored = np.frombuffer(data, f"<u{width}") if width else np.zeros(rows, np.uint8)
    found = stored.astype(np.int64) * factor + base
    if name in STEPS or (name == "offset" and table != "reads"):
        found[0] = first
        found = np.cumsum(found)
    return found


def texts(form: list[Any], data: bytes, rows: int) -> Any:
    """Return the texts of a column of a block."""
    shared = np.frombuffer(b64decode(form[0]), np.uint8)
    letters = np.tile(shared, (rows, 1))
    letters[:, form[1]] = np.frombuffer(data, np.uint8).reshape(rows, len(form[1]))
    return letters.view(f"S{len(shared)}").ravel()


def table(file: Path, name: str, columns: tuple[str, ...] = ()) -> Any:
    """Return columns of a table, or all, as attributes."""
    none = np.array([], "S1" if name in ("messages", "offset_ids") else np.int64)
    parts: dict[str, list[Any]] = {column: [none] for column in columns or TABLES[name]}
    with file.with_suffix(".jsonl").open("rb") as index, file.open("rb") as data:
        for block in map(json.loads, index):
            count, forms = block["rows"], {**block["numbers"], **block["texts"]}
            for column in TABLES[block["table"]]:
                form, is_text = forms[column], column in block["texts"]
                stored = data.read(count * (len(form[1]) if is_text else form[0]))
                if block["table"] != name or column not in parts:
                    continue
                found = texts(form, stored, count) if is_text else numbers(name, column, form, stored, count)
                parts[column].append(found if column not in SINCE else found + parts[SINCE[column]][-1])
    return SimpleNamespace(**{column: np.concatenate(found) for column, found in parts.items()})


def resolved(tables: dict[str, Any]) -> Any:
    """Return the tables of a queue with texts instead of rows, and messages in the order of the sends."""
    queue, ids = SimpleNamespace(**tables), np.append(tables["offset_ids"].text, b"")  # -1 is the last: none
    sends, contents, messages = queue.sends, queue.contents, queue.messages
    row = np.repeat(sends.message - np.cumsum(sends.count) + sends.count, sends.count)
    row += np.arange(len(row))
    queue.messages = SimpleNamespace(**{name: column[row] for name, column in vars(messages).items()})
    vars(contents).update({name: column[contents.message] for name, column in vars(messages).items()})
    for each in (sends, contents):
        each.offset_id = ids[each.offset_id]
    return queue


def values(column: Any) -> list[Any]:
    """Return the values of a column, with texts as str."""
    found: list[Any] = column.tolist()
    return [text.decode() for text in found] if column.dtype.kind == "S" else found


def rows(table: Any) -> list[Line]:
    """Return the rows of a table by the names of its columns."""
    columns = map(values, vars(table).values())
    return [dict(zip(vars(table), row, strict=True)) for row in zip(*columns, strict=True)]


class Columns:
    """A folder of columns, whose queues are read one at a time."""

    def __init__(self, folder: Path) -> None:
        head = json.loads((folder / "columns.json").read_bytes())
        expect(head["schema"] == 2, f"schema {head['schema']}, expected 2")
        self.folder, self.queues, self.names, self.size = folder, head["queues"], head["names"], head["lines"]
        self.texts, self.last_time = [str(name) for name in self.names], 0
        self.rest = [json.loads(line) for line in (folder / "rest.jsonl").read_bytes().splitlines()]

    def file(self, name: str) -> Path:
        expect(name in self.queues, f"the columns have no queue {name}")
        return self.folder / f"{self.queues.index(name)}.bytes"

    def queue(self, name: str) -> Any:
        return resolved({each: table(self.file(name), each) for each in TABLES})

    def spans(self) -> Iterator[tuple[str, Any]]:
        """Yield the lines of the operations of each table of each queue."""
        for name in self.queues:
            yield from ((name, table(self.file(name), each, SPAN)) for each in ("sends", "reads", "commits"))

    def besides(self, regular: Container[str]) -> tuple[list[Line], list[Line]]:
        """Return all lines but those of regular queues, and the outlines of these.

        Columns that are not a history are refused.
        """
        count, names = len(self.rest), {name: number for number, name in enumerate(self.names)}
        processes = [names.setdefault(line["process"], len(names)) for line in self.rest]
        for name, each in self.spans():
            is_sound = (each.start >= 0) & (each.start < each.end) & (each.end < self.size)
            expect(is_sound.all(), f"{name}: the lines of an operation do not belong together")
            count += 2 * len(each.start)
        expect(count == self.size, "a line is missing, or belongs to two operations")
        self.last_time, is_busy = 0, bytearray(len(names))
        for low in range(0, self.size, WINDOW):
            self.examine(low, min(low + WINDOW, self.size), processes, is_busy)
        whole, outlines = list(self.rest), list[Line]()
        for name in self.queues:
            queue = self.queue(name)
            if name in regular:
                outlines += self.outline(name, queue)
            else:
                whole += self.whole(name, queue)
        return whole, outlines

    def examine(self, low: int, high: int, processes: list[int], is_busy: bytearray) -> None:
        """Refuse missing lines, times that go back, and processes with several operations at a time."""
        role, time, process = (np.zeros(high - low, kind) for kind in (np.uint8, np.int64, np.int32))
        for line, number in zip(self.rest, processes, strict=True):
            if low <= (index := line["index"]) < high:
                what = (
                    ALONE if line["f"] in ("setup", "fault") else BEGIN if line["type"] == "invoke" else END
                )
                role[index - low], time[index - low], process[index - low] = what, line["time"], number
        for _, each in self.spans():
            for index, at, what in ((each.start, each.began, BEGIN), (each.end, each.ended, END)):
                is_here = (index >= low) & (index < high)
                place = index[is_here] - low
                role[place], time[place], process[place] = what, at[is_here], each.process[is_here]
        expect(role.all(), "a line is missing, or belongs to two operations")
        expect((np.diff(time, prepend=self.last_time) >= 0).all(), "time goes back")
        self.last_time = int(time[-1])
        for begin in range(0, len(role), BLOCK):
            block = slice(begin, begin + BLOCK)
            for number, what in zip(process[block].tolist(), role[block].tolist(), strict=True):
                if what != ALONE:
                    expect(is_busy[number] == (what == END), "a process has several operations at a time")
                    is_busy[number] = what == BEGIN

    def lines(self, f: str, row: Line, asked: Line, answered: Line) -> Iterator[Line]:
        """Yield the two lines of an operation that succeeded."""
        process = self.names[row["process"]]
        for index, time, type_, value in (
            (row["start"], row["began"], "invoke", asked), (row["end"], row["ended"], "ok", answered),
        ):  # fmt: skip
            yield {"index": index, "time": time, "process": process, "f": f, "type": type_, "value": value}

    def whole(self, name: str, queue: Any) -> Iterator[Line]:
        """Yield all lines of a queue."""
        messages, delivered = iter(rows(queue.messages)), iter(queue.delivered.content.tolist())
        contents, names = rows(queue.contents), [*self.texts, ""]  # a number of -1 is no name
        for row in rows(queue.sends):
            asked = {"topic": name.split("/")[0], "messages": list(islice(messages, row["count"]))}
            yield from self.lines("send", row, asked, row | {"status": "SEND_OK", "queue": name})
        for row in rows(queue.reads):
            read = {"messages": [contents[each] for each in islice(delivered, row["count"])]}
            asked = {"queue": name, "group": names[row["group"]], "client": names[row["client"]]}
            if row["kind"]:
                yield from self.lines("consume", row, asked | read, {})
            else:
                node = {"node": names[row["node"]]} if row["node"] >= 0 else {}
                answered = read | node | {"next": row["next"], "max": row["max"]}
                yield from self.lines("poll", row, asked | {"offset": row["offset"]}, answered)
        for row in rows(queue.commits):
            asked = {"queue": name, "group": names[row["group"]], "client": names[row["client"]]}
            commit = asked | {"offset": row["offset"]}
            yield from self.lines("commit", row, commit, commit)

    def outline(self, name: str, queue: Any) -> Iterator[Line]:
        """Yield the first answered send and the last read of a queue, without messages."""
        sends, reads, topic = queue.sends, queue.reads, name.split("/")[0]
        row = {each: int(getattr(sends, each)[0]) for each in SPAN}
        yield from self.lines("send", row, {"topic": topic, "messages": []}, {"status": "SEND_OK"})
        last = np.where(reads.kind == 0, reads.end, reads.start).argmax()
        row = {each: int(getattr(reads, each)[last]) for each in SPAN}
        f = "consume" if reads.kind[last] else "poll"
        yield from self.lines(f, row, {"group": "", "queue": f"{topic}/"}, {})
