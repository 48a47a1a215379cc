"""Converts a history from lines to columns and back.

Columns keep what the rules read. A poll loses its `min`, and a send the queue that its producer chose if the
response names it.
"""

import shutil
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from mqproof.conformance.history import lines
from mqproof.conformance.history.columns.tables import (
    CONSUME,
    NUMBER_MAX,
    POLL,
    TABLES,
    Array,
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
        self._known: dict[int, dict[int, tuple[Delivered, int]]] = {}
        """By queue and offset, the last content and its row."""
        self._contents: dict[int, int] = {}
        """The number of contents of each queue."""

    def read(self, history: Iterable[Line]) -> Iterator[Line]:
        for line in history:
            self.writer.line(line.time, line.process)
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

    def _send(self, invoke: lines.Send, end: lines.Send) -> None:
        messages, value, writer = invoke.value.messages, end.value, self.writer
        queue = writer.queue(value.queue)
        row = invoke.index, end.index, value.offset, len(messages), value.offset_id.encode()
        writer.add(queue, "sends", *row)
        for each in messages:
            writer.add(queue, "messages", *_encoded(each.id, each.body, each.tag, each.key))

    def _commit(self, invoke: Any, end: Any) -> None:
        value, writer = invoke.value, self.writer
        row = invoke.index, end.index, writer.name(value.group), self._client(value), value.offset
        writer.add(writer.queue(value.queue), "commits", *row)

    def _read(self, invoke: Any, end: Any) -> None:
        asked, writer = invoke.value, self.writer
        queue = writer.queue(asked.queue)
        group, client = writer.name(asked.group), self._client(asked)
        if type(invoke) is lines.Poll:
            value = end.value
            node = writer.name(value.node) if value.node else -1
            place = node, asked.offset, value.next, value.max
            messages, kind = value.messages, POLL
        else:
            place, messages, kind = (-1, -1, -1, -1), asked.messages, CONSUME
        writer.add(queue, "reads", kind, invoke.index, end.index, group, client, *place, len(messages))
        for message in messages:
            writer.add(queue, "delivered", self._content(queue, message))

    def _content(self, queue: int, message: Delivered) -> int:
        """Return the row of a content, which is added if it is not known."""
        known = self._known.setdefault(queue, {})
        found = known.get(message.offset)
        if found is not None and found[0] == message:
            return found[1]
        if len(known) >= _KNOWN_MAX:
            known.clear()
        row = self._contents.get(queue, 0)
        self._contents[queue] = row + 1
        known[message.offset] = message, row
        texts = _encoded(message.id, message.body, message.tag, message.key)
        numbers = message.born, message.stored
        self.writer.add(queue, "contents", message.offset, *texts, *numbers, message.offset_id.encode())
        return row


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
    names, times, processes = columns.names, columns.lines.time, columns.lines.process

    def made(kind: Any, index: int, type_: Type, value: Any) -> Line:
        line: Line = kind(index, int(times[index]), names[processes[index]], type_, value)
        return line

    messages = [Message(*row) for row in _rows(where, queue, "messages")]
    at = 0
    for start, end, offset, count, offset_id in _rows(where, queue, "sends"):
        sent = lines.SendValue(topic_of(queue.name), tuple(messages[at : at + count]))
        at += count
        yield made(lines.Send, start, Type.INVOKE, sent)
        answer = lines.SendValue(status=SEND_OK, queue=queue.name, offset=offset, offset_id=offset_id)
        yield made(lines.Send, end, Type.OK, answer)
    contents = [
        Delivered(id_, offset, body, tag, key, 0, born, stored, offset_id)
        for offset, id_, body, tag, key, born, stored, offset_id in _rows(where, queue, "contents")
    ]
    delivered, at = queue.delivered.content.tolist(), 0
    for kind, start, end, group, client, node, offset, next_, max_, count in _rows(where, queue, "reads"):
        read = tuple(contents[row] for row in delivered[at : at + count])
        at += count
        member = str(names[client]) if client >= 0 else ""
        if kind == CONSUME:
            call = lines.ConsumeValue(str(names[group]), queue.name, member, read)
            yield made(lines.Consume, start, Type.INVOKE, call)
            yield made(lines.Consume, end, Type.OK, lines.ConsumeValue())
        else:
            poll = lines.PollValue(str(names[group]), queue.name, offset, member)
            yield made(lines.Poll, start, Type.INVOKE, poll)
            answered_by = str(names[node]) if node >= 0 else ""
            answer_ = lines.PollValue(messages=read, next=next_, max=max_, node=answered_by)
            yield made(lines.Poll, end, Type.OK, answer_)
    for start, end, group, client, offset in _rows(where, queue, "commits"):
        member = str(names[client]) if client >= 0 else ""
        commit = lines.CommitValue(str(names[group]), queue.name, offset, member)
        yield made(lines.Commit, start, Type.INVOKE, commit)
        yield made(lines.Commit, end, Type.OK, commit)


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
