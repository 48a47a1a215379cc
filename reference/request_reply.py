"""Requests between clients and their replies, action for action as in spec/tla/RequestReply.tla.

The order is the same: state, connections, requests, replies, safety. Clients and requests have names; what a
client knows of its requests is in tuples, in the order of the configuration.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, leads_to, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import with_item

NONE: Final = "none"
ENDS: Final = ("reply", "timeout", "refused")


@dataclass(frozen=True)
class Config:
    clients: tuple[str, ...] = ("c1",)
    calls: tuple[str, ...] = ("r1", "r2")
    """The correlation ids of the requests."""
    patient: tuple[str, ...] = ("r2",)
    """The requests without a time limit."""


# State


class Push(NamedTuple):
    """A reply on its way from the broker to a client."""

    call: str
    to: str


class State(NamedTuple):
    """The state of the model. A named tuple, because the explorer copies and hashes states most often."""

    registered: frozenset[str] = frozenset()  # the clients that the broker knows
    stored: frozenset[str] = frozenset()  # the requests that are in their topic
    pushes: frozenset[Push] = frozenset()
    confirmed: frozenset[str] = frozenset()  # the requests for which a sender of a reply received SUCCESS
    caller: tuple[str, ...] = ()  # by request: the client that sent it, or NONE
    outcome: tuple[str, ...] = ()  # by request: "new", "waiting", "lost", or one of ENDS
    got: tuple[str, ...] = ()  # by request: the correlation id of the reply that it ended with, or NONE
    results: tuple[int, ...] = ()  # by request: how many results the application received
    received: frozenset[str] = frozenset()  # the requests for which a reply reached a client


def initial(config: Config) -> tuple[State, ...]:
    """Init: the one initial state."""
    count = len(config.calls)
    return (
        State(caller=(NONE,) * count, outcome=("new",) * count, got=(NONE,) * count, results=(0,) * count),
    )


def _at(config: Config, values: tuple[str, ...], call: str) -> str:
    return values[config.calls.index(call)]


# Connections


def connect(_config: Config, state: State, client: str) -> State | None:
    """Connect: the broker accepts a heartbeat."""
    if client in state.registered:
        return None
    return state._replace(registered=state.registered | {client})


def _disconnected(state: State, client: str) -> State:
    """Return the state without the client's connection and what was on its way to it."""
    pushes = frozenset(push for push in state.pushes if push.to != client)
    return state._replace(registered=state.registered - {client}, pushes=pushes)


def disconnect(_config: Config, state: State, client: str) -> State | None:
    """Disconnect: the connection is lost, or the broker restarts."""
    return _disconnected(state, client) if client in state.registered else None


def waits(config: Config, state: State, client: str, call: str) -> bool:
    """Waits: the client waits for the reply to its request."""
    return _at(config, state.outcome, call) == "waiting" and _at(config, state.caller, call) == client


def restart(config: Config, state: State, client: str) -> State | None:
    """Restart: the process of a client ends while requests wait."""
    waiting = [waits(config, state, client, call) for call in config.calls]
    if not any(waiting):
        return None
    outcome = tuple("lost" if lost else old for lost, old in zip(waiting, state.outcome, strict=True))
    return _disconnected(state, client)._replace(outcome=outcome)


# Requests


def request(config: Config, state: State, client: str, call: str) -> State | None:
    """Request: the client sends the request, after the broker has accepted its heartbeat."""
    if _at(config, state.outcome, call) != "new" or client not in state.registered:
        return None
    index = config.calls.index(call)
    return state._replace(
        caller=with_item(state.caller, index, client), outcome=with_item(state.outcome, index, "waiting")
    )


def store(config: Config, state: State, call: str) -> State | None:
    """Store: the broker stores the request, perhaps after the client stopped waiting."""
    if _at(config, state.outcome, call) in ("new", "refused") or call in state.stored:
        return None
    return state._replace(stored=state.stored | {call})


def _finish(config: Config, state: State, call: str, end: str) -> State:
    """Finish: the request ends, and the application receives a result."""
    index = config.calls.index(call)
    return state._replace(
        outcome=with_item(state.outcome, index, end),
        results=with_item(state.results, index, state.results[index] + 1),
    )


def refuse(config: Config, state: State, call: str) -> State | None:
    """Refuse: the send is refused, so the request is certainly not stored, now or later."""
    if _at(config, state.outcome, call) != "waiting" or call in state.stored:
        return None
    return _finish(config, state, call, "refused")


def expire(config: Config, state: State, call: str) -> State | None:
    """Expire: the time limit is over."""
    if _at(config, state.outcome, call) != "waiting" or call in config.patient:
        return None
    return _finish(config, state, call, "timeout")


# Replies


def reply(config: Config, state: State, call: str) -> State | None:
    """Reply: a consumer replies, and the broker pushes the reply to the client that the request names."""
    client = _at(config, state.caller, call)
    if call not in state.stored or client not in state.registered or Push(call, client) in state.pushes:
        return None
    return state._replace(pushes=state.pushes | {Push(call, client)})


def receive(config: Config, state: State, client: str, call: str, arrives: bool) -> State | None:
    """Receive: the client gives the reply to the request that waits, or drops it, and confirms it."""
    push = Push(call, client)
    if push not in state.pushes:
        return None
    after = state
    if waits(config, state, client, call):
        after = _finish(config, state, call, "reply")
        after = after._replace(got=with_item(after.got, config.calls.index(call), call))
    return after._replace(
        pushes=state.pushes - {push},
        received=state.received | {call},
        confirmed=state.confirmed | {call} if arrives else state.confirmed,
    )


# Actions


def _pairs(config: Config) -> Iterable[Parameters]:
    return product(config.clients, config.calls)


def _receipts(config: Config) -> Iterable[Parameters]:
    return product(config.clients, config.calls, (False, True))


def _arriving(_config: Config, state: State) -> Iterator[Parameters]:
    for push in sorted(state.pushes):
        yield from product((push.to,), (push.call,), (False, True))


ACTIONS: Final[dict[str, Action[Config, State]]] = by_name(
    Action("Connect", connect, each("clients")),
    Action("Disconnect", disconnect, each("clients")),
    Action("Restart", restart, each("clients")),
    Action("Store", store, each("calls")),
    Action("Refuse", refuse, each("calls")),
    Action("Expire", expire, each("calls")),
    Action("Reply", reply, each("calls")),
    Action("Request", request, _pairs),
    Action("Receive", receive, _receipts, _arriving),
)


# Safety


def reply_to_its_requester(config: Config, state: State) -> bool:
    """REPLY-1 ReplyToItsRequester: a reply goes to its requester, and ends the request it belongs to."""
    return all(push.to == _at(config, state.caller, push.call) for push in state.pushes) and all(
        got == (call if outcome == "reply" else NONE)
        for call, got, outcome in zip(config.calls, state.got, state.outcome, strict=True)
    )


def request_ends_once(_config: Config, state: State) -> bool:
    """REPLY-2 RequestEndsOnce: a request ends once, with a reply or with an error."""
    return all(
        count == (outcome in ENDS) for count, outcome in zip(state.results, state.outcome, strict=True)
    )


def reply_confirmed(_config: Config, state: State) -> bool:
    """REPLY-3 ReplyConfirmed: the sender of a reply receives SUCCESS only if it reached a client."""
    return state.confirmed <= state.received


# Liveness


def _is_patient(config: Config, _state: State, call: str) -> bool:
    return call in config.patient


def _call_is_patient(config: Config, _state: State, _client: str, call: str, _arrives: bool) -> bool:
    return call in config.patient


FAIRNESS: Final = (
    weak("Connect", "Connect", each=FIRST),
    weak("Store", "Store", each=FIRST, where=_is_patient),
    weak("Expire", "Expire", each=FIRST),
    strong("Reply", "Reply", each=FIRST, where=_is_patient),
    strong("Receive", "Receive", each=slice(1, 2), where=_call_is_patient),
)


def request_ends(config: Config) -> Obligations[State]:
    """REPLY-4 RequestEnds: a request ends with its reply, with an error, or with its process."""

    def waits(state: State, call: str) -> bool:
        return state.outcome[config.calls.index(call)] == "waiting"

    return leads_to(waits, lambda s, call: not waits(s, call), of=each("calls")(config))


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints."""

    def in_order(name: str) -> tuple[Any, ...]:
        return tuple(variables[name][call] for call in config.calls)

    return State(
        registered=frozenset(variables["registered"]),
        stored=frozenset(variables["stored"]),
        pushes=frozenset(Push(push["call"], push["to"]) for push in variables["pushes"]),
        confirmed=frozenset(variables["confirmed"]),
        caller=in_order("caller"),
        outcome=in_order("outcome"),
        got=in_order("got"),
        results=in_order("results"),
        received=frozenset(variables["received"]),
    )


MODEL: Final = Model(
    name="RequestReply",
    initial=initial,
    actions=ACTIONS,
    invariants=named(reply_to_its_requester, request_ends_once, reply_confirmed),
    step_invariants={},
    fairness=FAIRNESS,
    liveness=named(request_ends),
    from_constants=configuration(Config, clients="Clients", calls="Calls", patient="Patient"),
    from_tla=from_tla,
    operator=operators(),
)
