"""Converts a history from lines to columns and back.

Columns keep what the rules read. A poll loses its `min`, and a send the queue that its producer chose if the
response names it.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.history import lines
from mqproof.conformance.history.columns.encoding import Array
from mqproof.conformance.history.columns.tables import (
    CONSUME,
    NUMBER_MAX,
    POLL,
    TABLES,
    Columns,
    Queue,
)
from mqproof.conformance.history.columns.writer import Writer
from mqproof.conformance.history.lines import (
    Delivered,
    HistoryError,
    Line,
    Message,
    Type,
    decode_lines,
    encode,
    topic_of,
)
from mqproof.conformance.history.pairing import pair
from mqproof.conformance.history.record import SEND_OK, Record, is_own

_KNOWN_MAX: Final = 1 << 16
"""The number of contents of a queue that are remembered, so that repeated deliveries share one."""
_TEXT_BYTES_MAX: Final = 255
_index: Final = attrgetter("index")


def write_columns(history: Iterable[Line], name: str, folder: Path) -> None:
    """Write a history, whose source is `name`, to a new folder. After an error the folder does not exist.

    Raises:
        HistoryError: lines are missing, or a number is too large.
        OSError: a file cannot be written, or the folder exists.
    """
    folder.mkdir(parents=True)
    try:
        _write(history, name, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write(history: Iterable[Line], name: str, folder: Path) -> None:
    splitter = _Splitter(Writer(folder))
    try:
        pair(splitter.read(history), splitter)
        if splitter.record.gap_count:
            raise HistoryError(f"{name}: {splitter.record.gaps[0]}; a history with gaps has no columns")
        splitter.writer.finish()
    except OverflowError:
        raise HistoryError(f"{name}: a time or number has more than 63 bits") from None
    (folder / "rest.jsonl").write_bytes(b"".join(map(encode, sorted(splitter.rest, key=_index))))


class _Splitter:
    """A sink for the operations of a history that writes the usual ones to columns."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.record = Record()
        self.rest: list[Line] = []
        self._calls: dict[int | str, lines.Consume] = {}
        self._known: dict[tuple[int, str], dict[Any, tuple[Any, int]]] = defaultdict(dict)
        """By queue and table, the last rows."""
        self._rows: dict[tuple[int, str], int] = defaultdict(int)
        """The number of rows of these tables."""

    def read(self, history: Iterable[Line]) -> Iterator[Line]:
        for line in history:
            self.writer.lines += 1
            if isinstance(line, lines.Setup | lines.Fault):
                self.rest.append(line)
            yield line

    def call(self, line: lines.Consume) -> None:
        self._calls[line.process] = line

    def returned(self, line: lines.Consume) -> None:
        self._put(self._calls.pop(line.process), line)

    def operation(self, invoke: Any, end: Any) -> None:
        if type(invoke) is lines.Consume:
            del self._calls[invoke.process]
        self._put(invoke, end)

    def _put(self, invoke: Any, end: Any) -> None:
        """Write an operation to the columns of its queue, or to the rest."""
        if end is None or end.type is not Type.OK or not _is_usual(invoke, end.value):
            self.rest += [invoke] if end is None else [invoke, end]
        elif type(invoke) is lines.Send:
            self._send(invoke, end)
        elif type(invoke) is lines.Commit:
            self._commit(invoke, end)
        else:
            self._read(invoke, end)

    def _client(self, value: Any) -> int:
        return self.writer.name(value.client) if value.client else -1

    def _span(self, invoke: Any, end: Any) -> tuple[int, ...]:
        return end.index, invoke.index, end.time, invoke.time, self.writer.name(invoke.process)

    def _send(self, invoke: lines.Send, end: lines.Send) -> None:
        messages, value, writer = invoke.value.messages, end.value, self.writer
        queue = writer.queue(value.queue)
        rows = [self._message(queue, (each.id, each.body, each.tag, each.key)) for each in messages]
        place = value.offset, len(messages), rows[0], self._offset_id(queue, value.offset_id)
        writer.add(queue, "sends", *self._span(invoke, end), *place)

    def _commit(self, invoke: Any, end: Any) -> None:
        value, writer = invoke.value, self.writer
        row = writer.name(value.group), self._client(value), value.offset
        writer.add(writer.queue(value.queue), "commits", *self._span(invoke, end), *row)

    def _read(self, invoke: Any, end: Any) -> None:
        asked, writer = invoke.value, self.writer
        queue = writer.queue(asked.queue)
        member = writer.name(asked.group), self._client(asked)
        if type(invoke) is lines.Poll:
            value = end.value
            node = writer.name(value.node) if value.node else -1
            place = node, asked.offset, value.next, value.max
            messages, kind = value.messages, POLL
        else:
            place, messages, kind = (-1, -1, -1, -1), asked.messages, CONSUME
        writer.add(queue, "reads", *self._span(invoke, end), kind, *member, *place, len(messages))
        for message in messages:
            writer.add(queue, "delivered", self._content(queue, message))

    def _content(self, queue: int, message: Delivered) -> int:
        """Return the row of a content, which is added if it is not known."""
        if (row := self._row(queue, "contents", message.offset, message)) is None:
            texts = message.id, message.body, message.tag, message.key
            known = self._row(queue, "messages", message.id, texts)
            text = self._message(queue, texts) if known is None else known
            times = message.stored, message.born
            content = text, message.offset, *times, self._offset_id(queue, message.offset_id)
            row = self._add(queue, "contents", message.offset, message, content)
        return row

    def _message(self, queue: int, texts: tuple[str, ...]) -> int:
        return self._add(queue, "messages", texts[0], texts, _encoded(*texts))

    def _offset_id(self, queue: int, text: str) -> int:
        if not text:
            return -1
        row = self._row(queue, "offset_ids", text, text)
        return self._add(queue, "offset_ids", text, text, _encoded(text)) if row is None else row

    def _row(self, queue: int, table: str, key: Any, value: Any) -> int | None:
        """Return the row of a value, if it is known."""
        found = self._known[queue, table].get(key)
        return found[1] if found is not None and found[0] == value else None

    def _add(self, queue: int, table: str, key: Any, value: Any, row: Iterable[Any]) -> int:
        known = self._known[queue, table]
        if len(known) >= _KNOWN_MAX:
            known.clear()
        number = self._rows[queue, table]
        self._rows[queue, table] += 1
        known[key] = value, number
        self.writer.add(queue, table, *row)
        return number


def _encoded(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


def _is_usual(invoke: Any, answer: Any) -> bool:
    """Return whether columns can hold an operation that succeeded."""
    value = invoke.value
    match invoke:
        case lines.Send():
            is_placed = answer.status == SEND_OK and answer.attempts == 1 and 0 <= answer.offset < NUMBER_MAX
            is_plain = bool(value.messages) and not any(each.deliver_at for each in value.messages)
            texts = (text for each in value.messages for text in (each.id, each.body, each.tag, each.key))
            is_here = is_own(answer.queue) and bool(answer.queue) and topic_of(answer.queue) == value.topic
            return is_placed and is_plain and is_here and _are_short(answer.offset_id, *texts)
        case lines.Poll():
            numbers = value.offset, answer.next, answer.max
            is_plain = not value.seek and all(-1 <= number < NUMBER_MAX for number in numbers)
            return is_plain and is_own(value.queue) and all(map(_is_first, answer.messages))
        case lines.Consume():
            return is_own(value.queue) and all(map(_is_first, value.messages))
        case lines.Commit():
            return is_own(value.queue) and not value.reset and 0 <= value.offset < NUMBER_MAX
    return False


def _is_first(message: Delivered) -> bool:
    """Return whether columns can hold a content: a first delivery, of a record that names its own queue."""
    numbers = message.offset, message.born, message.stored
    texts = message.id, message.body, message.tag, message.key, message.offset_id
    is_plain = not message.times and not message.queue
    return is_plain and all(0 <= number < NUMBER_MAX for number in numbers) and _are_short(*texts)


def _are_short(*texts: str) -> bool:
    return all("\0" not in text and len(text.encode()) <= _TEXT_BYTES_MAX for text in texts)


def read_columns(folder: Path) -> list[Line]:
    """Return the lines of a folder of columns.

    Raises:
        HistoryError: a column or line is not valid.
        OSError: a file cannot be read.
    """
    columns = Columns(folder)
    return sorted(chosen_lines(columns, rest_lines(columns), range(len(columns.queues))), key=_index)


def chosen_lines(columns: Columns, rest: list[Line], numbers: Iterable[int]) -> Iterator[Line]:
    """Yield the rest, and the lines of some queues, by index."""
    queues = (sorted(_queue_lines(columns, columns.queue(number)), key=_index) for number in numbers)
    return merge(rest, *queues, key=_index)


def rest_lines(columns: Columns) -> list[Line]:
    """Return the lines that are not in columns."""
    with columns.rest.open("rb") as file:
        return list(decode_lines(file, str(columns.rest)))


def _queue_lines(columns: Columns, queue: Queue) -> Iterator[Line]:
    where = f"{columns.folder}: {queue.name}"
    names = columns.names

    def both(kind: Any, span: Iterable[int], asked: Any, answered: Any) -> tuple[Line, Line]:
        """Return the two lines of an operation."""
        end, start, ended, began, process = span
        invoke: Line = kind(start, began, names[process], Type.INVOKE, asked)
        return invoke, kind(end, ended, names[process], Type.OK, answered)

    messages = list(_rows(where, queue, "messages"))
    offset_ids = [*(text for (text,) in _rows(where, queue, "offset_ids")), ""]
    for *span, offset, count, message, offset_id in _rows(where, queue, "sends"):
        sent = tuple(Message(*texts) for texts in messages[message : message + count])
        place = {"queue": queue.name, "offset": offset, "offset_id": offset_ids[offset_id]}
        answer = lines.SendValue(status=SEND_OK, **place)
        yield from both(lines.Send, span, lines.SendValue(topic_of(queue.name), sent), answer)
    contents = [
        _delivered(messages[message], offset, born, stored, offset_ids[offset_id])
        for message, offset, stored, born, offset_id in _rows(where, queue, "contents")
    ]
    delivered, at = queue.delivered.content.tolist(), 0
    for *span, kind, group, client, node, offset, next_, max_, count in _rows(where, queue, "reads"):
        read = tuple(contents[row] for row in delivered[at : at + count])
        at += count
        member = str(names[client]) if client >= 0 else ""
        if kind == CONSUME:
            call = lines.ConsumeValue(str(names[group]), queue.name, member, read)
            yield from both(lines.Consume, span, call, lines.ConsumeValue())
        else:
            poll = lines.PollValue(str(names[group]), queue.name, offset, member)
            node_name = str(names[node]) if node >= 0 else ""
            polled = lines.PollValue(messages=read, next=next_, max=max_, node=node_name)
            yield from both(lines.Poll, span, poll, polled)
    for *span, group, client, offset in _rows(where, queue, "commits"):
        member = str(names[client]) if client >= 0 else ""
        commit = lines.CommitValue(str(names[group]), queue.name, offset, member)
        yield from both(lines.Commit, span, commit, commit)


def _delivered(texts: tuple[str, ...], offset: int, born: int, stored: int, offset_id: str) -> Delivered:
    id_, body, tag, key = texts
    return Delivered(id_, offset, body, tag, key, 0, born, stored, offset_id)


def _rows(where: str, queue: Queue, name: str) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a table, with texts as str."""
    table = getattr(queue, name)
    try:
        return zip(*(_values(getattr(table, column)) for column in TABLES[name]), strict=True)
    except UnicodeDecodeError as error:
        raise HistoryError(f"{where}: a text is not UTF-8: {error}") from None


def _values(column: Array) -> list[Any]:
    values = column.tolist()
    return [value.decode() for value in values] if column.dtype.kind == "S" else values
