"""Decides at which requests faults act, from the seed and the requests alone.

Requests are numbered in streams: those of one point about one broker, topic, queue and group. For each
fault, the number of the next request of a stream at which it acts is drawn in advance. The decision therefore
depends on the seed, the fault, the stream and the request's number in it, and on nothing else: not on time,
not on connections, and not on other streams. Only a `limit` counts over all streams, in the order of the
requests.
"""

import math
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from mqproof.impl.chaos.fault_table import ANY_OF, Point
from mqproof.impl.chaos.plan import Plan, PlannedFault

NEVER: Final = 1 << 62
STREAMS_MAX: Final = 100_000
"""The most streams that are kept. Later streams share one for each point and broker."""
CONSECUTIVE_MAX: Final = 5
"""The most consecutive requests of a stream at which faults act: progress is always possible."""


class Subject(NamedTuple):
    """What a request is about. A name that the request does not have is empty."""

    broker: str
    topic: str = ""
    queue: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Firing:
    """A fault that acts at one request."""

    fault: PlannedFault
    index: int
    """The place of the fault in its plan."""
    subject: Subject
    number: int
    """The number of the request in its stream, from 1."""
    seed: int

    @property
    def name(self) -> str:
        return self.fault.kind.name

    def uniform(self, purpose: str) -> float:
        """Return a number in [0, 1) that is drawn for this request and this purpose."""
        return _uniform(self.seed, self.name, self.index, *self.subject, self.number, purpose)

    @property
    def delay_ms(self) -> int:
        """The duration of the fault."""
        low, high = self.fault.delay_ms
        return low + int(self.uniform("delay") * (high - low + 1))


@dataclass(slots=True)
class _Slot:
    """One fault in one stream."""

    index: int
    fault: PlannedFault
    next: int


@dataclass(slots=True)
class Stream:
    """The requests of one point about one subject."""

    subject: Subject
    slots: list[_Slot]
    count: int = 0
    next: int = NEVER
    """The number of the next request at which a fault may act."""
    consecutive: int = 0
    last: int = -1
    """The number of the last request at which a fault acted."""


@dataclass
class Draws:
    """The streams of a run, and how often each fault acted."""

    plan: Plan
    is_calm: bool = False
    """Whether no fault acts any more."""
    counts: dict[str, int] = field(default_factory=dict)
    """How often each fault acted, by name."""
    _used: list[int] = field(init=False)
    _streams: dict[tuple[Point, Subject], Stream] = field(default_factory=dict)
    _of_point: dict[Point, list[tuple[int, PlannedFault]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._used = [0] * len(self.plan.faults)
        for index, fault in enumerate(self.plan.faults):
            points = ANY_OF if fault.kind.point is Point.ANY else {fault.kind.point}
            for point in points:
                self._of_point.setdefault(point, []).append((index, fault))

    def has(self, point: Point) -> bool:
        """Return whether any fault may act at this point."""
        return point in self._of_point

    def remembers(self, point: Point) -> bool:
        """Return whether a fault at this point uses earlier answers."""
        return any(fault.kind.uses_earlier for _, fault in self._of_point.get(point, ()))

    def draw(self, point: Point, subject: Subject) -> Firing | None:
        """Count one request, and return the fault that may act on it, if there is one."""
        stream = self._streams.get((point, subject)) or self._new(point, subject)
        stream.count += 1
        if stream.count < stream.next or self.is_calm:
            return None
        return self._fire(stream)

    def took_effect(self, firing: Firing) -> None:
        """Count a fault that changed something."""
        self.counts[firing.name] = self.counts.get(firing.name, 0) + 1

    def had_no_effect(self, firing: Firing) -> None:
        """Take back a fault that could not act on its request, so that it does not count for the limit."""
        self._used[firing.index] -= 1

    def _fire(self, stream: Stream) -> Firing | None:
        number, acting = stream.count, None
        may_act = stream.consecutive < CONSECUTIVE_MAX or stream.last < number - 1
        for slot in stream.slots:
            if slot.next > number:
                continue
            limit = slot.fault.limit
            if acting is None and may_act and (limit is None or self._used[slot.index] < limit):
                acting = slot
                self._used[slot.index] += 1
                slot.next = self._following(slot, stream.subject, number + slot.fault.spacing)
            else:
                slot.next = self._following(slot, stream.subject, number)
        stream.next = min((slot.next for slot in stream.slots), default=NEVER)
        if acting is None:
            return None
        stream.consecutive = stream.consecutive + 1 if stream.last == number - 1 else 1
        stream.last = number
        return Firing(acting.fault, acting.index, stream.subject, number, self.plan.seed)

    def _following(self, slot: _Slot, subject: Subject, after: int) -> int:
        """Return the number of the next request after that one at which the fault acts."""
        fault = slot.fault
        if fault.at:
            return next((number for number in fault.at if number > after), NEVER)
        if fault.probability <= 0:
            return NEVER
        if fault.probability >= 1:
            return after + 1
        drawn = _uniform(self.plan.seed, fault.kind.name, slot.index, *subject, after)
        return after + 1 + int(math.log(1 - drawn) / math.log(1 - fault.probability))

    def _new(self, point: Point, subject: Subject) -> Stream:
        if len(self._streams) >= STREAMS_MAX:
            subject = Subject(subject.broker)
            if known := self._streams.get((point, subject)):
                return known
        stream = Stream(subject, [])
        for index, fault in self._of_point.get(point, ()):
            if fault.matches(subject.broker, subject.topic, subject.group):
                slot = _Slot(index, fault, 0)
                slot.next = self._following(slot, subject, fault.skip)
                stream.slots.append(slot)
        stream.next = min((slot.next for slot in stream.slots), default=NEVER)
        self._streams[point, subject] = stream
        return stream


def _uniform(*parts: object) -> float:
    """Return a number in [0, 1) that is a function of the parts."""
    digest = blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)
