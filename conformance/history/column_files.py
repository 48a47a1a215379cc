"""Reads a history in columns for its verifier, and refuses it unless each line belongs to one operation.

docs/reference/history-format.md describes the files. This module shares no code with the rest of mqproof's
readers: it uses numpy and json.
"""

import json
from collections.abc import Container, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from mqproof.conformance.history.verification import RefusedError

TABLES = ("sends", "messages", "reads", "delivered", "contents", "commits")
BEGIN, END, ALONE = 1, 2, 3
BLOCK = 1 << 20
Line = dict[str, Any]


def expect(holds: object, otherwise: str) -> None:
    """Raise RefusedError unless a condition holds."""
    if not holds:
        raise RefusedError(otherwise)


def table(folder: Path) -> Any:
    """Return the columns of a table as attributes."""
    found = {file.stem: np.load(file, mmap_mode="r") for file in sorted(folder.glob("*.npy"))}
    expect(len({column.shape for column in found.values()}) == 1, f"{folder}: columns of different lengths")
    return SimpleNamespace(**found)


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
        head, lines = json.loads((folder / "columns.json").read_bytes()), table(folder / "lines")
        self.folder, self.queues, self.names = folder, head["queues"], head["names"]
        self.texts, self.time, self.process = [str(name) for name in self.names], lines.time, lines.process
        self.rest = [json.loads(line) for line in (folder / "rest.jsonl").read_bytes().splitlines()]

    def queue(self, name: str) -> Any:
        expect(name in self.queues, f"the columns have no queue {name}")
        folder = self.folder / str(self.queues.index(name))
        return SimpleNamespace(**{each: table(folder / each) for each in TABLES})

    def besides(self, regular: Container[str]) -> tuple[list[Line], list[Line]]:
        """Return all lines but those of regular queues, and the outlines of these.

        Columns that are not a history are refused.
        """
        role, count = np.zeros(len(self.time), np.uint8), len(self.rest)
        whole, outlines = list(self.rest), list[Line]()
        for line in self.rest:
            index, is_alone = line["index"], line["f"] in ("setup", "fault")
            known = self.time[index], self.names[self.process[index]]
            is_known = index >= 0 and (line["time"], line["process"]) == known
            expect(is_known, f"line {index} has another time or process")
            role[index] = ALONE if is_alone else BEGIN if line["type"] == "invoke" else END
        for name in self.queues:
            queue = self.queue(name)
            for each in (queue.sends, queue.reads, queue.commits):
                is_one = self.process[each.start] == self.process[each.end]
                is_sound = is_one & (each.start >= 0) & (each.start < each.end)
                expect(is_sound.all(), f"{name}: the lines of an operation do not belong together")
                role[each.start], role[each.end] = BEGIN, END
                count += 2 * len(each.start)
            if name in regular:
                outlines += self.outline(name, queue)
            else:
                whole += self.whole(name, queue)
        expect(count == len(role) and role.all(), "a line is missing, or belongs to two operations")
        self.examine(role)
        return whole, outlines

    def examine(self, role: Any) -> None:
        """Refuse times that go back, and processes with several operations at a time."""
        is_busy, last = bytearray(len(self.names)), 0
        for begin in range(0, len(role), BLOCK):
            block = slice(begin, begin + BLOCK)
            expect((np.diff(self.time[block], prepend=last) >= 0).all(), "time goes back")
            last = self.time[block][-1]
            for process, what in zip(self.process[block].tolist(), role[block].tolist(), strict=True):
                if what != ALONE:
                    expect(is_busy[process] == (what == END), "a process has several operations at a time")
                    is_busy[process] = what == BEGIN

    def lines(self, f: str, row: Line, asked: Line, answered: Line) -> Iterator[Line]:
        """Yield the two lines of an operation that succeeded."""
        for index, type_, value in ((row["start"], "invoke", asked), (row["end"], "ok", answered)):
            process, time = self.names[self.process[index]], int(self.time[index])
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
        row = {each: int(getattr(sends, each)[sends.end.argmin()]) for each in ("start", "end")}
        yield from self.lines("send", row, {"topic": topic, "messages": []}, {"status": "SEND_OK"})
        last = np.where(reads.kind == 0, reads.end, reads.start).argmax()
        row = {each: int(getattr(reads, each)[last]) for each in ("start", "end")}
        f = "consume" if reads.kind[last] else "poll"
        yield from self.lines(f, row, {"group": "", "queue": f"{topic}/"}, {})
