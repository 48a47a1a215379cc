"""The round-robin positions and rests that explain the brokers a producer chose (reference/queue_choice.py).

The start of the round robin is unknown until attempts decide it. Whether a rest is over at the very moment of
an attempt is unknown too.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.producers.steps import Operation, Route, Send
from mqproof.conformance.suites.producers.target import (
    ATTEMPTS_MAX,
    BROKERS,
    SEND_S,
    SLOW_S,
    Attempt,
    Fate,
    Setup,
)
from mqproof.reference import queue_choice
from mqproof.reference.rules import latency
from mqproof.reference.updates import with_item

CLOCK_S: Final = 0.02
"""The maximum time between the choice of a broker and the arrival of the attempt."""


class State(NamedTuple):
    route: tuple[str, ...]
    counter: int
    rested_until_s: tuple[float, ...]
    """The end of the rest, by broker."""


def explanation(setup: Setup) -> Explanation[State, Operation]:
    brokers = BROKERS[: setup.brokers]
    counters = range(queue_choice.wrap(setup.brokers, setup.queues))
    initial = [State(brokers, counter, (0.0,) * setup.brokers) for counter in counters]
    return Explanation(initial, partial(_after, setup), _describe, _action)


def rest_s(fate: Fate) -> float:
    """Return how long a broker with this answer rests."""
    match fate:
        case Fate.BUSY | Fate.SILENT:
            return latency.rest_ms(latency.FAILURE_MS) / 1000
        case Fate.SLOW:
            return latency.rest_ms(SLOW_S * 1000) / 1000
    return 0.0


def ended_s(attempt: Attempt, began_s: float) -> float:
    """Return when the producer knew the end of an attempt; `began_s` is the start of the send."""
    match attempt.fate:
        case Fate.SILENT:
            return began_s + SEND_S
        case Fate.SLOW:
            return attempt.at_s + SLOW_S
    return attempt.at_s


def _after(setup: Setup, state: State, operation: Operation) -> Iterable[State]:
    match operation:
        case Route(brokers):
            return (state._replace(route=brokers),)
        case Send():
            return _sent(setup, state, operation)
    return (state,)


def _sent(setup: Setup, state: State, send: Send) -> Iterable[State]:
    if not _ends_right(send):
        return ()
    states, last = [state], None
    for attempt in send.attempts:
        states = [after for each in states for after in _attempted(setup, each, attempt, last, send)]
        last = attempt.broker
    return states


def _ends_right(send: Send) -> bool:
    """Return whether the send made the right number of attempts and reported the right result."""
    if not send.attempts:
        return False
    *before, final = [attempt.fate for attempt in send.attempts]
    again = any(fate is not Fate.BUSY for fate in before)
    enough = final is not Fate.BUSY or len(send.attempts) == ATTEMPTS_MAX
    return not again and enough and send.done == (final in (Fate.OK, Fate.SLOW))


def _attempted(setup: Setup, state: State, attempt: Attempt, last: str | None, send: Send) -> Iterator[State]:
    """Yield the states after the actions Attempt and Answered or Failed."""
    for resting in _resting(state, attempt.at_s):
        candidates = queue_choice.eligible(state.route, resting, setup.strategy)
        brokers = queue_choice.wanted(candidates, last)
        position = state.counter + queue_choice.passed(state.route, setup.queues, state.counter, brokers)
        place = position % (len(state.route) * setup.queues)
        chosen = queue_choice.broker_at(state.route, setup.queues, place), place % setup.queues
        if chosen == attempt[:2]:
            counter = (position + 1) % queue_choice.wrap(setup.brokers, setup.queues)
            until_s = ended_s(attempt, send.attempts[0].at_s) + rest_s(attempt.fate)
            rests = with_item(state.rested_until_s, BROKERS.index(attempt.broker), until_s)
            yield state._replace(counter=counter, rested_until_s=rests)


def _resting(state: State, at_s: float) -> set[frozenset[str]]:
    """Return the brokers that rest at that time; several sets if a rest ends at about that time."""
    rests_until = list(zip(BROKERS, state.rested_until_s, strict=False))
    return {
        frozenset(broker for broker, until_s in rests_until if until_s > at_s + shift_s)
        for shift_s in (-CLOCK_S, CLOCK_S)
    }


def _describe(state: State) -> str:
    rests = ", ".join(
        f"{b} is avoided until {s:.3f} s" for b, s in zip(BROKERS, state.rested_until_s, strict=False) if s
    )
    return f"next is place {state.counter} of {', '.join(state.route)}; {rests or 'no broker is avoided'}"


def _action(operation: Operation) -> str:
    """Return the action of QueueChoice.tla for the operation."""
    match operation:
        case Send():
            return "Attempt"
        case Route():
            return "RouteChanges"
    return "Tick"
