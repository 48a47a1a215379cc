"""Which copies on their way explain what was read (reference/delay.py).

When exactly a copy was stored is not known, only that it was during its request; so it may be read from the
earliest such time plus its delay on, and must be from the latest on, with some slack. A request that was not
waited for has put a copy or has not, until one is read or can no more come.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from conformance.retry.steps import Operation, Read, Send, SendBack
from conformance.retry.target import RETRIES_MAX, Answer, Place, Setup, Span
from conformance.stepped import Explanation
from reference import delay


class Way(NamedTuple):
    """A copy that nobody has read yet."""

    msg_id: str
    times: int
    place: Place
    earliest_s: float
    latest_s: float


State = tuple[Way, ...]
"""Sorted."""


def bound_for(setup: Setup, operation: SendBack) -> tuple[Place, float]:
    """Where the copy goes, and how long that takes."""
    copy = operation.copy
    assert copy is not None
    most = RETRIES_MAX if operation.times_max is None else operation.times_max
    level = delay.send_back_level(operation.level, copy.times, most)
    return (Place.DEAD, 0.0) if level is None else (Place.RETRY, wait_s(setup, level))


def wait_s(setup: Setup, level: int) -> float:
    """How long a message of that level waits; the last level stands for those beyond."""
    return setup.levels_s[delay.clamped(level) - 1] if level else 0.0


def explanation(setup: Setup, retry_queues: int) -> Explanation[State, Operation]:
    return Explanation(((),), partial(_after, setup, retry_queues), _tell, _action)


def _after(setup: Setup, retry_queues: int, state: State, operation: Operation) -> Iterable[State]:
    match operation:
        case Send(msg_id, level, _, span):
            return (_with(state, setup, msg_id, 0, Place.TOPIC, span, wait_s(setup, level)),)
        case SendBack(copy=None, answer=answer):
            return (state,) if answer is not Answer.OK or not retry_queues else ()
        case SendBack(copy=copy, answer=answer, span=span) if copy is not None:
            if answer is Answer.REFUSED:
                return ()  # nothing speaks against it
            if not retry_queues:
                return (state,)  # the group wants no retries
            put = _with(state, setup, copy.msg_id, copy.times + 1, *_swapped(setup, operation, span))
            return (put,) if answer is Answer.OK else (state, put)
        case Read():
            return _read(setup, state, operation)
    return (state,)


def _swapped(setup: Setup, operation: SendBack, span: Span) -> tuple[Place, Span, float]:
    place, waits_s = bound_for(setup, operation)
    return place, span, waits_s


def _with(
    state: State, setup: Setup, msg_id: str, times: int, place: Place, span: Span, waits_s: float
) -> State:
    way = Way(
        msg_id, times, place, span.begin_s + waits_s - setup.clock_s, span.end_s + waits_s + setup.slack_s
    )
    return tuple(sorted((*state, way)))


def _read(setup: Setup, state: State, read: Read) -> tuple[State, ...]:
    """Each copy takes the way that was due first; whatever is left can have had more time to come."""
    left = list(state)
    for copy in read.copies:
        ways = [way for way in left if (way.msg_id, way.times, way.place) == (*copy[:2], read.place)]
        if not ways or copy.topic != setup.topic or ways[0].earliest_s > read.span.end_s:
            return ()
        left.remove(ways[0])
    late = any(way.place is read.place and way.latest_s < read.span.begin_s for way in left)
    return () if late else (tuple(left),)


def _tell(state: State) -> str:
    told = [
        f"{way.msg_id} (retry {way.times}) to the {way.place} from {way.earliest_s:.3f} s on" for way in state
    ]
    return "on their way: " + (", ".join(told) or "nothing")


def _action(operation: Operation) -> str:
    """Of Delivery.tla; looking takes none."""
    match operation:
        case Send() | SendBack():
            return "Store"
        case Read(copies=copies) if copies:
            return "Deliver"
    return "(a look)"
