"""The states of timers that explain what was observed (reference/timers.py).

Each message is followed separately, as in the model with one message and a delay of one tick. The tick may
have happened once the message is due. Before each operation, a message that is due may have been delivered. A
crash keeps each answered operation. It may lose the final message of a delivery; the broker then stores it
again.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from mqproof.conformance.engine.broker_faults import ENDS, BrokerFault, InjectFault
from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.timers.steps import DeleteOld, Operation, Read, Recall, Send
from mqproof.conformance.suites.timers.target import DELAY_MAX_S, Answer
from mqproof.reference import timers
from mqproof.reference.timers import Config

_MSG: Final = "m"
_CONFIG: Final = Config((_MSG,), copies_max=1, points_max=0)

_One = timers.State
Possible = frozenset[_One]


class Message(NamedTuple):
    """One message that was accepted."""

    due_s: float
    """It is not due before this time."""
    possible: Possible


class State(NamedTuple):
    messages: tuple[tuple[str, Message], ...] = ()


def explanation() -> Explanation[State, Operation]:
    return Explanation((State(),), _after, _describe, _action)


def _after(state: State, operation: Operation) -> Iterable[State]:
    known = dict(state.messages)
    match operation:
        case Send(msg_id, delay_s, answer, began_s):
            if (answer is Answer.OK) != (delay_s <= DELAY_MAX_S):
                return
            if answer is Answer.OK:
                known[msg_id] = Message(began_s + delay_s, frozenset({_sent()}))
        case Recall(msg_id, answer, at_s):
            drifted = _drifted(known[msg_id], at_s)
            after = frozenset(state for one in drifted for state in _recalled(one, answer))
            known[msg_id] = known[msg_id]._replace(possible=after)
        case Read(msg_ids, at_s):
            if not set(msg_ids) <= known.keys():
                return
            for msg_id, message in known.items():
                seen = msg_ids.count(msg_id)
                after = frozenset(one for one in _drifted(message, at_s) if _finals(one) == seen)
                known[msg_id] = message._replace(possible=after)
        case InjectFault(fault, over_s) if fault in ENDS:
            for msg_id, message in known.items():
                after = frozenset(
                    state for one in _drifted(message, over_s) for state in _crashed(one, fault)
                )
                known[msg_id] = message._replace(possible=after)
    if all(message.possible for message in known.values()):
        yield State(tuple(known.items()))


def _taken(name: str, state: _One, *parameters: object) -> _One:
    after = timers.ACTIONS[name].apply(_CONFIG, state, *parameters)
    assert after is not None
    return after


def _sent() -> _One:
    (state,) = timers.initial(_CONFIG)
    state = _taken("Learn", _taken("Send", state, _MSG, 1))
    return _taken("Acknowledge", _taken("Secure", state), _MSG)


def _finals(one: _One) -> int:
    return sum(record.kind == "final" for record in one.log)


def _drifted(message: Message, at_s: float) -> Possible:
    """Return the states that time alone may lead to: the message becomes due, and is delivered."""
    return message.possible if at_s < message.due_s else _due(message.possible)


@lru_cache(maxsize=1 << 12)  # the messages of a run meet the same few states
def _due(possible: Possible) -> Possible:
    """Return the states that the time of delivery may lead to."""
    found = set(possible)
    for one in possible:
        due = timers.tick(_CONFIG, one) or one
        delivered = timers.deliver(_CONFIG, due, _MSG)
        secured = None if delivered is None else timers.secure(_CONFIG, delivered)
        found |= {after for after in (due, delivered, secured) if after is not None}
    return frozenset(found)


def _recalled(one: _One, answer: Answer) -> Iterator[_One]:
    """Yield the states after an answered recall. It is refused from the time on at which it is due."""
    recalled = timers.recall(_CONFIG, one, _MSG)
    if answer is Answer.OK:
        if recalled is not None:
            yield _taken("Secure", recalled)
    elif recalled is None or one.now > 0:
        yield one


def _crashed(one: _One, fault: BrokerFault) -> Iterator[_One]:
    """Yield the states after a restart. Only a loss of power loses data that was written."""
    shortest = one.safe if fault is BrokerFault.POWER_LOSS else len(one.log)
    for length in range(shortest, len(one.log) + 1):
        yield _taken("Read", _taken("Crash", one, length))


def _describe(state: State) -> str:
    def shown(one: _One) -> str:
        return "".join(record.kind[0] for record in one.log)

    return "; ".join(
        f"{msg_id}: {' or '.join(sorted(set(map(shown, message.possible))))}"
        for msg_id, message in state.messages
    )


def _action(operation: Operation) -> str:
    """Return the action of Timers.tla for the operation."""
    match operation:
        case Send():
            return "Send"
        case Recall():
            return "Recall"
        case DeleteOld():
            return "Delete"
        case InjectFault(fault):
            return "Crash" if fault in ENDS else "(fault)"
        case _:
            return "(look)"
