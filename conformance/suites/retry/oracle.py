"""The pending copies that explain the messages read (reference/rules/delay.py).

The exact storing time of a copy is unknown; it lies within its request. A copy may be read from the earliest
such time plus its delay, and must be read from the latest one on, with some slack. A request whose answer was
not awaited has created a copy or not, until one is read or can no longer arrive. A broker writes its progress
on delayed messages from time to time, so after a crash some of them arrive once more.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from mqproof.conformance.engine.broker_faults import CRASHES, BrokerFault, InjectFault
from mqproof.conformance.engine.shared_steps import Span
from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.retry.steps import LoseMessages, Operation, Read, Send, SendBack
from mqproof.conformance.suites.retry.target import RETRIES_MAX, Answer, Place, Setup
from mqproof.reference.rules import delay


class Way(NamedTuple):
    """A copy that has not been read yet."""

    msg_id: str
    times: int
    place: Place
    earliest_s: float
    latest_s: float


Key = tuple[str, int, Place]
"""A copy: message id, how often it was sent back, and the place where it arrives."""


class State(NamedTuple):
    ways: tuple[Way, ...] = ()
    """The possible deliveries, sorted."""
    delayed: frozenset[Key] = frozenset()
    """All copies that were ever delayed."""
    again: frozenset[Key] = frozenset()
    """Copies that may arrive once more, but need not."""


def bound_for(setup: Setup, operation: SendBack) -> tuple[Place, float]:
    """Return the place where the copy arrives, and its delay."""
    copy = operation.copy
    assert copy is not None
    most = RETRIES_MAX if operation.times_max is None else operation.times_max
    level = delay.send_back_level(operation.level, copy.times, most)
    return (Place.DEAD, 0.0) if level is None else (Place.RETRY, wait_s(setup, level))


def wait_s(setup: Setup, level: int) -> float:
    """Return how long a message of that level waits; levels above the last one count as the last one."""
    return setup.levels_s[min(level, len(setup.levels_s)) - 1] if level else 0.0


def explanation(setup: Setup, retry_queues: int) -> Explanation[State, Operation]:
    return Explanation((State(),), partial(_after, setup, retry_queues), _describe, _action)


def _after(setup: Setup, retry_queues: int, state: State, operation: Operation) -> Iterable[State]:
    match operation:
        case Send(msg_id, level, _, span):
            return (_with(state, setup, msg_id, 0, Place.TOPIC, span, wait_s(setup, level)),)
        case SendBack(copy=None, answer=answer):
            return (state,) if answer is not Answer.OK or not retry_queues else ()
        case SendBack(copy=copy, answer=answer, span=span) if copy is not None:
            if answer is Answer.REFUSED:
                return ()  # there is no reason to refuse it
            if not retry_queues:
                return (state,)  # the group wants no retries
            put = _with(state, setup, copy.msg_id, copy.times + 1, *_swapped(setup, operation, span))
            return (put,) if answer is Answer.OK else (state, put)
        case Read():
            return _read(setup, state, operation)
        case InjectFault(fault, over_s):
            return (_after_fault(setup, state, fault, over_s),)
        case LoseMessages():
            return (State(),)
    return (state,)


def _after_fault(setup: Setup, state: State, fault: BrokerFault, over_s: float) -> State:
    """Return the state after the fault: no pending copy is lost, and copies may arrive later."""
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
    """Return the state after the read.

    Each copy matches the pending copy that was due first; the others may be later.
    """
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


def _describe(state: State) -> str:
    copies = [
        f"{way.msg_id} (retry {way.times}) to the {way.place} from {way.earliest_s:.3f} s on"
        for way in state.ways
    ]
    return "pending: " + (", ".join(copies) or "nothing")


def _action(operation: Operation) -> str:
    """Return the action of Delivery.tla for the operation; a mere observation has none."""
    match operation:
        case Send() | SendBack():
            return "Store"
        case Read(copies=copies) if copies:
            return "Deliver"
    return "(observation)"
