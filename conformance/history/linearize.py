"""Queue linearizability of a complete history with distinct values, in O(n log n).

A history of a queue is linearizable when every operation can be given one instant within its interval, so
that in the order of the instants it is a queue: what is taken out is the oldest that is in it, and `empty` is
answered only when nothing is. With distinct values that fails in one of four ways (Henzinger, Sezgin,
Vafeiadis, CONCUR 2013: "Aspect-oriented linearizability proofs"), each shown by one or two operations, or for
`empty` by a chain of them: a value is taken that was not put; it is taken twice, which is for the caller to
see, for then values are not distinct; two values overtake each other; the queue is called empty while it
cannot be.

If none of them is there, the order of the values and an instant for each operation are the certificate, and
`certified` checks it without a thought about how it was found.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple

NEVER: Final = 1 << 62
_PUT_START: Final = 1  # places in an Element
_PUT_END: Final = 2


class Element(NamedTuple):
    """A value's life: the intervals in which it was put and taken. All ends are distinct numbers.

    A put of which nobody knows whether it happened ends NEVER, or is left out when its value was not taken.
    A value that was not taken has NEVER for both of its last numbers.
    """

    value: str
    put_start: int
    put_end: int
    take_start: int = NEVER
    take_end: int = NEVER


class Empty(NamedTuple):
    """The queue was said to be empty."""

    start: int
    end: int


class Violation(NamedTuple):
    """Why there is no order: the fewest operations that show it."""

    kind: str
    """fresh: taken before it was put. order: the first was put before the second and is taken after it, or
    not at all. empty: the elements are in the queue one after the other all the time."""
    elements: tuple[Element, ...]
    empty: Empty | None = None


class Kind(StrEnum):
    PUT = "put"
    TAKE = "take"
    EMPTY = "empty"


class Step(NamedTuple):
    """An operation takes effect."""

    kind: Kind
    number: int
    """Of the element, or of the empty answer, in the order in which they were given."""
    instant: int


Certificate = tuple[Step, ...]
"""Every put, every take and every empty answer, in an order that is a queue's."""


def linearize(elements: Sequence[Element], empties: Sequence[Empty] = ()) -> Certificate | Violation:
    """An order of the operations that is a queue's, or the operations that show that there is none."""
    judged = _judge(elements, empties)
    return judged if isinstance(judged, Violation) else _certificate(*judged)


def violation(elements: Sequence[Element], empties: Sequence[Empty] = ()) -> Violation | None:
    """The operations that show that there is no such order, without looking for it."""
    judged = _judge(elements, empties)
    return judged if isinstance(judged, Violation) else None


def _judge(
    elements: Sequence[Element], empties: Sequence[Empty]
) -> tuple[list[Element], list[int]] | Violation:
    """The elements with no more than possible instants, and an instant for each empty answer."""
    sound = []
    for element in elements:
        value, put_start, put_end, take_start, take_end = element
        if take_end < put_start:
            return Violation("fresh", (element,))
        # A put takes effect before the take of its value does.
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
    """Going through the puts in time, the put that ended before and is taken last must not be taken later."""
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


class _Cover:
    """The times at which the queue cannot be empty: each value surely is in it from the end of its put to the
    beginning of its take."""

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
        """An instant of the answer at which the queue can be empty: the first."""
        place = bisect_right(self._start, empty.start) - 1
        if place < 0 or self._end[place] <= empty.start:
            return empty.start
        return self._end[place] if self._end[place] <= empty.end else None

    def chain(self, empty: Empty) -> tuple[Element, ...]:
        """Few elements that cover the answer: each reaches furthest of those that begin in time."""
        chain: list[Element] = []
        reached, place = empty.start, 0
        while not chain or reached <= empty.end:
            best: Element | None = None
            while place < len(self._surely) and self._surely[place].put_end <= reached:
                if best is None or self._surely[place].take_start > best.take_start:
                    best = self._surely[place]
                place += 1
            assert best is not None, "the answer is covered"
            chain.append(best)
            reached = best.take_start
        return tuple(chain)


def _certificate(elements: Sequence[Element], empties: Sequence[int]) -> Certificate:
    """Segments end where the queue was called empty; an element is in the last in which it may be taken.
    Within a segment everything takes effect as early as the order of the elements allows."""
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
    """The members so that none comes after one whose put, or whose take, began after its own had ended."""
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
    """Whether the steps are a queue's, each operation has its own, and each is within its interval."""
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
