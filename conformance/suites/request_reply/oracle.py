"""The states of requests that explain what was observed (reference/request_reply.py).

Each request is followed separately, as in the model with one client and one request. A client that waits is
connected, unless a fault of the broker has disconnected it: then it may connect again at any time. A time
limit may be over a little before or after the moment that the suite computes.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from mqproof.conformance.engine.broker_faults import InjectFault
from mqproof.conformance.engine.stepped_run import Explanation
from mqproof.conformance.suites.request_reply.checkers import MARGIN_S
from mqproof.conformance.suites.request_reply.steps import Ended, Lost, Operation, Reply, Request
from mqproof.conformance.suites.request_reply.target import Answer, End
from mqproof.reference import request_reply
from mqproof.reference.request_reply import Config

_CLIENT: Final = "c"
_CALL: Final = "r"
_CONFIG: Final = Config((_CLIENT,), (_CALL,), ())

_One = request_reply.State
Possible = frozenset[_One]


class Call(NamedTuple):
    """A request with its possible states."""

    name: str
    client: str
    until_s: float
    is_shaken: bool
    """Whether a fault of the broker may have disconnected the client since it sent the request."""
    possible: Possible


class State(NamedTuple):
    calls: tuple[Call, ...] = ()


def explanation() -> Explanation[State, Operation]:
    return Explanation((State(),), _after, _describe, _action)


def _after(state: State, operation: Operation) -> Iterable[State]:
    after = tuple(_followed(call, operation) for call in state.calls)
    if isinstance(operation, Request):
        sent = _steps(_initial(), "Connect", "Request", *(("Store",) if operation.stored else ()))
        until_s = operation.at_s + operation.limit_s
        after += (Call(operation.call, operation.client, until_s, False, frozenset(sent)),)
    if all(call.possible for call in after):
        yield State(after)


def _followed(call: Call, operation: Operation) -> Call:
    """Return the request with the states after an operation."""
    match operation:
        case Request(_, client) if client == call.client:
            # The client is connected now: it may receive replies to its earlier requests.
            connected = (request_reply.connect(_CONFIG, one, _CLIENT) or one for one in call.possible)
            return call._replace(possible=frozenset(connected))
        case Reply(name, answer, _, at_s) if name == call.name:
            before = _drifted(call, at_s)
            return call._replace(possible=frozenset(s for one in before for s in _replied(one, call, answer)))
        case Ended(name, end, _, at_s) if name == call.name:
            ended = frozenset(s for one in _drifted(call, at_s) for s in _ended(one, end))
            return call._replace(possible=ended)
        case Lost(client) if client == call.client:
            return call._replace(possible=frozenset(_lost(one) for one in call.possible))
        case InjectFault():
            return call._replace(is_shaken=True)
        case _:
            return call


def _initial() -> _One:
    (state,) = request_reply.initial(_CONFIG)
    return state


def _steps(state: _One, *names: str) -> Iterator[_One]:
    """Yield the state after the actions, if they are enabled."""
    parameters = {"Connect": (_CLIENT,), "Disconnect": (_CLIENT,), "Request": (_CLIENT, _CALL)}
    for name in names:
        after = request_reply.ACTIONS[name].apply(_CONFIG, state, *parameters.get(name, (_CALL,)))
        if after is None:
            return
        state = after
    yield state


def _drifted(call: Call, at_s: float) -> Possible:
    """Return the states that time may have led to: an ended limit, a lost or a new connection."""
    found = set(call.possible)
    if at_s > call.until_s - MARGIN_S:
        found |= {after for one in call.possible for after in _steps(one, "Expire")}
    if call.is_shaken:
        found |= {after for one in found for name in ("Connect", "Disconnect") for after in _steps(one, name)}
    return frozenset(found)


def _replied(one: _One, call: Call, answer: Answer) -> Iterator[_One]:
    """Yield the states after a reply with this answer."""
    for pushed in _steps(one, "Reply"):
        received = request_reply.receive(_CONFIG, pushed, _CLIENT, _CALL, answer is Answer.OK)
        assert received is not None
        if answer is Answer.OK or call.is_shaken:
            yield received
    if answer is Answer.REFUSED and (call.is_shaken or not one.registered):
        yield one


def _ended(one: _One, end: End) -> Iterator[_One]:
    if one.outcome == (str(end),):
        yield one
    elif end is End.REFUSED:
        yield from _steps(one, "Refuse")


def _lost(one: _One) -> _One:
    """Return the state after the end of the client's process."""
    restarted = request_reply.restart(_CONFIG, one, _CLIENT)
    return restarted or request_reply.disconnect(_CONFIG, one, _CLIENT) or one


def _describe(state: State) -> str:
    def shown(one: _One) -> str:
        return f"{one.outcome[0]}{'' if one.registered else ', disconnected'}"

    return "; ".join(f"{call.name}: {' or '.join(sorted(map(shown, call.possible)))}" for call in state.calls)


def _action(operation: Operation) -> str:
    """Return the action of RequestReply.tla for the operation."""
    match operation:
        case Request():
            return "Request"
        case Reply():
            return "Reply"
        case Ended(_, End.REPLY):
            return "Receive"
        case Ended(_, End.TIMEOUT):
            return "Expire"
        case Ended():
            return "Refuse"
        case Lost():
            return "Restart"
        case InjectFault():
            return "Disconnect"
        case _:
            return "(look)"
