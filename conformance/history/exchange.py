"""Histories in the formats of other tools: OpenChaos, Jepsen with its kafka checker, and elle.

Other formats have fewer fields. Writers omit facts that a format cannot express, and readers do not invent
missing ones. docs/reference/history-format.md, "Other formats", has tables for both directions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from mqproof.conformance.history import edn, lines
from mqproof.conformance.history.edn import Keyword
from mqproof.conformance.history.lines import (
    NEMESIS,
    AssignValue,
    Delivered,
    FaultValue,
    HistoryError,
    Line,
    Message,
    PollValue,
    PopValue,
    SendValue,
    SetupValue,
    Type,
)
from mqproof.conformance.history.pairing import record
from mqproof.conformance.history.record import SEND_OK, Outcome, Read, Sent, is_own

_NS: Final = 1_000_000


# Jepsen's kafka workload: operations are lists of micro-operations on keys, values are numbers.


class _Numbers:
    """Maps names to small numbers, in order of appearance."""

    def __init__(self) -> None:
        self.names: dict[str | int, int] = {}

    def __getitem__(self, name: str | int) -> int:
        return self.names.setdefault(name, len(self.names))


def write_jepsen(history: Iterable[Line]) -> bytes:
    """Return EDN in the form of jepsen.tests.kafka, one operation per line.

    The operations are sends and polls of application queues. Queues and message ids become numbers. A process
    that received no answer continues under a new number, because in Jepsen it has crashed. Groups that
    subscribe to tags are left out: they would seem to skip messages.
    """
    queues, ids, processes = _Numbers(), _Numbers(), _Numbers()
    crashed: dict[str | int, int] = defaultdict(int)
    open_requests: dict[str | int, Line] = {}
    out: list[str] = []

    def say(line: Line, f: str, value: Any) -> None:
        nemesis = line.process == NEMESIS
        process = processes[f"{line.process} {crashed[line.process]}"]
        out.append(
            edn.write(
                {
                    Keyword("type"): Keyword(line.type),
                    Keyword("f"): Keyword(f),
                    Keyword("value"): value,
                    Keyword("process"): Keyword(NEMESIS) if nemesis else process,
                    Keyword("time"): line.time,
                    Keyword("index"): len(out),
                }
            )
        )

    history = list(history)
    filtered = {name for line in history if isinstance(line, lines.Setup)
                for name, group in line.value.groups.items() if group.tags}  # fmt: skip
    homes = _homes(history)
    for line in history:
        invoke = open_requests.pop(line.process, None) if line.type is not Type.INVOKE else None
        if line.type is Type.INVOKE:
            open_requests[line.process] = line
        match line:
            case lines.Fault():
                say(line, line.value.kind, line.value.node)
            case lines.Send() | lines.Poll():
                of = invoke or line
                operation = _send_of(of, line, homes, queues, ids) if isinstance(of, lines.Send) else None
                if isinstance(of, lines.Poll) and isinstance(line, lines.Poll):
                    if of.value.group in filtered:
                        continue
                    operation = _poll_of(of, line, queues, ids)
                if operation is not None:
                    say(line, Keyword("send" if isinstance(of, lines.Send) else "poll"), operation)
            case lines.Assign() if line.value is not None:
                say(line, "assign", [queues[queue] for queue in line.value.queues if is_own(queue)])
        if line.type is Type.INFO:
            crashed[line.process] += 1
    return "".join(f"{each}\n" for each in out).encode()


def _homes(history: Iterable[Line]) -> dict[str, str]:
    """Return the queue of each message, from an answer or a consumer.

    Jepsen's producers know it in advance.
    """
    sorted_out = record(history)
    homes = {sent.message.id: sent.queue for sent in sorted_out.sends}
    homes.update((message.id, read.queue) for read, message in sorted_out.sights if is_own(read.queue))
    return homes


def _send_of(
    request: lines.Send, line: Line, homes: dict[str, str], queues: _Numbers, ids: _Numbers
) -> list[Any] | None:
    assert isinstance(line, lines.Send)
    response = line.value if line.type is Type.OK else None
    operations: list[Any] = []
    for place, message in enumerate(request.value.messages):
        value: Any = ids[message.id]
        if response is not None:  # an answer without a queue has no offset
            value = [response.offset + place if response.queue else None, value]
        operations.append([Keyword("send"), queues[homes[message.id] or request.value.topic], value])
    return operations


def _poll_of(request: lines.Poll, line: lines.Poll, queues: _Numbers, ids: _Numbers) -> list[Any] | None:
    if not is_own(request.value.queue):
        return None
    if line.type is not Type.OK:
        return [[Keyword("poll")]]
    pairs = [[message.offset, ids[message.id]] for message in line.value.messages]
    return [[Keyword("poll"), {queues[request.value.queue]: pairs} if pairs else {}]]


def read_jepsen(path: Path) -> list[Line]:
    """Read EDN of Jepsen's kafka workload: sends and polls.

    An operation on several queues becomes one operation per queue, each by its own process. The format does
    not name groups: each consumer becomes a group.

    Raises:
        HistoryError: it is not EDN, or not of that workload.
    """
    operations: list[_Operation] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            operations.append(_Operation.of(edn.read(text), number))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HistoryError(f"{path}:{number}: not a Jepsen operation: {error}") from None
    out: list[Line] = [lines.Setup(0, 0, NEMESIS, Type.INFO, SetupValue(name=path.name))]
    ends: dict[Any, _Operation] = {}
    for each in reversed(operations):
        # The queues of a poll are known only at its end, but its invoke line needs them.
        each.end = ends.pop(each.process, None) if each.type is Type.INVOKE else each
        if each.type is not Type.INVOKE:
            ends[each.process] = each
    for each in operations:
        try:
            for line in _of_jepsen(each):
                out.append(replace(line, index=len(out), time=each.time))
        except (ValueError, TypeError, IndexError) as error:
            raise HistoryError(
                f"{path}:{each.number}: not an operation of Jepsen's kafka workload: {error}"
            ) from None
    return out


@dataclass(slots=True)
class _Operation:
    """One operation as it is in Jepsen's history."""

    f: str
    type: Type
    process: Any
    time: int
    value: Any
    number: int
    end: "_Operation | None" = None

    @classmethod
    def of(cls, fields: dict[Any, Any], number: int) -> "_Operation":
        f, type_ = str(fields[Keyword("f")]), Type(str(fields[Keyword("type")]))
        time = int(fields.get(Keyword("time"), number))
        return cls(f, type_, fields[Keyword("process")], time, fields.get(Keyword("value")), number)

    def polled(self) -> list[tuple[Any, list[Any]]]:
        """Return (key, pairs of offset and value) for every queue in which the poll found messages."""
        if self.end is None or self.end.type is not Type.OK:
            return []
        return [pair for micro in self.end.value if len(micro) > 1 for pair in micro[1].items()]


def _of_jepsen(operation: _Operation) -> Iterator[Line]:
    if operation.process == Keyword(NEMESIS):
        if operation.type is Type.INFO and operation.value is not None:
            yield lines.Fault(0, 0, NEMESIS, Type.INFO, FaultValue(operation.f, str(operation.value)))
    elif operation.f == "send":
        by_key: dict[str, list[Any]] = defaultdict(list)
        for micro in operation.value:
            by_key[str(micro[1])].append(micro[2])
        for key, sent in by_key.items():
            pairs = [each if isinstance(each, list) else [None, each] for each in sent]
            placed = pairs[0][0] is not None
            queue, offset = (f"{key}/jepsen/0", int(pairs[0][0])) if placed else ("", -1)
            messages = tuple(Message(str(value)) for _, value in pairs)
            status = SEND_OK if operation.type is Type.OK else ""
            sends = SendValue(key, messages, status, queue, offset)
            yield lines.Send(0, 0, f"{operation.process} {key}", operation.type, sends)
    elif operation.f == "poll":
        for key, pairs in operation.polled():
            queue, first, after = f"{key}/jepsen/0", int(pairs[0][0]), int(pairs[-1][0]) + 1
            value = PollValue(f"jepsen {operation.process}", queue, first)
            if operation.type is Type.OK:
                found = tuple(Delivered(str(id_), int(offset)) for offset, id_ in pairs)
                value = PollValue(messages=found, next=after)
            yield lines.Poll(0, 0, f"{operation.process} {key}", operation.type, value)
    elif operation.f in ("assign", "subscribe"):
        queues = tuple(f"{key}/jepsen/0" for key in operation.value)
        assigned = AssignValue(f"jepsen {operation.process}", queues=queues)
        yield lines.Assign(0, 0, operation.process, operation.type, assigned)


# elle's list-append: every queue is a list, a send appends, and each consumer reads it once.


def write_elle(history: Iterable[Line]) -> bytes:
    """Return EDN for `elle-cli --model list-append`: a send appends to the list of its queue.

    A consumer that polled a queue from its beginning without a gap becomes one read: of the list's prefix
    that it received, at the time of its last poll.
    """
    sorted_out = record(history)
    queues, ids, processes = _Numbers(), _Numbers(), _Numbers()
    read_by: dict[tuple[str, str, str], list[Read]] = defaultdict(list)
    for read in sorted_out.reads:
        if read.kind == "poll" and is_own(read.queue):
            read_by[read.group, read.client, read.queue].append(read)
    homes = {message.id: read.queue for read, message in sorted_out.sights if is_own(read.queue)}
    events: list[tuple[int, int, str, Type, list[Any]]] = []
    batches: dict[int, list[Sent]] = defaultdict(list)
    for sent in sorted_out.sends:
        batches[sent.span.start].append(sent)
    for number, (start, batch) in enumerate(batches.items()):
        span, home = batch[0].span, batch[0].queue or homes.get(batch[0].message.id, "")
        if home:
            value = [[Keyword("append"), queues[home], ids[sent.message.id]] for sent in batch]
            events.append((start, span.began, f"s{number}", Type.INVOKE, value))
            how = {Outcome.OK: Type.OK, Outcome.FAILED: Type.FAIL, Outcome.UNKNOWN: Type.INFO}[span.outcome]
            if how is not Type.INFO:
                events.append((span.end, span.ended, f"s{number}", how, value))
    for number, ((_, _, queue), polls) in enumerate(read_by.items()):
        got = [message for poll in polls for message in poll.messages]
        if got and [message.offset for message in got] == list(range(len(got))):
            last = polls[-1].span
            invoked = [[Keyword("r"), queues[queue], None]]
            value = [[Keyword("r"), queues[queue], [ids[message.id] for message in got]]]
            events.append((last.start, last.began, f"r{number}", Type.INVOKE, invoked))
            events.append((last.end, last.ended, f"r{number}", Type.OK, value))
    events.sort(key=lambda event: event[:3])
    out = [
        edn.write(
            {
                Keyword("type"): Keyword(how),
                Keyword("f"): Keyword("txn"),
                Keyword("value"): value,
                Keyword("process"): processes[process],
                Keyword("time"): time,
                Keyword("index"): index,
            }
        )
        for index, (_, time, process, how, value) in enumerate(events)
    ]
    return "".join(f"{each}\n" for each in out).encode()


# OpenChaos: a line of tab-separated columns for each request and each answer.

OPENCHAOS: Final = ("process", "kind", "f", "result", "value", "time", "key", "queue", "offset", "latency")
"""Expected columns of an OpenChaos history.

`kind` is REQUEST or RESPONSE, `f` enqueue or dequeue, `result` SUCCESS, FAILURE or UNKNOWN, `time`
milliseconds. Empty, `-` and `null` mean no value.
"""
_NOTHING: Final = frozenset({"", "-", "null"})
_RESULTS: Final = {"SUCCESS": Type.OK, "FAILURE": Type.FAIL, "UNKNOWN": Type.INFO}
_FAULT: Final = "fault"
_FAULTS: Final = {"start": "kill", "end": "start"}


@dataclass(frozen=True, slots=True)
class _Chaos:
    """One request or response of OpenChaos."""

    process: str
    request: bool
    f: str
    type: Type
    value: str
    time_ms: int
    key: str
    queue: str
    offset: int
    latency_ms: int

    @classmethod
    def of(cls, columns: Sequence[str]) -> "_Chaos":
        fields = dict(zip(OPENCHAOS, columns, strict=True))
        fields = {name: "" if text in _NOTHING else text for name, text in fields.items()}
        request = {"REQUEST": True, "RESPONSE": False}[fields["kind"]]
        return cls(
            fields["process"],
            request,
            {"enqueue": "enqueue", "dequeue": "dequeue"}[fields["f"]],
            Type.INVOKE if request else _RESULTS[fields["result"]],
            fields["value"],
            int(fields["time"]),
            fields["key"],
            f"openchaos/b/{int(fields['queue'] or 0)}",
            int(fields["offset"] or -1),
            int(fields["latency"] or 0),
        )

    def line(self, index: int) -> Line:
        time = self.time_ms * _NS
        if self.f == "enqueue":
            status = SEND_OK if self.type is Type.OK else ""
            value = SendValue("openchaos", (Message(self.value, key=self.key),))
            answer = SendValue(status=status, queue=self.queue, offset=self.offset)
            return lines.Send(index, time, self.process, self.type, value if self.request else answer)
        found = (Delivered(self.value, self.offset, key=self.key),)
        taken = found if self.value and self.type is Type.OK else ()
        popped = PopValue("openchaos", self.queue) if self.request else PopValue(messages=taken)
        return lines.Pop(index, time, self.process, self.type, popped)


def read_openchaos(path: Path) -> list[Line]:
    """Read a history file of OpenChaos: OPENCHAOS columns, and lines `fault NAME start|end TIME`.

    Its consumers take the next message of any queue, so polls have no offsets unless the columns state them.
    Contradictions in the file are refused: a response without a request, or one that is older than its
    request.

    Raises:
        HistoryError: a line has another form.
    """
    out: list[Line] = [lines.Setup(0, 0, NEMESIS, Type.INFO, SetupValue(name=path.name))]
    open_requests: dict[str, _Chaos] = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        columns = text.split("\t")
        try:
            if columns[0] == _FAULT:
                out.append(_chaos_fault(columns, len(out)))
            else:
                message = _Chaos.of(columns)
                _check_answer(message, open_requests)
                out.append(message.line(len(out)))
        except (ValueError, KeyError) as error:
            known = f"whose columns are {', '.join(OPENCHAOS)}"
            raise HistoryError(f"{path}:{number}: not a line of OpenChaos, {known}: {error!r}") from None
    return out


def _chaos_fault(columns: Sequence[str], index: int) -> Line:
    _, name, phase, moment = columns
    return lines.Fault(index, int(moment) * _NS, NEMESIS, Type.INFO, FaultValue(_FAULTS[phase], name))


def _check_answer(operation: _Chaos, open_requests: dict[str, _Chaos]) -> None:
    """Check a request or response, and update the open requests.

    Raises:
        ValueError: a request while another one is open, or a response that matches no request.
    """
    request = open_requests.pop(operation.process, None)
    if operation.request:
        if request is not None:
            raise ValueError(f"process {operation.process} has an open request already")
        open_requests[operation.process] = operation
        return
    if request is None or request.f != operation.f:
        raise ValueError(f"process {operation.process} has no open request {operation.f}")
    if operation.f == "enqueue" and operation.value != request.value:
        raise ValueError(f"the response has {operation.value[:40]!r}, the request has {request.value[:40]!r}")
    if operation.time_ms < request.time_ms or operation.latency_ms < 0:
        raise ValueError(
            f"{operation.latency_ms} ms of latency between {request.time_ms} and {operation.time_ms}"
        )
