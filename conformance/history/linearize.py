"""Queue linearizability of a complete history with distinct values, in O(n log n).

A history of a queue is linearizable if every operation can be assigned an instant within its interval, so
that the order of the instants is a valid queue order. In a valid order, a take returns the oldest value, and
`empty` is answered only if the queue is empty. With distinct values, this fails in one of four ways
(Henzinger, Sezgin, Vafeiadis, CONCUR 2013: "Aspect-oriented linearizability proofs"):

- A value is taken that was not put.
- A value is taken twice; the caller must check this, because values are then not distinct.
- Two values overtake each other.
- The queue is reported empty while it cannot be.

One or two operations show each of these; for `empty`, a chain of operations does.

If no violation occurs, the order of the values and an instant for each operation are the certificate.
`certified` verifies it independently of how it was found.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple

NEVER: Final = 1 << 62
_PUT_START: Final = 1  # indexes in an Element
_PUT_END: Final = 2


class Element(NamedTuple):
    """The intervals in which a value was put and taken. All ends are distinct numbers.

    A put whose outcome is unknown ends NEVER, or is left out if its value was not taken. A value that was not
    taken has NEVER for both of its last numbers.
    """

    value: str
    put_start: int
    put_end: int
    take_start: int = NEVER
    take_end: int = NEVER


class Empty(NamedTuple):
    """An answer that the queue is empty."""

    start: int
    end: int


class Violation(NamedTuple):
    """The reason why there is no order: the fewest operations that show it."""

    kind: str
    """The kind of violation.

    - fresh: a value is taken before it was put.
    - order: the first value was put before the second, and is taken after it or not at all.
    - empty: the elements together keep the queue non-empty for the whole interval.
    """
    elements: tuple[Element, ...]
    empty: Empty | None = None


class Kind(StrEnum):
    PUT = "put"
    TAKE = "take"
    EMPTY = "empty"


class Step(NamedTuple):
    """The instant at which an operation takes effect."""

    kind: Kind
    number: int
    """Index of the element or of the empty answer, in the given sequences."""
    instant: int


Certificate = tuple[Step, ...]
"""Every put, every take and every empty answer, in a valid queue order."""


def linearize(elements: Sequence[Element], empties: Sequence[Empty] = ()) -> Certificate | Violation:
    """Return a valid queue order of the operations, or the operations that show that there is none."""
    judged = _judge(elements, empties)
    return judged if isinstance(judged, Violation) else _certificate(*judged)


def violation(elements: Sequence[Element], empties: Sequence[Empty] = ()) -> Violation | None:
    """Return operations that show that there is no such order, without constructing an order."""
    judged = _judge(elements, empties)
    return judged if isinstance(judged, Violation) else None


def _judge(
    elements: Sequence[Element], empties: Sequence[Empty]
) -> tuple[list[Element], list[int]] | Violation:
    """Return the elements with their intervals reduced to possible instants, and an instant for each `empty`.

    If there is no order, return the violation instead.
    """
    sound = []
    for element in elements:
        value, put_start, put_end, take_start, take_end = element
        if take_end < put_start:
            return Violation("fresh", (element,))
        # A put takes effect before the take of its value.
        if take_end < put_end or take_start < put_start:
            element = Element(value, put_start, min(put_end, take_end), max(take_start, put_start), take_end)
        sound.append(element)
    if overtaking := _overtaking(sound):
        return overtaking
    instants: list[int] = []
    covers = _Cover(sound) if empties else None
    for empty in empties:
        assert covers is not None
        instant = covers.gap(empty)
        if instant is None:
            return Violation("empty", covers.chain(empty), empty)
        instants.append(instant)
    return sound, instants


def _overtaking(elements: Sequence[Element]) -> Violation | None:
    """Return a violation if a value was put before another and taken after it.

    The puts are visited in time order. Of the puts that ended earlier, the one taken last must not be taken
    later than the current value.
    """
    if _is_in_order(elements):
        return None
    by_end = sorted(elements, key=itemgetter(_PUT_END))
    latest, place = None, 0
    for element in sorted(elements, key=itemgetter(_PUT_START)):
        while place < len(by_end) and by_end[place].put_end < element.put_start:
            if latest is None or by_end[place].take_start > latest.take_start:
                latest = by_end[place]
            place += 1
        if latest is not None and latest.take_start > element.take_end:
            return Violation("order", (latest, element))
    return None


def _is_in_order(elements: Sequence[Element]) -> bool:
    """Return whether each element may be put and taken after all elements before it in the sequence.

    Then no two elements overtake each other. This is the case if the sequence has the order of a sound queue.
    """
    put_start = take_start = -1
    for _, began_put, ended_put, began_take, ended_take in elements:
        if ended_put < put_start or ended_take < take_start:
            return False
        if began_put > put_start:
            put_start = began_put
        if began_take > take_start:
            take_start = began_take
    return True


class _Cover:
    """The times at which the queue cannot be empty.

    Each value is certainly in the queue from the end of its put to the beginning of its take.
    """

    def __init__(self, elements: Sequence[Element]) -> None:
        surely = [element for element in elements if element.put_end < element.take_start]
        self._surely = sorted(surely, key=itemgetter(_PUT_END))
        self._start: list[int] = []
        self._end: list[int] = []
        for element in self._surely:
            if self._end and element.put_end < self._end[-1]:
                self._end[-1] = max(self._end[-1], element.take_start)
            else:
                self._start.append(element.put_end)
                self._end.append(element.take_start)

    def gap(self, empty: Empty) -> int | None:
        """Return the first instant within the answer at which the queue can be empty, or None."""
        place = bisect_right(self._start, empty.start) - 1
        if place < 0 or self._end[place] <= empty.start:
            return empty.start
        return self._end[place] if self._end[place] <= empty.end else None

    def chain(self, empty: Empty) -> tuple[Element, ...]:
        """Return few elements that cover the answer: greedily, the one that reaches furthest."""
        chain: list[Element] = []
        reached, place = empty.start, 0
        while not chain or reached <= empty.end:
            best: Element | None = None
            while place < len(self._surely) and self._surely[place].put_end <= reached:
                if best is None or self._surely[place].take_start > best.take_start:
                    best = self._surely[place]
                place += 1
            assert best is not None, "no element covers the interval of the empty answer"
            chain.append(best)
            reached = best.take_start
        return tuple(chain)


def _certificate(elements: Sequence[Element], empties: Sequence[int]) -> Certificate:
    """Return a certificate.

    Segments end where the queue was reported empty; an element belongs to the last segment in which it may be
    taken. Within a segment, everything takes effect as early as the order of the elements allows.
    """
    answers = sorted(range(len(empties)), key=empties.__getitem__)
    instants = [empties[number] for number in answers]
    segments: list[list[int]] = [[] for _ in range(len(instants) + 1)]
    for number, element in enumerate(elements):
        segments[bisect_left(instants, element.take_start)].append(number)
    steps: list[Step] = []
    put_at = take_at = 0
    for segment, members in enumerate(segments):
        puts, takes = [], []
        for number in _topological(members, elements):
            element = elements[number]
            put_at = max(put_at, element.put_start)
            puts.append(Step(Kind.PUT, number, put_at))
            if element.take_start < NEVER:
                take_at = max(take_at, element.take_start, put_at)
                takes.append(Step(Kind.TAKE, number, take_at))
        steps += heapq.merge(puts, takes, key=lambda step: (step.instant, step.kind is Kind.TAKE))
        if segment < len(answers):
            put_at = take_at = instants[segment]
            steps.append(Step(Kind.EMPTY, answers[segment], put_at))
    return tuple(steps)


def _topological(members: Sequence[int], elements: Sequence[Element]) -> list[int]:
    """Order the members so that none comes after one whose put or take began after its own had ended."""
    intervals = [(elements[n].put_start, elements[n].put_end, elements[n].take_start, elements[n].take_end)
                 for n in members]  # fmt: skip
    every = range(len(members))
    starts = [sorted(every, key=lambda i, of=of: intervals[i][of]) for of in (0, 2)]  # type: ignore[misc]
    ends = [sorted(every, key=lambda i, of=of: intervals[i][of]) for of in (1, 3)]  # type: ignore[misc]
    began, ended = [0, 0], [0, 0]
    waits, placed = [2] * len(members), [False] * len(members)
    order: list[int] = []
    ready: list[int] = []
    while len(order) < len(members):
        for which in (0, 1):
            while placed[ends[which][ended[which]]]:
                ended[which] += 1
            first_end = intervals[ends[which][ended[which]]][2 * which + 1]
            while began[which] < len(members):
                i = starts[which][began[which]]
                if intervals[i][2 * which] > first_end:
                    break
                began[which] += 1
                waits[i] -= 1
                if not waits[i]:
                    ready.append(i)
        i = ready.pop()
        placed[i] = True
        order.append(members[i])
    return order


def certified(certificate: Certificate, elements: Sequence[Element], empties: Sequence[Empty] = ()) -> bool:
    """Return whether the certificate proves that the history is one of a first-in, first-out queue.

    Each operation must occur once, at an instant within its interval.
    """
    queue: deque[int] = deque()
    done: dict[Kind, set[int]] = {kind: set() for kind in Kind}
    now = 0
    for kind, number, instant in certificate:
        if instant < now or number in done[kind]:
            return False
        now = instant
        done[kind].add(number)
        if kind is Kind.EMPTY:
            sound = not queue and empties[number].start <= instant <= empties[number].end
        elif kind is Kind.PUT:
            queue.append(number)
            sound = elements[number].put_start <= instant <= elements[number].put_end
        else:
            sound = bool(queue) and queue.popleft() == number
            sound = sound and elements[number].take_start <= instant <= elements[number].take_end
        if not sound:
            return False
    taken = {number for number, element in enumerate(elements) if element.take_start < NEVER}
    everything = set(range(len(elements))), taken, set(range(len(empties)))
    return everything == (done[Kind.PUT], done[Kind.TAKE], done[Kind.EMPTY])
