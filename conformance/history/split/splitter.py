"""Splits the file of a history into parts, which contain its lines.

A part by queue has the operations on its queues. A part by message has the sends and reads with its messages.
The two lines of an operation follow each other, at the place of the second one. A call of a listener has its
end later, without its messages. What is small, such as faults and assignments, is kept for all parts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from mqproof.conformance.history import lines
from mqproof.conformance.history.lines import (
    HistoryError,
    Line,
    Type,
    decode_batches,
    decode_lines,
    encode,
    topic_of,
)
from mqproof.conformance.history.pairing import Builder, pair, span_of
from mqproof.conformance.history.record import Record, Sent, Span
from mqproof.conformance.history.rules import Key

_SHARED: Final = (lines.Assign, lines.Recall, lines.DeleteTopic, lines.Drain)
_REQUESTS: Final[dict[type, str]] = {lines.Send: "send", lines.Poll: "poll", lines.Pop: "pop"}
_Write = Callable[[bytes], object]
_BUFFER_BYTES: Final = 1 << 16


def part_of(id_: str, parts: int) -> int:
    """Return the number of the part to which a message id or an offset id belongs."""
    return crc32(id_.encode()) % parts


def of_part(part: int, parts: int) -> Callable[[str], bool]:
    """Return whether an id belongs to a part, as a function: it is called for each message."""
    return lambda id_: crc32(id_.encode()) % parts == part


def home_of(sent: Sent) -> str:
    """Return the queue of a send, or its topic if the queue is not known."""
    return sent.queue or sent.topic


def part_file(folder: Path, key: Key, part: int) -> Path:
    return folder / f"{key.value}-{part}"


def split(file: Iterable[bytes], name: str, folder: Path, parts: int) -> tuple[Record, dict[str, int]]:
    """Write the parts of a history to a folder.

    Returns what is small enough for all of them, and the part of each queue.

    Raises:
        HistoryError: a line is not of a history, or indexes do not ascend.
        OSError: a part cannot be written.
    """
    with ExitStack() as stack:
        writers = {
            key: [
                stack.enter_context(part_file(folder, key, part).open("wb", _BUFFER_BYTES)).write
                for part in range(parts)
            ]
            for key in (Key.QUEUE, Key.MESSAGE)
        }
        splitter = _Splitter(writers[Key.QUEUE], writers[Key.MESSAGE])
        pair(splitter.read(file, name), splitter)
    return splitter.finished(), {queue: part for queue, (part, _) in splitter.queues.items()}


@dataclass
class _Requests:
    """Counts the sends and polls, and keeps those that the rules examine.

    These are all that failed, the first success of each topic, and the first send that succeeds after a
    fault.
    """

    kept: list[Span] = field(default_factory=list)
    asked: int = 0
    _topics: set[str] = field(default_factory=set)
    _faults: int = -1
    """The number of faults when the last success was kept."""
    _last: Span | None = None
    """The last send that succeeded."""

    def add(self, f: str, topic: str, invoke: Any, end: Any, faults: list[lines.Fault]) -> None:
        self.asked += f != "pop"
        if end is None or end.type is not Type.OK:
            self._keep(f, topic, span_of(invoke.process, invoke, end))
        elif f == "send":
            span = span_of(invoke.process, invoke, end)
            if len(faults) != self._faults:
                # A send may end in the same nanosecond as a fault, on the line before.
                if self._last is not None and self.kept[-1:] != [self._last]:
                    self.kept.append(self._last)
                self._faults = len(faults)
                self._topics.add(topic)
                self._keep(f, topic, span)
            elif topic not in self._topics:
                self._topics.add(topic)
                self._keep(f, topic, span)
            span.f, span.topic, self._last = f, topic, span

    def _keep(self, f: str, topic: str, span: Span) -> None:
        span.f, span.topic = f, topic
        self.kept.append(span)


class _Splitter:
    """A sink for the operations of a history that writes their lines to parts."""

    def __init__(self, by_queue: Sequence[_Write], by_message: Sequence[_Write]) -> None:
        self.record = Record()
        self._by_queue, self._by_message, self._parts = by_queue, by_message, len(by_queue)
        self._builder = Builder(self.record)
        self._requests = _Requests()
        self._text = b""
        """The current line."""
        self._invokes: dict[int, bytes] = {}
        """The first lines of the operations that have not ended, by `id`."""
        self._calls: dict[int | str, list[_Write]] = {}
        """The parts of each running call, by process."""
        self.queues: dict[str, tuple[int, str]] = {}
        """The part of each queue, and its topic."""
        self._bytes = [0] * self._parts
        """The size of each part by queue."""
        self._moves: list[tuple[str, int]] = []
        self._last_reads: dict[str, int] = {}
        self._delayed_topics: set[str] = set()

    def read(self, file: Iterable[bytes], name: str) -> Iterator[Line]:
        """Yield the lines; each line's text is known while it is the current one.

        Parts name operations of other parts by their indexes, so no two lines may have the same one.
        """
        before = -1
        for texts, batch in decode_batches(file, name):
            for text, line in zip(texts, batch, strict=True):
                if line.index <= before:
                    raise HistoryError(
                        f"{name}: the line with index {line.index} follows the one with index {before};"
                        " with --parts, each index must be greater than the one before"
                    )
                before = line.index
                self._text = text
                if line.type is Type.INVOKE and type(line) is not lines.Consume:
                    self._invokes[id(line)] = text
                yield line

    def call(self, line: lines.Consume) -> None:
        value = line.value
        part, topic = self._queue(value.queue)
        self._last_reads[topic] = line.time
        self._bytes[part] += len(self._text)
        writers = [self._by_queue[part], *self._of_messages(value.messages)]
        self._calls[line.process] = writers
        for each in writers:
            each(self._text)

    def returned(self, line: lines.Consume) -> None:
        self.record.operations += 1
        end = encode(lines.Consume(line.index, line.time, line.process, line.type, error=line.error))
        for write in self._calls.pop(line.process):
            write(end)

    def operation(self, invoke: Any, end: Any) -> None:
        kind = type(invoke)
        if kind in _SHARED:
            del self._invokes[id(invoke)]
            self._builder.operation(invoke, end)
            return
        self.record.operations += 1
        if kind is lines.Consume:  # its line was written when it began
            return
        text = self._invokes.pop(id(invoke))
        if end is not None:
            text += self._text
        value, is_ok = invoke.value, end is not None and end.type is Type.OK
        if kind is lines.Send:
            topic, queue = value.topic, (end.value.queue if is_ok else "") or value.queue or value.topic
            part, _ = self._queue(queue)
            messages = value.messages
            if any(message.deliver_at for message in messages):
                self._delayed_topics.add(topic)
        else:
            part, topic = self._queue(value.queue)
            messages = end.value.messages if is_ok and kind in _REQUESTS else ()
            if is_ok and kind in _REQUESTS:
                self._last_reads[topic] = invoke.time
            if (kind is lines.Commit and value.reset) or (kind is lines.Poll and is_ok and value.seek):
                self._moves.append((value.group, invoke.index))
        if kind in _REQUESTS:
            self._requests.add(_REQUESTS[kind], topic, invoke, end, self.record.faults)
        self._bytes[part] += len(text)
        self._by_queue[part](text)
        for write in self._of_messages(messages):
            write(text)

    def _queue(self, queue: str) -> tuple[int, str]:
        """Return the part of a queue, and its topic. A new queue belongs to the smallest part."""
        found = self.queues.get(queue)
        if found is None:
            part = min(range(self._parts), key=self._bytes.__getitem__)
            self._bytes[part] += 1  # so that the first queues are in different parts
            found = self.queues[queue] = part, topic_of(queue)
        return found

    def _of_messages(self, messages: Iterable[Any]) -> list[_Write]:
        """Return how to write to the parts of the messages."""
        parts = self._parts
        numbers = {crc32(message.id.encode()) % parts for message in messages}
        return [self._by_message[number] for number in numbers]

    def finished(self) -> Record:
        """Return the record, with the properties of the whole history that the rules need."""
        found = self.record
        found.spans, found.asked = self._requests.kept, self._requests.asked
        found.moves, found.last_reads = self._moves, self._last_reads
        found.delayed_topics = self._delayed_topics
        return found


def read_part(whole: Record, file: Path, is_mine: Callable[[str], bool] | None = None) -> Builder:
    """Return a part of a history as a Record, in the builder that has built it."""
    part = Record(
        setup=whole.setup, assigns=whole.assigns, recalls=whole.recalls, deletions=whole.deletions,
        drains=whole.drains, faults=whole.faults, last_time=whole.last_time,
    )  # fmt: skip
    part.moves, part.last_reads, part.delayed_topics = whole.moves, whole.last_reads, whole.delayed_topics
    builder = Builder(part, is_mine)
    with file.open("rb") as texts:
        _pair_adjacent(decode_lines(texts, str(file)), builder)
    return builder


def _pair_adjacent(part: Iterable[Line], sink: Builder) -> None:
    """Find the operations of a part, in which the lines of an operation follow each other."""
    invoke = None
    for line in part:
        if line.type is not Type.INVOKE:
            if isinstance(line, lines.Consume):
                sink.returned(line)
            else:
                sink.operation(invoke, line)
                invoke = None
            continue
        if invoke is not None:
            sink.operation(invoke, None)
            invoke = None
        if isinstance(line, lines.Consume):
            sink.call(line)
        else:
            invoke = line
    if invoke is not None:
        sink.operation(invoke, None)
