"""Finds the operations of a history by their two lines, and sorts them into a Record."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, get_args

from mqproof.conformance.history import lines
from mqproof.conformance.history.lines import Delivered, Fault, Line, Setup, Type, topic_of
from mqproof.conformance.history.record import FAILED, NEVER, OK, UNKNOWN, Read, Record, Sent, Span, Step

_OUTCOMES: Final = {Type.OK: OK, Type.FAIL: FAILED, Type.INFO: UNKNOWN}
_INVOKE: Final = Type.INVOKE
_INFO: Final = Type.INFO


def span_of(process: int | str, invoke: Any, end: Any) -> Span:
    """Return the interval of an operation from its two lines; `end` is None if there is none."""
    if end is None:
        return Span(process, invoke.index, NEVER, invoke.time, NEVER, UNKNOWN, "")
    if (type_ := end.type) is _INFO:
        return Span(process, invoke.index, NEVER, invoke.time, NEVER, UNKNOWN, end.error, "", "", end.index)
    return Span(
        process,
        invoke.index,
        end.index,
        invoke.time,
        end.time,
        _OUTCOMES[type_],
        end.error,
        "",
        "",
        end.index,
    )


def record(history: Iterable[Line]) -> Record:
    """Sort the operations of the lines into a Record."""
    builder = Builder(Record())
    pair(history, builder)
    return builder.record


class Sink(Protocol):
    """Receives the operations of a history, in order."""

    record: Record

    def call(self, line: lines.Consume) -> None:
        """Receive the begin of a call of a listener, which has its messages from the start."""

    def returned(self, line: lines.Consume) -> None:
        """Receive the end of that call."""

    def operation(self, invoke: Line, end: Line | None) -> None:
        """Receive an operation at its end, or a call that has none; `end` is None if there is none."""


def pair(history: Iterable[Line], sink: Sink, *, is_whole: bool = True) -> None:
    """Find the operations of a history by their two lines, and the gaps between the lines.

    Without `is_whole`, some lines are elsewhere, so that a missing index is no gap.
    """
    expected, latest, opened, found = 0, 0, dict[int | str, Any](), sink.record
    for line in history:
        index, time, process = line.index, line.time, line.process
        if index != expected and is_whole:
            found.gap(f"line {expected} is missing: line {index} follows")
        if time < latest:
            found.gap(f"line {index} is older than the one before it")
        expected, latest = index + 1, time
        kind = type(line)
        if kind is Setup:
            found.setup = line.value  # type: ignore[assignment]
        elif kind is Fault:
            found.faults.append(line)  # type: ignore[arg-type]
        elif line.type is _INVOKE:
            if process in opened:
                before = opened.pop(process)
                found.gap(f"line {index}: {process} has not ended its operation of line {before.index}")
                sink.operation(before, None)
            opened[process] = line
            if kind is lines.Consume:
                sink.call(line)  # type: ignore[arg-type]
        else:
            invoke = opened.pop(process, None)
            if type(invoke) is not kind:
                found.gap(f"line {index} ends an operation that {process} did not begin")
            elif kind is lines.Consume:
                sink.returned(line)  # type: ignore[arg-type]
            else:
                sink.operation(invoke, line)
    for invoke in list(opened.values()):
        sink.operation(invoke, None)
    found.last_time = latest


class Builder:
    """Sorts operations into a Record.

    With `is_mine`, only messages with such ids are recorded, and only reads that found one.
    """

    def __init__(self, record: Record, is_mine: Callable[[str], bool] | None = None) -> None:
        self.record = record
        self.batches: dict[int, list[Sent]] = {}
        """With `is_mine`, all messages of a send by its start."""
        self._is_mine = is_mine
        self._calls: dict[int | str, Span] = {}
        """Spans of listener calls that are running."""
        self._changed: set[tuple[str, int]] = set()
        """Queue and offset of the places at which different messages were delivered."""
        self._name: Callable[[Any, Any], Any] = dict[Any, Any]().setdefault
        """Returns one object for all equal texts: decoding creates one for each line."""
        self._topics: dict[str, str] = {}
        """Maps a queue to its topic."""

    def _topic(self, queue: str) -> str:
        topic = self._topics.get(queue)
        if topic is None:
            topic = self._topics[queue] = topic_of(queue)
        return topic

    def operation(self, invoke: Any, end: Any) -> None:
        self.record.operations += 1
        span = span_of(self._name(invoke.process, invoke.process), invoke, end)
        _ENDS[type(invoke)](self, span, invoke.value, end.value if end is not None else None)

    def _request(self, f: str, topic: str, span: Span) -> None:
        span.f, span.topic = f, topic
        self.record.spans.append(span)

    def _send(self, span: Span, request: lines.SendValue, response: lines.SendValue | None) -> None:
        name = self._name
        topic = name(request.topic, request.topic)
        self._request("send", topic, span)
        # A client that received no response may have retried several times.
        attempts = response.attempts if response is not None else _ATTEMPTS_WITHOUT_RESPONSE
        response = response if response is not None and span.outcome is OK else _NO_RESPONSE
        batch, placed = len(request.messages), bool(response.queue) and response.offset >= 0
        queue, status = response.queue or request.queue, name(response.status, response.status)
        queue = name(queue, queue)
        all_sent = [
            Sent(
                message, topic, span, status, queue, response.offset + place if placed else -1, place, batch,
                attempts, response.offset_id if place == 0 else "",
            )
            for place, message in enumerate(request.messages)
        ]  # fmt: skip
        if self._is_mine is not None:
            self.batches[span.start] = all_sent
            all_sent = [sent for sent in all_sent if self._is_mine(sent.message.id)]
        self.record.sends += all_sent

    def _poll(self, span: Span, request: lines.PollValue, response: lines.PollValue | None) -> None:
        self._request("poll", self._topic(request.queue), span)
        if response is not None and span.outcome is OK:
            read = self._read("poll", request, span, span.end)
            read.offset, read.next, read.max = request.offset, response.next, response.max
            read.node, read.seek = self._name(response.node, response.node), request.seek
            self._deliver(read, response.messages)

    def _pop(self, span: Span, request: lines.PopValue, response: lines.PopValue | None) -> None:
        self._request("pop", self._topic(request.queue), span)
        if response is not None and span.outcome is OK:
            read = self._read("pop", request, span, span.end)
            read.invisible_ms = request.invisible_ms
            self._deliver(read, response.messages)

    def _read(
        self, kind: str, request: lines.PollValue | lines.PopValue | lines.ConsumeValue, span: Span, at: int
    ) -> Read:
        name, group, queue = self._name, request.group, request.queue
        client = request.client or str(span.process)
        return Read(kind, name(group, group), name(queue, queue), name(client, client), span, (), at)

    def call(self, line: lines.Consume) -> None:
        """Record a call of a listener, which has its messages from the start; its end is filled in later."""
        value = line.value
        process = self._name(line.process, line.process)
        span = Span(process, line.index, NEVER, line.time, NEVER, UNKNOWN, "")
        self._calls[process] = span
        read = self._read("consume", value, span, span.start)
        self._deliver(read, value.messages)

    def returned(self, line: lines.Consume) -> None:
        """Record the end of a call."""
        self.record.operations += 1
        call = self._calls.pop(line.process)
        call.error = line.error
        if line.type is not _INFO:
            call.end, call.ended, call.outcome = line.index, line.time, _OUTCOMES[line.type]
        call.last = line.index

    def _consume(self, span: Span, _: lines.ConsumeValue, __: lines.ConsumeValue | None) -> None:
        """Forget a call that has no end: it is recorded as such from its begin."""
        del self._calls[span.process]

    def _deliver(self, read: Read, messages: tuple[Delivered, ...]) -> None:
        if (is_mine := self._is_mine) is not None:
            messages = tuple([message for message in messages if is_mine(message.id)])
            if not messages:
                return
        self.record.reads.append(read)
        if not messages:
            return
        places, sights, changed = self.record.places[read.queue], self.record.sights, self._changed
        same = []
        for message in messages:
            known = places.get(message.offset)
            if known is None:
                places[message.offset] = sight = read, message
                sights.append(sight)
            elif known[1] == message:
                message = known[1]
                if changed and (read.queue, message.offset) in changed:
                    sights.append((read, message))
            else:
                if known[1].id != message.id:
                    changed.add((read.queue, message.offset))
                sights.append((read, message))
            same.append(message)
        read.messages = tuple(same)

    def _query(self, span: Span, request: lines.QueryValue, response: lines.QueryValue | None) -> None:
        if response is not None and span.outcome is OK:
            value = lines.QueryValue(request.group, request.queue, response.offset, request.client)
            self.record.queries.append(Step(span, value))

    def _bounds(self, span: Span, request: lines.BoundsValue, response: lines.BoundsValue | None) -> None:
        if response is not None and span.outcome is OK:
            value = lines.BoundsValue(request.queue, response.min, response.max, response.node)
            self.record.bounds.append(Step(span, value))

    def _ack(self, span: Span, request: Any, _: Any) -> None:
        self.record.acks.append(Step(span, request))

    def _commit(self, span: Span, request: Any, _: Any) -> None:
        self.record.commits.append(Step(span, request))

    def _assign(self, span: Span, request: Any, _: Any) -> None:
        self.record.assigns.append(Step(span, request))

    def _recall(self, span: Span, request: Any, _: Any) -> None:
        self.record.recalls.append(Step(span, request))

    def _deletetopic(self, span: Span, request: Any, _: Any) -> None:
        self.record.deletions.append(Step(span, request))

    def _drain(self, span: Span, request: Any, _: Any) -> None:
        self.record.drains.append(Step(span, request))


_ENDS: Final[dict[type, Callable[[Builder, Span, Any, Any], None]]] = {
    kind: getattr(Builder, f"_{kind.__name__.lower()}") for kind in get_args(lines.Operation)
}
"""Maps each kind of operation to the method that records it."""
_ATTEMPTS_WITHOUT_RESPONSE: Final = 2
_NO_RESPONSE: Final = lines.SendValue()
