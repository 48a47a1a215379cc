"""A history sorted for the rules: operations by type, each with its beginning and end.

Everything is ordered by the indexes of the lines; times are used only by rules about time. Defects of the
history itself are recorded as gaps: with gaps, no rule can be `held`.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from mqproof.conformance.history import lines
from mqproof.conformance.history.lines import (
    DEAD,
    RETRY,
    Delivered,
    Fault,
    Group,
    SetupValue,
    topic_of,
)

T = TypeVar("T")
Reason = tuple[str, int]
"""A kind of cause, and the index of the line that shows it."""

NEVER: Final = 1 << 62
"""The end of an operation that has none, as an index and as a time."""
GAPS_MAX: Final = 8
SEND_OK: Final = "SEND_OK"
ASYNC_FLUSH: Final = "ASYNC_FLUSH"

CLOSERS: Final = {"start": frozenset({"kill", "crash_os", "lose_power", "lose_disk", "shutdown"}),
                  "resume": frozenset({"pause"}),
                  "heal": frozenset({"cut", "isolate", "lose_requests", "lose_answers", "delay", "slow_disk",
                                     "full_disk"})}  # fmt: skip
"""Maps an event that ends faults to the faults that it ends."""
SYSTEM_CRASHES: Final = frozenset({"crash_os", "lose_power"})


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "fail"
    UNKNOWN = "info"


# In Python 3.11, a member of an enumeration takes several times as long as a name, and the loops are long.
OK: Final = Outcome.OK
FAILED: Final = Outcome.FAILED
UNKNOWN: Final = Outcome.UNKNOWN


class Span(msgspec.Struct, gc=False):
    """The interval, process and outcome of an operation."""

    process: int | str
    start: int
    """The index of the operation's invoke line."""
    end: int
    """Index of its last line. NEVER if there is none or it is `info`: the operation may take effect later."""
    began: int
    ended: int
    """When the operation ended, in nanoseconds."""
    outcome: Outcome
    error: str
    f: str = ""
    """The kind of a request to a broker: send | poll | pop. Empty for other operations."""
    topic: str = ""
    last: int = NEVER
    """Index of its last line of any type. NEVER if there is none."""


class Sent(msgspec.Struct, gc=False):
    """One message of a send."""

    message: lines.Message
    topic: str
    span: Span
    status: str = ""
    queue: str = ""
    """The queue of the message; without a response, the requested queue. Empty if neither is known."""
    offset: int = -1
    """The message's queue offset; -1 if it is not known."""
    place: int = 0
    """The message's index within its batch."""
    batch: int = 1
    """Number of messages in the batch."""
    attempts: int = 1
    offset_id: str = ""


class Read(msgspec.Struct, gc=False):
    """A poll, a pop, or a call of a listener, which receives its messages before the call begins."""

    kind: str
    """poll | consume | pop"""
    group: str
    queue: str
    client: str
    span: Span
    messages: tuple[Delivered, ...]
    at: int
    """The index from which the messages are known to be delivered."""
    offset: int = -1
    next: int = -1
    max: int = -1
    node: str = ""
    seek: bool = False
    invisible_ms: int = 0


class Step(msgspec.Struct, gc=False):
    """A commit, a query or another operation whose value the rules read unchanged."""

    span: Span
    value: Any


@dataclass(slots=True)
class Events:
    """Indexes of one kind of event, ascending."""

    at: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    """Times of the events; only for faults."""

    def between(self, after: int, before: int) -> bool:
        """Return whether an event lies strictly between the two indexes."""
        return self.first(after, before) is not None

    def first(self, after: int, before: int = NEVER) -> int | None:
        """Return the first event strictly between the two indexes, or None."""
        place = bisect_right(self.at, after)
        return self.at[place] if place < len(self.at) and self.at[place] < before else None

    def last_time(self, before: int) -> int | None:
        """Return the time of the last event before the index, or None."""
        place = bisect_left(self.at, before)
        return self.times[place - 1] if place else None


class Elsewhere(NamedTuple):
    """Where a message was read in other parts of a history."""

    at: int
    """The index of its first read there."""
    groups: dict[str, int]
    """The same for each group that drains."""


@dataclass
class Record:
    """All operations of a history, or of one part of it. Built by `pairing.record`, and read-only afterwards.

    A part has what the rules need to know of the other parts: `foreign`, `elsewhere`, and properties that are
    set to those of the whole history.
    """

    setup: SetupValue = field(default_factory=SetupValue)
    sends: list[Sent] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    """All reads, also those that found nothing, in the order in which their messages were delivered."""
    sights: "list[tuple[Read, Delivered]]" = field(default_factory=list)
    """Deliveries, without exact repetitions at a place where no other message was delivered.

    Most rules about places need no more, and a message that ten groups read is one object.
    """
    places: "dict[str, dict[int, tuple[Read, Delivered]]]" = field(default_factory=lambda: defaultdict(dict))
    """Maps queue and offset to the first of these deliveries there."""
    acks: list[Step] = field(default_factory=list)
    commits: list[Step] = field(default_factory=list)
    queries: list[Step] = field(default_factory=list)
    bounds: list[Step] = field(default_factory=list)
    assigns: list[Step] = field(default_factory=list)
    recalls: list[Step] = field(default_factory=list)
    deletions: list[Step] = field(default_factory=list)
    drains: list[Step] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    """All requests to brokers, in the order of their ends."""
    gaps: list[str] = field(default_factory=list)
    """Missing or inconsistent lines; at most GAPS_MAX are listed."""
    gap_count: int = 0
    operations: int = 0
    last_time: int = 0
    foreign: set[int] = field(default_factory=set)
    """The starts of sends that another part judges; a message that was read in this part is theirs."""
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    """The messages of this part's sends that were read in other parts."""

    _made: dict[Any, Any] = field(default_factory=dict)

    def gap(self, text: str) -> None:
        """Count a defect of the lines."""
        self.gap_count += 1
        if len(self.gaps) < GAPS_MAX:
            self.gaps.append(text)

    def once(self, make: "Callable[[Record], T]") -> T:
        """Return `make(self)`, computed only once: several rules need it."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]  # type: ignore[no-any-return]

    def group(self, name: str) -> Group:
        return self.setup.groups.get(name, _UNNAMED)

    @cached_property
    def tags(self) -> dict[str, tuple[str, ...]]:
        """The tags of the groups that do not subscribe to everything."""
        return {name: group.tags for name, group in self.setup.groups.items() if group.tags}

    @cached_property
    def broadcasts(self) -> set[str]:
        return {name for name, group in self.setup.groups.items() if group.broadcast}

    @cached_property
    def polls(self) -> list[Read]:
        return [read for read in self.reads if read.kind == "poll"]

    @cached_property
    def calls(self) -> list[Read]:
        """All calls of listeners."""
        return [read for read in self.reads if read.kind == "consume"]

    @cached_property
    def orderly_calls(self) -> list[Read]:
        """The calls of orderly listeners."""
        orderly = {name for name, group in self.setup.groups.items() if group.orderly}
        return [read for read in self.calls if read.group in orderly]

    @cached_property
    def received(self) -> list[Read]:
        """The reads that found messages."""
        return [read for read in self.reads if read.messages]

    @cached_property
    def stored(self) -> list[Sent]:
        """Sends that were answered with one of the stored statuses."""
        foreign = self.foreign
        if foreign:
            return [s for s in self.sends if s.span.outcome is OK and s.span.start not in foreign]
        return [sent for sent in self.sends if sent.span.outcome is OK]

    @cached_property
    def placed(self) -> list[Sent]:
        """Stored sends whose place in the queue is known."""
        return [sent for sent in self.stored if sent.offset >= 0]

    @cached_property
    def by_id(self) -> dict[str, Sent]:
        """The last attempt of each message."""
        return {sent.message.id: sent for sent in self.sends}

    @cached_property
    def seen(self) -> set[str]:
        """The ids of all messages that were delivered to any client."""
        return {message.id for _, message in self.sights} | self.elsewhere.keys()

    @cached_property
    def acked(self) -> dict[str, dict[int, Sent]]:
        """Maps queue and offset to the first send that was acknowledged there."""
        places: dict[str, dict[int, Sent]] = defaultdict(dict)
        for sent in self.placed:
            places[sent.queue].setdefault(sent.offset, sent)
        return places

    @cached_property
    def answered_again(self) -> dict[str, dict[int, list[Sent]]]:
        """Maps the same places to the sends acknowledged there later, in order; few places have any."""
        places: dict[str, dict[int, list[Sent]]] = defaultdict(dict)
        for sent in self.placed:
            if self.acked[sent.queue][sent.offset] is not sent:
                places[sent.queue].setdefault(sent.offset, []).append(sent)
        return places

    @cached_property
    def known(self) -> dict[str, list[int]]:
        """Maps a queue to the offsets known to hold a message, by acknowledgement or delivery; ascending."""
        offsets: dict[str, set[int]] = {queue: set(places) for queue, places in self.acked.items()}
        for queue, found in self.places.items():
            offsets.setdefault(queue, set()).update(found)
        return {queue: sorted(found) for queue, found in offsets.items()}

    @cached_property
    def are_keys_unique(self) -> bool:
        """Return whether no two sends have a message of the same key, so that `by_id` contains all sends."""
        return len(self.by_id) == len(self.sends)

    @cached_property
    def moves(self) -> list[tuple[str, int]]:
        """The groups whose offsets a client sets, and the index at which it begins: resets and seeks."""
        resets = [(step.value.group, step.span.start) for step in self.commits if step.value.reset]
        return resets + [(read.group, read.span.start) for read in self.reads if read.seek]

    @cached_property
    def last_reads(self) -> dict[str, int]:
        """Maps a topic to the time at which the last read from it began."""
        return {topic_of(read.queue): read.span.began for read in self.reads}

    @cached_property
    def delayed_topics(self) -> set[str]:
        """The topics to which delayed messages were sent."""
        return {sent.topic for sent in self.sends if sent.message.deliver_at}

    @cached_property
    def asked(self) -> int:
        """The number of sends and polls."""
        return sum(span.f != "pop" for span in self.spans)

    @cached_property
    def crashes(self) -> Events:
        """Crashes of the machine: data that was not synced may be lost."""
        return self._faults(SYSTEM_CRASHES)

    @cached_property
    def deaths(self) -> Events:
        """Ends of brokers that were not shut down: kills and crashes."""
        return self._faults({"kill", *SYSTEM_CRASHES})

    @cached_property
    def starts(self) -> Events:
        return self._faults({"start"})

    @cached_property
    def ends(self) -> Events:
        """All events that stop a broker, by shutdown or failure, and its starts and promotions."""
        return self._faults(CLOSERS["start"] | {"start", "promote"})

    @cached_property
    def losses(self) -> Events:
        """Losses of a machine's disk, or of a master's data that its slave did not have."""
        return self._faults({"lose_disk", "promote"})

    def excuse(self, sent: Sent, before: int = NEVER) -> Reason | None:
        """Return the fault by which a stored message may be lost, so that another may be at its place."""
        return self._loss(sent.status, sent.span.end, before)

    def forgets(self, after: int, before: int) -> Reason | None:
        """Return the fault by which data that existed at the first index may be lost by the second."""
        return self._loss(SEND_OK, after, before)

    def _loss(self, status: str, after: int, before: int) -> Reason | None:
        """Return the first fault between that may lose data stored with this status."""
        asynchronous = self.setup.flush_mode == ASYNC_FLUSH or status == "FLUSH_DISK_TIMEOUT"
        single = self.setup.replication != "sync" or status != SEND_OK
        for events, may_lose in ((self.crashes, asynchronous), (self.losses, single)):
            if may_lose and (index := events.first(after, before)) is not None:
                return "fault", index
        return None

    def _faults(self, kinds: Iterable[str]) -> Events:
        wanted = frozenset(kinds)
        found = [fault for fault in self.faults if fault.value.kind in wanted]
        return Events([fault.index for fault in found], [fault.time for fault in found])


_UNNAMED: Final = Group()


def is_own(queue: str) -> bool:
    """Return whether the queue is of an application's topic: not a retry topic or dead letters."""
    return not queue.startswith((RETRY, DEAD))
