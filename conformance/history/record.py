"""A history sorted for the rules: each operation with its beginning and its end, by what it did.

Everything is ordered by the lines' indexes; times serve only where a rule speaks of time. What is wrong with
the history itself is kept as gaps: then what no rule found cannot be called held.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeVar

import msgspec

from mqproof.conformance.history import lines
from mqproof.conformance.history.lines import (
    DEAD,
    RETRY,
    Delivered,
    Fault,
    Group,
    Line,
    Setup,
    SetupValue,
    Type,
    topic_of,
)

T = TypeVar("T")

NEVER: Final = 1 << 62
"""The end of an operation that has none, as an index and as a time."""
GAPS_MAX: Final = 8
SEND_OK: Final = "SEND_OK"
ASYNC_FLUSH: Final = "ASYNC_FLUSH"

CLOSERS: Final = {"start": frozenset({"kill", "crash_os", "lose_power", "lose_disk", "shutdown"}),
                  "resume": frozenset({"pause"}),
                  "heal": frozenset({"cut", "isolate", "lose_requests", "lose_answers", "delay", "slow_disk",
                                     "full_disk"})}  # fmt: skip
"""What ends a fault to the faults that it ends."""
SYSTEM_CRASHES: Final = frozenset({"crash_os", "lose_power"})


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "fail"
    UNKNOWN = "info"


_OUTCOMES: Final = {Type.OK: Outcome.OK, Type.FAIL: Outcome.FAILED, Type.INFO: Outcome.UNKNOWN}


class Span(msgspec.Struct, gc=False):
    """When an operation ran, whose it was and how it ended."""

    process: int | str
    start: int
    """Index of its invoke."""
    end: int
    """Index of its last line, NEVER when there is none or it is `info`: it may take effect later."""
    began: int
    ended: int
    """Nanoseconds."""
    outcome: Outcome
    error: str


class Sent(msgspec.Struct, gc=False):
    """One message of a send."""

    message: lines.Message
    topic: str
    span: Span
    status: str = ""
    queue: str = ""
    """Where it is, or without an answer where it was to be; empty when nobody was told."""
    offset: int = -1
    """-1 as long as it is not known to have a place in a queue."""
    place: int = 0
    """In its batch."""
    batch: int = 1
    """Messages in it."""
    attempts: int = 1
    offset_id: str = ""


class Read(msgspec.Struct, gc=False):
    """A poll, a pop, or a call of a listener, whose messages were handed over before it began."""

    kind: str
    """poll | consume | pop"""
    group: str
    queue: str
    client: str
    span: Span
    messages: tuple[Delivered, ...]
    at: int
    """The index from which on the messages are known to have been handed over."""
    offset: int = -1
    next: int = -1
    max: int = -1
    node: str = ""
    seek: bool = False
    invisible_ms: int = 0


class Step(msgspec.Struct, gc=False):
    """A commit, a query or any other operation of which the rules read the value as it is."""

    span: Span
    value: Any


@dataclass(slots=True)
class Events:
    """Indexes of one kind of event, rising."""

    at: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    """Of faults: when."""

    def between(self, after: int, before: int) -> bool:
        """Whether one is later than `after` and earlier than `before`."""
        place = bisect_right(self.at, after)
        return place < len(self.at) and self.at[place] < before

    def last_time(self, before: int) -> int | None:
        """When the last one earlier than that index was."""
        place = bisect_left(self.at, before)
        return self.times[place - 1] if place else None


@dataclass
class Record:
    """All operations of a history. Made by `record`; read only from then on."""

    setup: SetupValue = field(default_factory=SetupValue)
    sends: list[Sent] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    """In the order in which their messages were handed over. Those that found nothing are among them."""
    sights: "list[tuple[Read, Delivered]]" = field(default_factory=list)
    """What was read, without what was read before in the same words at the same place: most rules of places
    need no more, and a message that ten groups read is one object."""
    acks: list[Step] = field(default_factory=list)
    commits: list[Step] = field(default_factory=list)
    queries: list[Step] = field(default_factory=list)
    bounds: list[Step] = field(default_factory=list)
    assigns: list[Step] = field(default_factory=list)
    recalls: list[Step] = field(default_factory=list)
    deletions: list[Step] = field(default_factory=list)
    drains: list[Step] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    spans: list[tuple[str, str, Span]] = field(default_factory=list)
    """(f, topic, span) of everything that asked a broker, in the order of the ends."""
    gaps: list[str] = field(default_factory=list)
    """What is missing in the history; at most GAPS_MAX are told."""
    gap_count: int = 0
    operations: int = 0
    last_time: int = 0

    _made: dict[Any, Any] = field(default_factory=dict)

    def once(self, make: "Callable[[Record], T]") -> T:
        """What `make` makes of this record, made once: several rules need it."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]  # type: ignore[no-any-return]

    def group(self, name: str) -> Group:
        return self.setup.groups.get(name, _UNTOLD)

    @cached_property
    def tags(self) -> dict[str, tuple[str, ...]]:
        """Of the groups that do not subscribe to everything."""
        return {name: group.tags for name, group in self.setup.groups.items() if group.tags}

    @cached_property
    def stored(self) -> list[Sent]:
        """What was answered with one of the stored statuses."""
        return [sent for sent in self.sends if sent.span.outcome is Outcome.OK]

    @cached_property
    def placed(self) -> list[Sent]:
        """The same, as far as the place in the queue was told."""
        return [sent for sent in self.stored if sent.offset >= 0]

    @cached_property
    def by_id(self) -> dict[str, Sent]:
        """The last attempt of each message."""
        return {sent.message.id: sent for sent in self.sends}

    @cached_property
    def seen(self) -> set[str]:
        """The ids of all messages that somebody was handed."""
        return {message.id for _, message in self.sights}

    @cached_property
    def acked(self) -> dict[str, dict[int, Sent]]:
        """Queue and offset to the first send that was told so."""
        places: dict[str, dict[int, Sent]] = defaultdict(dict)
        for sent in self.placed:
            places[sent.queue].setdefault(sent.offset, sent)
        return places

    @cached_property
    def answered_again(self) -> dict[str, dict[int, list[Sent]]]:
        """The same places to the sends that were told so later, in that order; few have any."""
        places: dict[str, dict[int, list[Sent]]] = defaultdict(dict)
        for sent in self.placed:
            if self.acked[sent.queue][sent.offset] is not sent:
                places[sent.queue].setdefault(sent.offset, []).append(sent)
        return places

    @cached_property
    def known(self) -> dict[str, list[int]]:
        """Queue to the offsets that hold a message, as somebody was told or handed; rising."""
        offsets: dict[str, set[int]] = {queue: set(places) for queue, places in self.acked.items()}
        for queue, found in self.seen_places.items():
            offsets[queue] = offsets.get(queue, set()) | found
        return {queue: sorted(found) for queue, found in offsets.items()}

    @cached_property
    def seen_places(self) -> dict[str, set[int]]:
        """Queue to the offsets of which somebody was handed the message."""
        places: dict[str, set[int]] = defaultdict(set)
        for read, message in self.sights:
            places[read.queue].add(message.offset)
        return places

    @cached_property
    def crashes(self) -> Events:
        """Of the machine: what was not synced may be gone."""
        return self._faults(SYSTEM_CRASHES)

    @cached_property
    def deaths(self) -> Events:
        """Of brokers that did not end by themselves."""
        return self._faults({"kill", *SYSTEM_CRASHES})

    @cached_property
    def starts(self) -> Events:
        return self._faults({"start"})

    @cached_property
    def ends(self) -> Events:
        """Of brokers' lives, however they ended, and the beginnings of new ones."""
        return self._faults(CLOSERS["start"] | {"start", "promote"})

    @cached_property
    def losses(self) -> Events:
        """Of what a machine had, or of what a master had and its slave had not."""
        return self._faults({"lose_disk", "promote"})

    def excuse(self, sent: Sent, before: int = NEVER) -> str:
        """Why a stored message may be lost by then all the same, and another be at its place: what its status
        leaves open, and what happened."""
        after, asynchronous = sent.span.end, self.setup.flush_mode == ASYNC_FLUSH
        if self.crashes.between(after, before) and (asynchronous or sent.status == "FLUSH_DISK_TIMEOUT"):
            return "the machine crashed before it was on disk"
        single = sent.status != SEND_OK or self.setup.replication != "sync"
        if single and self.losses.between(after, before):
            return "its only replica was lost"
        return ""

    def forgets(self, after: int, before: int) -> bool:
        """Whether what was there at the first index may be gone by the second, whoever had it."""
        crashed = self.setup.flush_mode == ASYNC_FLUSH and self.crashes.between(after, before)
        return crashed or (self.setup.replication != "sync" and self.losses.between(after, before))

    def _faults(self, kinds: Iterable[str]) -> Events:
        wanted = frozenset(kinds)
        found = [fault for fault in self.faults if fault.value.kind in wanted]
        return Events([fault.index for fault in found], [fault.time for fault in found])


_UNTOLD: Final = Group()


def is_own(queue: str) -> bool:
    """A queue of a topic that applications send to: no retry topic, no dead letters."""
    return not queue.startswith((RETRY, DEAD))


def record(told: Iterable[Line]) -> Record:
    """The operations of the lines."""
    builder = _Builder()
    for line in told:
        builder.add(line)
    return builder.done()


class _Builder:
    def __init__(self) -> None:
        self.record = Record()
        self._open: dict[int | str, Any] = {}
        self._calls: dict[int | str, Span] = {}
        """Of listeners that run."""
        self._places: dict[str, dict[int, Delivered]] = defaultdict(dict)
        self._index = 0
        self._time = 0

    def add(self, line: Line) -> None:
        if line.index != self._index:
            self._gap(f"line {self._index} is missing: {line.index} comes instead")
        if line.time < self._time:
            self._gap(f"line {line.index} is older than the one before it")
        self._index, self._time = line.index + 1, line.time
        kind = type(line)
        if kind is Setup:
            self.record.setup = line.value  # type: ignore[assignment]
        elif kind is Fault:
            self.record.faults.append(line)  # type: ignore[arg-type]
        elif line.type is Type.INVOKE:
            if (before := self._open.pop(line.process, None)) is not None:
                self._gap(f"line {line.index}: {line.process} has not ended its operation of {before.index}")
                self._end(before, None)
            self._open[line.process] = line
            if isinstance(line, lines.Consume):
                self._call(line)
        else:
            invoke = self._open.pop(line.process, None)
            if type(invoke) is not kind:
                self._gap(f"line {line.index} ends an operation that {line.process} did not begin")
            else:
                self._end(invoke, line)

    def done(self) -> Record:
        for invoke in list(self._open.values()):
            self._end(invoke, None)
        self.record.last_time = self._time
        return self.record

    def _gap(self, text: str) -> None:
        self.record.gap_count += 1
        if len(self.record.gaps) < GAPS_MAX:
            self.record.gaps.append(text)

    def _end(self, invoke: Any, end: Any) -> None:
        self.record.operations += 1
        known = end is not None and end.type is not Type.INFO
        span = Span(
            invoke.process,
            invoke.index,
            end.index if known else NEVER,
            invoke.time,
            end.time if known else NEVER,
            _OUTCOMES[end.type] if end is not None else Outcome.UNKNOWN,
            "" if end is None else end.error,
        )
        getattr(self, f"_{type(invoke).__name__.lower()}")(
            span, invoke.value, None if end is None else end.value
        )

    def _send(self, span: Span, asked: lines.SendValue, told: lines.SendValue | None) -> None:
        self.record.spans.append(("send", asked.topic, span))
        # Who got no answer may have tried again and again.
        attempts = told.attempts if told is not None else _UNTOLD_ATTEMPTS
        told = told if told is not None and span.outcome is Outcome.OK else _NO_ANSWER
        batch, placed = len(asked.messages), bool(told.queue) and told.offset >= 0
        queue = told.queue or asked.queue
        for place, message in enumerate(asked.messages):
            offset = told.offset + place if placed else -1
            self.record.sends.append(
                Sent(
                    message, asked.topic, span, told.status, queue, offset, place, batch,
                    attempts, told.offset_id if place == 0 else "",
                )
            )  # fmt: skip

    def _poll(self, span: Span, asked: lines.PollValue, told: lines.PollValue | None) -> None:
        self.record.spans.append(("poll", topic_of(asked.queue), span))
        if told is not None and span.outcome is Outcome.OK:
            read = Read(
                "poll", asked.group, asked.queue, asked.client or str(span.process), span, (), span.end
            )
            read.offset, read.next, read.max = asked.offset, told.next, told.max
            read.node, read.seek = told.node, asked.seek
            self._hand(read, told.messages)

    def _pop(self, span: Span, asked: lines.PopValue, told: lines.PopValue | None) -> None:
        self.record.spans.append(("pop", topic_of(asked.queue), span))
        if told is not None and span.outcome is Outcome.OK:
            read = Read(
                "pop", asked.group, asked.queue, asked.client or str(span.process), span, (), span.end
            )
            read.invisible_ms = asked.invisible_ms
            self._hand(read, told.messages)

    def _call(self, line: lines.Consume) -> None:
        """A listener gets its messages when it is called; how that ends is filled in later."""
        value = line.value
        span = Span(line.process, line.index, NEVER, line.time, NEVER, Outcome.UNKNOWN, "")
        self._calls[line.process] = span
        client = value.client or str(line.process)
        read = Read("consume", value.group, value.queue, client, span, (), span.start)
        self._hand(read, value.messages)

    def _consume(self, span: Span, _: lines.ConsumeValue, __: lines.ConsumeValue | None) -> None:
        call = self._calls.pop(span.process)
        call.end, call.ended, call.outcome, call.error = span.end, span.ended, span.outcome, span.error

    def _hand(self, read: Read, messages: tuple[Delivered, ...]) -> None:
        self.record.reads.append(read)
        if not messages:
            return
        places, sights = self._places[read.queue], self.record.sights
        same = []
        for message in messages:
            known = places.get(message.offset)
            if known == message:
                same.append(known)
                continue
            if known is None:
                places[message.offset] = message
            sights.append((read, message))
            same.append(message)
        read.messages = tuple(same)

    def _query(self, span: Span, asked: lines.QueryValue, told: lines.QueryValue | None) -> None:
        if told is not None and span.outcome is Outcome.OK:
            value = lines.QueryValue(asked.group, asked.queue, told.offset, asked.client)
            self.record.queries.append(Step(span, value))

    def _bounds(self, span: Span, asked: lines.BoundsValue, told: lines.BoundsValue | None) -> None:
        if told is not None and span.outcome is Outcome.OK:
            value = lines.BoundsValue(asked.queue, told.min, told.max, told.node)
            self.record.bounds.append(Step(span, value))

    def _ack(self, span: Span, asked: Any, _: Any) -> None:
        self.record.acks.append(Step(span, asked))

    def _commit(self, span: Span, asked: Any, _: Any) -> None:
        self.record.commits.append(Step(span, asked))

    def _assign(self, span: Span, asked: Any, _: Any) -> None:
        self.record.assigns.append(Step(span, asked))

    def _recall(self, span: Span, asked: Any, _: Any) -> None:
        self.record.recalls.append(Step(span, asked))

    def _deletetopic(self, span: Span, asked: Any, _: Any) -> None:
        self.record.deletions.append(Step(span, asked))

    def _drain(self, span: Span, asked: Any, _: Any) -> None:
        self.record.drains.append(Step(span, asked))


_UNTOLD_ATTEMPTS: Final = 2
_NO_ANSWER: Final = lines.SendValue()
