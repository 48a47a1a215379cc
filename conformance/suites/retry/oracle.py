"""Which copies on their way explain what was read (reference/delay.py).

When exactly a copy was stored is not known, only that it was during its request; so it may be read from the
earliest such time plus its delay on, and must be from the latest on, with some slack. A request that was not
waited for has put a copy or has not, until one is read or can no more come. How far it is with what is
delayed a broker writes now and then: after a crash some of it comes once more.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from mqproof.conformance.engine.broker_faults import CRASHES, Befall, BrokerFault
from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.retry.steps import Operation, Read, Send, SendBack
from mqproof.conformance.suites.retry.target import RETRIES_MAX, Answer, Place, Setup, Span
from mqproof.reference import delay


class Way(NamedTuple):
    """A copy that nobody has read yet."""

    msg_id: str
    times: int
    place: Place
    earliest_s: float
    latest_s: float


Key = tuple[str, int, Place]
"""A copy: message, how often it was sent back, and where it comes."""


class State(NamedTuple):
    ways: tuple[Way, ...] = ()
    """Sorted."""
    delayed: frozenset[Key] = frozenset()
    """All that ever waited for their time."""
    again: frozenset[Key] = frozenset()
    """What may come once more, and need not."""


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
    return Explanation((State(),), partial(_after, setup, retry_queues), _tell, _action)


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
        case Befall(fault, over_s):
            return (_befallen(setup, state, fault, over_s),)
    return (state,)


def _befallen(setup: Setup, state: State, fault: BrokerFault, over_s: float) -> State:
    """Nothing that is on its way is lost; nothing came meanwhile."""
    late = (way._replace(latest_s=max(way.latest_s, over_s + setup.slack_s)) for way in state.ways)
    again = state.delayed if fault in CRASHES else frozenset[Key]()
    return state._replace(ways=tuple(sorted(late)), again=state.again | again)


def _swapped(setup: Setup, operation: SendBack, span: Span) -> tuple[Place, Span, float]:
    place, waits_s = bound_for(setup, operation)
    return place, span, waits_s


def _with(
    state: State, setup: Setup, msg_id: str, times: int, place: Place, span: Span, waits_s: float
) -> State:
    way = Way(
        msg_id, times, place, span.begin_s + waits_s - setup.clock_s, span.end_s + waits_s + setup.slack_s
    )
    delayed = {(msg_id, times, place)} if waits_s else set[Key]()
    return state._replace(ways=tuple(sorted((*state.ways, way))), delayed=state.delayed | delayed)


def _read(setup: Setup, state: State, read: Read) -> tuple[State, ...]:
    """Each copy takes the way that was due first; whatever is left can have had more time to come."""
    left = list(state.ways)
    for copy in read.copies:
        key = (copy.msg_id, copy.times, read.place)
        way = next((way for way in left if way[:3] == key), None)
        if copy.topic != setup.topic:
            return ()
        if way is not None and way.earliest_s <= read.span.end_s:
            left.remove(way)
        elif key not in state.again:
            return ()
    late = any(way.place is read.place and way.latest_s < read.span.begin_s for way in left)
    return () if late else (state._replace(ways=tuple(left)),)


def _tell(state: State) -> str:
    told = [
        f"{way.msg_id} (retry {way.times}) to the {way.place} from {way.earliest_s:.3f} s on"
        for way in state.ways
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
